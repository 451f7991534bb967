// SPDX-License-Identifier: MIT
#include "long_documents/plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "long_documents/bm25.h"
#include "long_documents/words.h"

namespace snapkv::long_documents {
namespace {

/// Less room than this is of no use.
constexpr int64_t kLeastRoom = 32;
/// A word is rare if at most one of so many passages has it.
constexpr size_t kRareShare = 8;
/// Passages take headers and what joins them.
constexpr int64_t kHeaderTokens = 12;

/// The question's words, as they are written.
std::vector<std::string_view> written_words(std::string_view question) {
  constexpr std::string_view kAround = " \t\r\n\f\v.,;:!?\"'()[]{}<>";
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < question.size();) {
    const size_t end = std::min(question.find_first_of(" \t\r\n\f\v", begin), question.size());
    const std::string_view word = question.substr(begin, end - begin);
    const size_t first = word.find_first_not_of(kAround);
    if (first != std::string_view::npos) {
      words.push_back(word.substr(first, word.find_last_not_of(kAround) + 1 - first));
    }
    begin = end + 1;
  }
  return words;
}

/// The words of the question that are in the document, in few of its passages.
std::vector<std::string> rare_words(std::string_view question, const Bm25& index) {
  const size_t most = std::max<size_t>(2, index.n_passages() / kRareShare);
  const auto is_rare = [&](const std::string& word) {
    const size_t n = index.n_with(word);
    return n > 0 && n <= most && !is_common_word(word);
  };
  std::vector<std::string> rare;
  for (const std::string_view word : written_words(question)) {
    const std::vector<std::string> parts = index_words(word);
    const bool is_new = std::find(rare.begin(), rare.end(), word) == rare.end();
    if (is_new && std::any_of(parts.begin(), parts.end(), is_rare)) rare.emplace_back(word);
  }
  return rare;
}

/// Scores the passages by the question's words, and finds the rare ones among these.
void score_passages(const LongDocument& document, std::string_view question, LongPlan& plan) {
  std::vector<std::vector<std::string>> words;
  for (const TextPart& passage : plan.passages) {
    words.push_back(index_words(document.text.substr(passage.begin, passage.end - passage.begin)));
  }
  const Bm25 index(words);
  std::vector<std::string> asked = index_words(question);
  std::erase_if(asked, [](const std::string& word) { return is_common_word(word); });
  plan.scores = index.scores(asked);
  plan.words = rare_words(question, index);
}

}  // namespace

std::optional<LongMode> long_mode(std::string_view name) {
  if (name == "auto") return LongMode::automatic;
  if (name == "first") return LongMode::first;
  if (name == "parts") return LongMode::parts;
  if (name == "refuse") return LongMode::refuse;
  return std::nullopt;
}

const char* name(Way way) {
  switch (way) {
    case Way::first:
      return "first";
    case Way::passages:
      return "passages";
    case Way::parts:
      return "parts";
  }
  return "";
}

std::vector<size_t> best_passages(const std::vector<TextPart>& passages,
                                  const std::vector<double>& scores, int64_t most_tokens) {
  std::vector<size_t> order(passages.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<size_t> best;
  int64_t n = 0;
  for (const size_t i : order) {
    if (scores[i] <= 0) break;
    const int64_t n_of_it = passages[i].n_tokens + kHeaderTokens;
    if (n + n_of_it > most_tokens) continue;  // a shorter one may fit still
    n += n_of_it;
    best.push_back(i);
  }
  std::sort(best.begin(), best.end());
  return best;
}

LongPlan plan_reading(const LongDocument& document, std::string_view question, LongMode mode,
                      const Room& room, const CountTokens& count) {
  const int64_t least = std::min(room.n_once, mode == LongMode::first ? room.n_once : room.n_part);
  if (least < kLeastRoom) {
    fail(ErrorCode::kContextExceeded,
         "the question and the answer leave {} of the context for the document: a larger "
         "--ctx-size or a shorter question is needed",
         std::max<int64_t>(least, 0) == 1
             ? "1 token"
             : std::to_string(std::max<int64_t>(least, 0)) + " tokens");
  }
  const int64_t most_part = std::min(room.n_part, kMostPartTokens);
  const int64_t passage =
      std::min({kPassageTokens, least / 2, std::min(room.n_once, kMostPassageTokens) / 2});
  const std::vector<TextPart> pieces = cut_pieces(document.text, document.pages, passage, count);
  LongPlan plan;
  for (const TextPart& piece : pieces) plan.n_document += piece.n_tokens;
  if (mode == LongMode::first) {
    std::vector<TextPart> beginning;
    for (const TextPart& piece : pieces) {
      if (plan.n_read + piece.n_tokens > room.n_once) break;
      plan.n_read += piece.n_tokens;
      beginning.push_back(piece);
    }
    plan.parts = join_pieces(beginning, std::max<int64_t>(plan.n_read, 1));
    return plan;
  }
  plan.passages = join_pieces(pieces, passage);
  score_passages(document, question, plan);
  if (mode == LongMode::automatic && !plan.words.empty()) {
    plan.way = Way::passages;
    const int64_t most = std::min(room.n_once, kMostPassageTokens);
    for (const size_t i : best_passages(plan.passages, plan.scores, most)) {
      plan.parts.push_back(plan.passages[i]);
      plan.n_read += plan.passages[i].n_tokens;
    }
    return plan;
  }
  plan.way = Way::parts;
  plan.parts = join_pieces(pieces, most_part);
  plan.n_read = plan.n_document;
  return plan;
}

int64_t less_room(int64_t room, int64_t excess) {
  return room - std::min(excess, std::max<int64_t>(room / 4, 1));
}

LongPlan plan_that_fits(const LongDocument& document, std::string_view question, LongMode mode,
                        Room room, const CountTokens& count,
                        const std::function<int64_t(const LongPlan&)>& excess) {
  while (true) {  // until it fits, or plan_reading() finds too little room
    LongPlan plan = plan_reading(document, question, mode, room, count);
    const int64_t n = excess(plan);
    if (n <= 0) return plan;
    if (plan.way == Way::parts) {
      room.n_part = less_room(std::min(room.n_part, kMostPartTokens), n);
    } else {
      const int64_t most = plan.way == Way::passages ? kMostPassageTokens : room.n_once;
      room.n_once = less_room(std::min(room.n_once, most), n);
    }
  }
}

}  // namespace snapkv::long_documents
