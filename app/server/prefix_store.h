// SPDX-License-Identifier: MIT
// PrefixStore: the uncompressed beginnings of prompts that were read, within a number of bytes. The
// least recently used goes first, and before those that were used again one that never was. Used by
// the scheduler's loop.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "snapkv/prefill.h"

namespace snapkv::server {

class PrefixStore {
 public:
  /// How many of a prompt's first tokens a prefix has.
  struct Match {
    std::shared_ptr<const KvPrefix> prefix;
    int64_t n_tokens = 0;
  };

  explicit PrefixStore(size_t limit) : limit_(limit) {}

  size_t limit() const { return limit_; }
  size_t bytes() const { return bytes_; }
  int size() const { return static_cast<int>(entries_.size()); }

  /// The longest beginning of `tokens` that is there; null if none is. It counts as used.
  Match find(std::span<const int32_t> tokens, int64_t n_ctx);
  /// Adds a prefix of no more than limit() bytes; others go, those that it begins with among them.
  void add(std::shared_ptr<const KvPrefix> prefix, int64_t n_ctx);
  /// Frees one that is not being read from; false when there is none.
  bool drop_one();

 private:
  struct Entry {
    std::shared_ptr<const KvPrefix> prefix;
    int64_t n_ctx = 0;
    bool used_again = false;
  };
  void erase(std::list<Entry>::iterator entry);

  size_t limit_;
  size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace snapkv::server
