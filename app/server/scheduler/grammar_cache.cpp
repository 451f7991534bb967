// SPDX-License-Identifier: MIT
#include "server/scheduler/grammar_cache.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/call_syntax.h"
#include "snapkv/tokenizer.h"

namespace snapkv::server {
namespace {

/// The marks of calls that are control tokens in this vocabulary.
std::vector<int32_t> control_marks(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string_view mark : chat::call_marks()) {
    const int32_t id = tokenizer.find(mark);
    const bool is_one = id >= 0 && tokenizer.is_control(id) && !tokenizer.is_end_of_generation(id);
    if (is_one) ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::shared_ptr<const GrammarVocabulary> vocabulary_with_marks(const Tokenizer& tokenizer) {
  const std::vector<int32_t> marks = control_marks(tokenizer);
  if (marks.empty()) return nullptr;
  std::vector<std::string> pieces(static_cast<size_t>(tokenizer.n_vocab()));
  std::vector<int32_t> ends;
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    if (tokenizer.is_end_of_generation(id)) {
      ends.push_back(id);
    } else if (!tokenizer.is_control(id)) {
      pieces[static_cast<size_t>(id)] = tokenizer.piece(id);
    }
  }
  for (const int32_t id : marks) pieces[static_cast<size_t>(id)] = tokenizer.token_text(id);
  return std::make_shared<const GrammarVocabulary>(std::move(pieces), std::move(ends));
}

std::shared_ptr<const GrammarVocabulary> GrammarCache::vocabulary(bool with_marks) {
  const Tokenizer& tokenizer = model_->tokenizer();
  if (with_marks && !with_marks_) {
    with_marks_ = vocabulary_with_marks(tokenizer);
    if (!with_marks_) with_marks_ = vocabulary(false);
  }
  if (with_marks) return with_marks_;
  if (!vocabulary_) vocabulary_ = std::make_shared<const GrammarVocabulary>(tokenizer);
  return vocabulary_;
}

GrammarMatcher GrammarCache::matcher_of(const Grammar& grammar, bool with_marks) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(matchers_.begin(), matchers_.end(), [&](const Known& each) {
    return each.with_marks == with_marks && each.matcher.grammar().source() == grammar.source();
  });
  if (known != matchers_.end()) {
    matchers_.splice(matchers_.begin(), matchers_, known);
  } else {
    matchers_.push_front({GrammarMatcher(grammar, vocabulary(with_marks)), with_marks});
  }
  trim_locked();
  return matchers_.front().matcher;
}

void GrammarCache::trim() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) trim_locked();
}

/// Evicts the least recently used matchers until count and mask size are within bounds; keeps at
/// least one.
void GrammarCache::trim_locked() {
  size_t bytes = 0, n = 0;
  auto known = matchers_.begin();
  for (; known != matchers_.end(); ++known, ++n) {
    bytes += known->matcher.mask_bytes();
    if (n > 0 && (n == kMostMatchers || bytes > limit_)) break;
  }
  matchers_.erase(known, matchers_.end());
  n_matchers_ = static_cast<int>(n);
}

}  // namespace snapkv::server
