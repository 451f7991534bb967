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

namespace snapkv::server {

class GrammarCache {
 public:
  /// Number of grammars that are kept at most.
  static constexpr size_t kMostMatchers = 16;

  /// `limit`: bytes of masks. The latest grammar is kept however many it has.
  GrammarCache(std::shared_ptr<const Model> model, size_t limit)
      : model_(std::move(model)), limit_(limit) {}

  /// Returns a matcher at the beginning of its grammar. Matchers of one grammar share their masks.
  /// Throws Error if the grammar can be read in too many ways.
  GrammarMatcher matcher_of(const Grammar& grammar);
  /// Evicts what has become too much, since masks grow while answers are written. Does nothing
  /// while another thread makes a matcher, since that thread does the same.
  void trim();
  int size() const { return n_matchers_; }

 private:
  void trim_locked();

  const std::shared_ptr<const Model> model_;
  const size_t limit_;
  std::atomic<int> n_matchers_ = 0;  // size of matchers_

  std::mutex mutex_;                                     // guards all that follows
  std::shared_ptr<const GrammarVocabulary> vocabulary_;  // made for the first grammar
  std::list<GrammarMatcher> matchers_;                   // most recently used first
};

}  // namespace snapkv::server
