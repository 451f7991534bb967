// SPDX-License-Identifier: MIT
// MemoryAccount: the bytes that the server has reserved, by purpose. They are counted before
// anything is allocated.
#pragma once

#include <algorithm>
#include <cstddef>

namespace snapkv::server {

class MemoryAccount {
 public:
  explicit MemoryAccount(size_t limit) : limit_(limit) {}

  size_t limit() const { return limit_; }
  size_t used() const { return running_ + reading_ + kept_ + prefixes_; }
  size_t free() const { return limit_ - std::min(limit_, used()); }

  /// Bytes of sessions that answer or will answer, of the prompt being read, of kept sessions, and
  /// of prefixes.
  size_t& running() { return running_; }
  size_t& reading() { return reading_; }
  size_t& kept() { return kept_; }
  size_t& prefixes() { return prefixes_; }

 private:
  size_t limit_;
  size_t running_ = 0, reading_ = 0, kept_ = 0, prefixes_ = 0;
};

}  // namespace snapkv::server
