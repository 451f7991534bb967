// SPDX-License-Identifier: MIT
// PrefixStore: the uncompressed beginnings of prompts that were read, up to a number of bytes. The
// least recently used is evicted first, but prefixes that were never used again go before others.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "snapkv/prefill.h"

namespace snapkv::server {

class PrefixStore {
 public:
  /// A prefix, and how many of a prompt's first tokens it has.
  struct Match {
    std::shared_ptr<const KvPrefix> prefix;
    int64_t n_tokens = 0;  // that can be taken over
    int64_t n_alike = 0;   // that are the same
    /// Whether the prompt goes on where the prefix ends, as the next turn of a conversation does:
    /// but for a few tokens, since a text that goes on may split otherwise at the seam.
    bool goes_on() const;
  };

  explicit PrefixStore(size_t limit) : limit_(limit) {}

  size_t limit() const { return limit_; }
  size_t bytes() const { return bytes_; }
  int size() const { return static_cast<int>(entries_.size()); }

  /// Finds the longest stored beginning of `tokens`, null if there is none, and marks it as used.
  Match find(std::span<const int32_t> tokens, int64_t n_ctx);
  /// Adds a prefix of at most limit() bytes; evicts others, and first those that it goes on from.
  void add(std::shared_ptr<const KvPrefix> prefix, int64_t n_ctx);
  /// Frees a prefix that is not being read from; returns false when there is none.
  bool drop_one();

 private:
  struct Entry {
    std::shared_ptr<const KvPrefix> prefix;
    int64_t n_ctx = 0;
    bool used_again = false;
  };
  void erase(std::list<Entry>::iterator entry);
  /// Bytes of all entries and, unless it is null, another prefix. Prefixes share rows.
  size_t bytes_with(const KvPrefix* another) const;

  size_t limit_;
  size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace snapkv::server
