// SPDX-License-Identifier: MIT
// RULER's needles: "One of the special magic numbers for quiet-lantern is: 4821377." in repeated
// noise, in an essay, or among other needles (niah.py of RULER; the wording is RULER's, the words
// are ours).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "eval/ruler/tasks.h"

namespace snapkv::eval {
namespace {

enum class Filler { noise, essay, needles };
enum class Kind { word, number, uuid };

struct NeedleTask {
  const char* name;
  Filler filler;
  Kind key, value;
  size_t n_keys, n_values, n_queries;
};

// The tasks in synthetic.yaml of RULER. Each query needs a key.
constexpr NeedleTask kTasks[] = {
    {"niah_single_1", Filler::noise, Kind::word, Kind::number, 1, 1, 1},
    {"niah_single_2", Filler::essay, Kind::word, Kind::number, 1, 1, 1},
    {"niah_single_3", Filler::essay, Kind::word, Kind::uuid, 1, 1, 1},
    {"niah_multikey_1", Filler::essay, Kind::word, Kind::number, 4, 1, 1},
    {"niah_multikey_2", Filler::needles, Kind::word, Kind::number, 1, 1, 1},
    {"niah_multikey_3", Filler::needles, Kind::uuid, Kind::uuid, 1, 1, 1},
    {"niah_multivalue", Filler::essay, Kind::word, Kind::number, 1, 4, 1},
    {"niah_multiquery", Filler::essay, Kind::word, Kind::number, 4, 1, 4},
};

std::string singular(Kind kind) {
  return kind == Kind::word ? "word" : kind == Kind::number ? "number" : "uuid";
}

// A version 4 UUID: 122 random bits, the version and the variant.
std::string draw_uuid(Random& random) {
  std::string text;
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    const size_t digit = random.below(16);
    text += "0123456789abcdef"[i == 12 ? 4 : i == 16 ? 8 + digit % 4 : digit];
  }
  return text;
}

std::string draw(Random& random, Kind kind) {
  switch (kind) {
    case Kind::word:
      return ruler_words().pair(random);
    case Kind::number:  // seven digits
      return fmt::format("{}", 1'000'000 + random.below(9'000'000));
    case Kind::uuid:
      return draw_uuid(random);
  }
  return "";
}

// Draws a text that was not drawn before. RULER may draw a key twice, which makes answers
// ambiguous.
std::string draw_new(Random& random, Kind kind, std::set<std::string>& used) {
  for (;;) {
    std::string text = draw(random, kind);
    if (used.insert(text).second) return text;
  }
}

std::string needle(const NeedleTask& task, const std::string& key, const std::string& value) {
  return fmt::format("One of the special magic {}s for {} is: {}.", singular(task.value), key,
                     value);
}

// Lines of filler, with the needles at random places.
std::string among_lines(std::vector<std::string> lines, const std::vector<std::string>& needles,
                        Random& random) {
  std::vector<size_t> places = draw_different(random, lines.size(), needles.size());
  std::sort(places.rbegin(), places.rend());
  for (size_t i = 0; i < needles.size(); ++i) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(places[i]), needles[i]);
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// The first n words of the essay as sentences; the last sentence may be unfinished.
std::vector<std::string> sentences_of(const std::vector<std::string>& words, size_t n) {
  std::vector<std::string> sentences;
  bool begins = true;
  for (size_t i = 0; i < n; ++i) {
    if (begins) {
      sentences.push_back(words[i % words.size()]);
    } else {
      sentences.back() += " " + words[i % words.size()];
    }
    const std::string& word = words[i % words.size()];
    const size_t end = word.find_last_not_of("\"')]");
    begins = end != std::string::npos && (word[end] == '.' || word[end] == '!' || word[end] == '?');
  }
  return sentences;
}

// Puts needles after whole sentences, at different depths among 40 from 0 to 100%.
std::string among_sentences(const std::vector<std::string>& sentences,
                            const std::vector<std::string>& needles, Random& random) {
  std::vector<size_t> places;
  for (const size_t i : draw_different(random, 40, needles.size())) {
    const size_t percent = (100 * i * 2 + 39) / (39 * 2);  // rounded
    places.push_back(sentences.size() * percent / 100);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::string> parts;
  for (size_t i = 0, next = 0; i <= sentences.size(); ++i) {
    for (; next < places.size() && places[next] == i; ++next) parts.push_back(needles[next]);
    if (i < sentences.size()) parts.push_back(sentences[i]);
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

// The words of the user's text, or as many generated words as a prompt can hold.
std::vector<std::string> essay_words(const RulerSample& sample) {
  if (!sample.haystack.empty()) return words_of(sample.haystack);
  static const Haystack haystack;
  Random random(sample.seed + 1);
  std::vector<std::string> words;
  while (std::ssize(words) < sample.length) {
    for (std::string& word : words_of(haystack.sentence(random))) words.push_back(std::move(word));
  }
  return words;
}

std::string hide(const NeedleTask& task, const std::vector<std::string>& essay, int64_t size,
                 const std::vector<std::string>& needles, std::set<std::string>& used,
                 Random& random) {
  const auto n = static_cast<size_t>(size);
  if (task.filler == Filler::essay) {
    return among_sentences(sentences_of(essay, n), needles, random);
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < n; ++i) {
    lines.push_back(task.filler == Filler::noise
                        ? kRulerNoise
                        : needle(task, draw_new(random, task.key, used), draw(random, task.value)));
  }
  return among_lines(std::move(lines), needles, random);
}

// "a, b, and c"
std::string oxford_list(const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  const std::vector<std::string> head(names.begin(), names.end() - 1);
  return fmt::format("{}, and {}", fmt::join(head, ", "), names.back());
}

RulerText make_text(const NeedleTask& task, const std::vector<std::string>& essay, uint64_t seed,
                    int64_t size) {
  Random random(seed);
  std::set<std::string> used_keys, used_values;
  std::vector<std::string> keys, needles;
  std::vector<std::vector<std::string>> values;
  for (size_t k = 0; k < task.n_keys; ++k) {
    keys.push_back(draw_new(random, task.key, used_keys));
    values.emplace_back();
    for (size_t v = 0; v < task.n_values; ++v) {
      values[k].push_back(draw_new(random, task.value, used_values));
      needles.push_back(needle(task, keys[k], values[k][v]));
    }
  }
  shuffle(needles, random);
  RulerText text;
  std::vector<std::string> queries;
  for (const size_t k : draw_different(random, task.n_keys, task.n_queries)) {
    queries.push_back(keys[k]);
    text.outputs.insert(text.outputs.end(), values[k].begin(), values[k].end());
  }
  const bool one = text.outputs.size() == 1;
  const std::string things = singular(task.value) + (one ? "" : "s");
  const std::string query = oxford_list(queries);
  text.context = fmt::format(
      "{} special magic {} {} hidden within the following text. Make sure to memorize it. I will "
      "quiz you about the {} afterwards.\n{}\n",
      one ? "A" : "Some", things, one ? "is" : "are", things,
      hide(task, essay, size, needles, used_keys, random));
  text.question = fmt::format("What {} the special magic {} for {} mentioned in the provided text?",
                              one ? "is" : "are all", things, query);
  text.answer_prefix = fmt::format(" The special magic {} for {} mentioned in the provided text {}",
                                   things, query, one ? "is" : "are");
  text.details = {{"needles", needles}};
  return text;
}

}  // namespace

std::vector<RulerTask> ruler_needle_tasks() {
  std::vector<RulerTask> tasks;
  for (const NeedleTask& task : kTasks) {
    const auto n_needles = static_cast<int64_t>(task.n_keys * task.n_values);
    tasks.push_back({task.name, 128, n_needles, [&task](const RulerSample& sample) -> RulerMaker {
                       std::vector<std::string> essay;
                       if (task.filler == Filler::essay) essay = essay_words(sample);
                       return [&task, essay = std::move(essay), seed = sample.seed](int64_t size) {
                         return make_text(task, essay, seed, size);
                       };
                     }});
  }
  return tasks;
}

}  // namespace snapkv::eval
