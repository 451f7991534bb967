// SPDX-License-Identifier: MIT
#include "eval/needle/needle.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "eval/common/characters.h"
#include "eval/common/haystack.h"
#include "eval/common/metrics.h"

namespace snapkv::eval {
namespace {

constexpr const char* kTextNeedle =
    "The best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny "
    "day.";
constexpr const char* kTextQuestion = "\nQuestion: What is the best thing to do in San Francisco?";
constexpr const char* kTextLead = "Answer: The best thing to do in San Francisco is";
constexpr const char* kTextReference = "eat a sandwich and sit in Dolores Park on a sunny day.";

// A sentence of filler and the white space after it; facts may follow if `may_insert`.
struct Piece {
  std::string text;
  int64_t n_tokens = 0;  // approximate, since the sentence is counted alone
  bool may_insert = true;
};

struct Fact {
  std::string text;
  double depth = 0;
};

// The facts and the question, before they are put into filler.
struct Riddle {
  std::vector<Fact> facts;
  std::string question;
  std::string lead;  // the beginning of the answer
  std::vector<std::string> references;
};

int64_t count_tokens(const Model& model, const std::string& text) {
  return std::ssize(model.tokenize(text, false, false));
}

// Draws n names. `first`, unless it is empty, takes the place of the first one.
std::vector<std::string> draw_names(Random& random, size_t n, const std::string& first) {
  std::vector<std::string> names = needle_names();
  if (n > names.size()) {
    fail(ErrorCode::kUsage, "{} facts: at most {} names are known", n, names.size());
  }
  for (size_t i = 0; i < n; ++i) std::swap(names[i], names[i + random.below(names.size() - i)]);
  if (!first.empty()) {
    const auto found = std::find(names.begin(), names.end(), first);
    if (found == names.end()) {
      fail(ErrorCode::kUsage, "{} is not a name that facts are about", first);
    }
    std::iter_swap(names.begin(), found);
  }
  names.resize(n);
  return names;
}

std::vector<std::string> draw_numbers(Random& random, size_t n) {
  std::vector<std::string> numbers;
  while (numbers.size() < n) {
    std::string digits = fmt::format("{:05}", random.below(100'000));
    if (std::find(numbers.begin(), numbers.end(), digits) == numbers.end()) {
      numbers.push_back(std::move(digits));
    }
  }
  return numbers;
}

// "Rome, Seoul and Nice"
std::string enumerate(const std::vector<std::string>& names) {
  const std::vector<std::string> head(names.begin(), names.end() - 1);
  if (head.empty()) return names.back();
  return fmt::format("{} and {}", fmt::join(head, ", "), names.back());
}

// The first fact is at `depth`, the others at random depths.
Riddle make_riddle(const NeedleOptions& options, double depth, Random& random) {
  if (options.kind == NeedleKind::text) {
    return {{{kTextNeedle, depth}}, kTextQuestion, kTextLead, {kTextReference}};
  }
  const bool one_fact = options.kind == NeedleKind::single;
  const bool one_name = one_fact || options.kind == NeedleKind::multi_value;
  const size_t n = one_fact ? 1 : static_cast<size_t>(options.n_facts);
  const std::vector<std::string> names = draw_names(random, one_name ? 1 : n, options.name);
  const std::vector<std::string> numbers = draw_numbers(random, n);
  Riddle riddle;
  for (size_t i = 0; i < n; ++i) {
    const double at = i == 0 ? depth : static_cast<double>(random.below(1001)) / 1000.0;
    riddle.facts.push_back(
        {fmt::format("The secret number of {} is {}.", names[one_name ? 0 : i], numbers[i]), at});
  }
  const bool asks_one = one_fact || options.kind == NeedleKind::multi_key;
  riddle.references = asks_one ? std::vector{numbers[0]} : numbers;
  const std::string of = options.kind == NeedleKind::multi_query ? enumerate(names) : names[0];
  const char* const is = asks_one ? "is" : "are";
  const std::string subject = fmt::format("secret number{} of {}", asks_one ? "" : "s", of);
  riddle.question = fmt::format("\nQuestion: What {} the {}?", is, subject);
  riddle.lead = fmt::format("Answer: The {} {}", subject, is);
  return riddle;
}

std::vector<Piece> generated_filler(const Model& model, Random& random, int64_t room) {
  static const Haystack haystack;
  std::vector<Piece> pieces;
  for (int64_t n_tokens = 0; n_tokens < room;) {
    for (size_t left = 3 + random.below(5); left > 0 && n_tokens < room; --left) {
      Piece piece{.text = haystack.sentence(random) + (left == 1 ? "\n" : " "),
                  .may_insert = left == 1};
      piece.n_tokens = count_tokens(model, piece.text);
      n_tokens += std::max<int64_t>(1, piece.n_tokens);
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

// Whether this is the end of a sentence. Chinese and Japanese marks need no space after them.
bool ends_sentence(std::string_view text, bool space_follows) {
  for (const char* mark : {"\u3002", "\uff01", "\uff1f"}) {
    if (text.ends_with(mark)) return true;
  }
  return space_follows && std::string_view(".!?").find(text.back()) != std::string_view::npos;
}

// Where the sentence that begins at `begin` ends, including the white space after it. Text without
// an end for kMostBytes (code, lists) is cut, at white space if possible.
size_t sentence_end(std::string_view text, size_t begin) {
  constexpr size_t kMostBytes = 400;
  size_t end = begin + 1, after_space = begin, between_characters = begin;
  for (; end < text.size(); ++end) {
    if (ends_sentence(text.substr(begin, end - begin), is_space(text[end]))) break;
    if (is_space(text[end - 1])) after_space = end;
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80) between_characters = end;
    if (end - begin < kMostBytes) continue;
    end = after_space > begin ? after_space : between_characters;
    break;
  }
  while (end < text.size() && is_space(text[end])) ++end;
  return end;
}

// Sentences of the user's text from a random one on, starting over from the top if it is too short.
std::vector<Piece> text_filler(const Model& model, const std::string& text, Random& random,
                               int64_t room) {
  std::vector<std::string> sentences;
  for (size_t at = 0; at < text.size();) {
    const size_t end = sentence_end(text, at);
    sentences.push_back(text.substr(at, end - at));
    at = end;
  }
  std::vector<Piece> pieces;
  size_t next = random.below(sentences.size());
  for (int64_t n_tokens = 0; n_tokens < room; next = (next + 1) % sentences.size()) {
    Piece piece{.text = sentences[next], .n_tokens = count_tokens(model, sentences[next])};
    if (next + 1 == sentences.size() && piece.text.back() != '\n') piece.text += "\n";
    n_tokens += std::max<int64_t>(1, piece.n_tokens);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The filler with the facts on their own lines, each after the last piece that ends at or before
// its depth; depth 1 is the end.
std::string assemble(const std::vector<Piece>& pieces, const Riddle& riddle) {
  int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.n_tokens;
  std::vector<size_t> places(riddle.facts.size(), 0);  // the piece that follows each fact
  for (size_t f = 0; f < places.size(); ++f) {
    const double target = riddle.facts[f].depth * static_cast<double>(total);
    int64_t n_tokens = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      n_tokens += pieces[i].n_tokens;
      const bool fits = pieces[i].may_insert || i + 1 == pieces.size();
      if (fits && static_cast<double>(n_tokens) <= target) places[f] = i + 1;
    }
  }
  std::string text;
  for (size_t i = 0; i <= pieces.size(); ++i) {
    for (size_t f = 0; f < places.size(); ++f) {
      if (places[f] != i) continue;
      if (!text.empty() && text.back() != '\n') text += "\n";
      text += "\n" + riddle.facts[f].text + "\n";
    }
    if (i < pieces.size()) text += pieces[i].text;
  }
  if (text.back() != '\n') text += "\n";
  return text;
}

}  // namespace

const char* name(NeedleKind kind) {
  switch (kind) {
    case NeedleKind::single:
      return "single";
    case NeedleKind::multi_key:
      return "multi-key";
    case NeedleKind::multi_value:
      return "multi-value";
    case NeedleKind::multi_query:
      return "multi-query";
    case NeedleKind::text:
      return "text";
  }
  return "";
}

NeedleKind needle_kind(const std::string& wanted) {
  for (const NeedleKind kind : {NeedleKind::single, NeedleKind::multi_key, NeedleKind::multi_value,
                                NeedleKind::multi_query, NeedleKind::text}) {
    if (wanted == name(kind)) return kind;
  }
  fail(ErrorCode::kUsage,
       "needle kind must be single, multi-key, multi-value, multi-query or text, it is {}", wanted);
}

const std::vector<std::string>& needle_names() {
  static const std::vector<std::string> kNames = {
      "Rome",   "Seoul",  "Nice",    "Paris",  "London", "Berlin", "Cairo", "Delhi",  "Athens",
      "Prague", "Warsaw", "Denver",  "Dallas", "Austin", "Perth",  "Milan", "Naples", "Riga",
      "Ghent",  "Lille",  "Nantes",  "Porto",  "Dakar",  "Lagos",  "Accra", "Rabat",  "Amman",
      "Beirut", "Doha",   "Kabul",   "Quito",  "Madrid", "Moscow", "Miami", "Munich", "Bremen",
      "Aarhus", "Tehran", "Seattle", "Lahore", "Mumbai", "Sydney"};
  return kNames;
}

const char* after_question(const PromptFormat& format) { return format.is_chat() ? "" : "\n"; }

NeedleText make_needle_text(const Model& model, const NeedleOptions& options, int64_t length,
                            double depth, int sample) {
  // Changing any parameter gives another seed; the constants only keep the sums apart.
  Random random(options.seed * 1'000'003 + static_cast<uint64_t>(sample) * 7919 +
                static_cast<uint64_t>(length) * 104'729 + static_cast<uint64_t>(depth * 1e6));
  const Riddle riddle = make_riddle(options, depth, random);
  std::vector<Piece> pieces = options.haystack.empty()
                                  ? generated_filler(model, random, length)
                                  : text_filler(model, options.haystack, random, length);
  NeedleText made;
  for (;; pieces.pop_back()) {
    made.prompt = {assemble(pieces, riddle), riddle.question + after_question(options.format),
                   riddle.lead};
    const int64_t n_tokens = options.format.count_tokens(model, made.prompt);
    if (n_tokens <= length) break;
    if (pieces.empty()) {
      fail(ErrorCode::kUsage, "a length of {} tokens has no room for facts and question: {}",
           length, n_tokens);
    }
  }
  made.references = riddle.references;
  Json facts = Json::array();
  for (const Fact& fact : riddle.facts)
    facts.push_back({{"text", fact.text}, {"depth", fact.depth}});
  made.details = {{"task", "needle"}, {"kind", name(options.kind)}, {"length", length},
                  {"depth", depth},   {"sample", sample},           {"facts", std::move(facts)}};
  if (options.format.is_chat()) made.details["chat_template"] = options.format.record();
  return made;
}

Prompt make_needle(const Model& model, const NeedleOptions& options, int64_t length, double depth,
                   int sample) {
  NeedleText made = make_needle_text(model, options, length, depth, sample);
  Prompt prompt = options.format.make(model, made.prompt);
  prompt.references = std::move(made.references);
  prompt.details = std::move(made.details);
  return prompt;
}

double needle_score(NeedleKind kind, const Prompt& prompt, const std::string& answer) {
  if (kind == NeedleKind::text) return rouge_1(answer, prompt.references[0]);
  const std::vector<std::string> numbers = numbers_in(answer);
  if (kind == NeedleKind::single || kind == NeedleKind::multi_key) {
    return !numbers.empty() && numbers[0] == prompt.references[0] ? 1 : 0;
  }
  const auto n_found = std::count_if(
      prompt.references.begin(), prompt.references.end(), [&](const std::string& reference) {
        return std::find(numbers.begin(), numbers.end(), reference) != numbers.end();
      });
  return static_cast<double>(n_found) / static_cast<double>(prompt.references.size());
}

std::vector<Item> needle_items(std::shared_ptr<const Model> model, const NeedleOptions& options) {
  const auto shared = std::make_shared<const NeedleOptions>(options);
  const bool multi = options.kind != NeedleKind::single && options.kind != NeedleKind::text;
  const std::string source = haystack_id(options.haystack);
  std::vector<Item> items;
  for (const int64_t length : options.lengths) {
    for (int d = 0; d < options.n_depths; ++d) {
      const double depth =
          options.n_depths == 1 ? 0.5 : static_cast<double>(d) / (options.n_depths - 1);
      for (int sample = 0; sample < options.n_samples; ++sample) {
        Item item;
        item.id = fmt::format("needle {} facts {} length {} depth {:.6f} sample {} seed {} {}",
                              name(options.kind), multi ? options.n_facts : 1, length, depth,
                              sample, options.seed, source);
        item.id = options.format.with_id(item.id);
        item.column = fmt::format("{} tokens", length);
        item.limit.n_predict = options.n_predict;
        item.make = [=] { return make_needle(*model, *shared, length, depth, sample); };
        item.score = [kind = options.kind](const Prompt& prompt, const std::string& answer) {
          return needle_score(kind, prompt, answer);
        };
        items.push_back(std::move(item));
      }
    }
  }
  return each_once(std::move(items));
}

}  // namespace snapkv::eval
