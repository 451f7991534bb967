// SPDX-License-Identifier: MIT
// GrammarCache: the grammars of recent requests, with the masks that answers have made of them, for
// later requests with the same grammar. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "snapkv/engine.h"
#include "snapkv/grammar.h"
#include "snapkv/tokenizer.h"

namespace snapkv::server {

/// The tokens of grammars that may have the marks of calls (chat::call_marks()) where these are
/// control tokens; null where none is, so that the usual vocabulary has them.
std::shared_ptr<const GrammarVocabulary> vocabulary_with_marks(const Tokenizer& tokenizer);

class GrammarCache {
 public:
  /// Number of grammars that are kept at most.
  static constexpr size_t kMostMatchers = 16;

  /// `limit`: bytes of masks. The latest grammar is kept however many it has.
  GrammarCache(std::shared_ptr<const Model> model, size_t limit)
      : model_(std::move(model)), limit_(limit) {}

  /// Returns a matcher at the beginning of its grammar. Matchers of one grammar share their masks.
  /// `with_marks`: the marks of calls may be control tokens. Throws Error if the grammar can be
  /// read in too many ways.
  GrammarMatcher matcher_of(const Grammar& grammar, bool with_marks = false);
  /// Evicts what has become too much, since masks grow while answers are written. Does nothing
  /// while another thread makes a matcher, since that thread does the same.
  void trim();
  int size() const { return n_matchers_; }

 private:
  struct Known {
    GrammarMatcher matcher;
    bool with_marks;
  };

  void trim_locked();
  std::shared_ptr<const GrammarVocabulary> vocabulary(bool with_marks);

  const std::shared_ptr<const Model> model_;
  const size_t limit_;
  std::atomic<int> n_matchers_ = 0;  // size of matchers_

  std::mutex mutex_;  // guards all that follows
  // Made for the first grammar; the one with marks is the other one where no mark is a control
  // token.
  std::shared_ptr<const GrammarVocabulary> vocabulary_, with_marks_;
  std::list<Known> matchers_;  // most recently used first
};

}  // namespace snapkv::server
