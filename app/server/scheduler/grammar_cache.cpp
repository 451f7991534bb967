// SPDX-License-Identifier: MIT
#include "server/scheduler/grammar_cache.h"

#include <algorithm>

namespace snapkv::server {

GrammarMatcher GrammarCache::matcher_of(const Grammar& grammar) {
  const std::lock_guard lock(mutex_);
  if (!vocabulary_) {
    vocabulary_ = std::make_shared<const GrammarVocabulary>(model_->tokenizer());
  }
  const auto known = std::find_if(matchers_.begin(), matchers_.end(), [&](const auto& matcher) {
    return matcher.grammar().source() == grammar.source();
  });
  if (known != matchers_.end()) {
    matchers_.splice(matchers_.begin(), matchers_, known);
  } else {
    matchers_.emplace_front(grammar, vocabulary_);
  }
  trim_locked();
  return matchers_.front();
}

void GrammarCache::trim() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) trim_locked();
}

/// Evicts the least recently used matchers until count and mask size are within bounds; keeps at
/// least one.
void GrammarCache::trim_locked() {
  size_t bytes = 0, n = 0;
  auto matcher = matchers_.begin();
  for (; matcher != matchers_.end(); ++matcher, ++n) {
    bytes += matcher->mask_bytes();
    if (n > 0 && (n == kMostMatchers || bytes > limit_)) break;
  }
  matchers_.erase(matcher, matchers_.end());
  n_matchers_ = static_cast<int>(n);
}

}  // namespace snapkv::server
