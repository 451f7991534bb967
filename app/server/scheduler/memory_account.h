// SPDX-License-Identifier: MIT
// MemoryAccount: the bytes that the server has reserved, by purpose. They are counted before
// anything is allocated. Reservation: those of one request.
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
  size_t running() const { return running_; }
  size_t reading() const { return reading_; }
  size_t kept() const { return kept_; }
  size_t prefixes() const { return prefixes_; }

 private:
  size_t limit_;
  size_t running_ = 0, reading_ = 0, kept_ = 0, prefixes_ = 0;
};

/// Bytes that a request takes.
struct RequestBytes {
  size_t running = 0;  ///< until its answers are done
  size_t reading = 0;  ///< until its prompt is read
  size_t prefix = 0;   ///< the same for the prefix that it makes
};

/// The bytes that an account holds for one request. They are free again when this is destroyed,
/// which must be before the account.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { release(); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// Counts more bytes; always in the same account.
  void add(MemoryAccount& account, const RequestBytes& bytes) {
    account_ = &account;
    account.running() += bytes.running;
    account.reading() += bytes.reading + bytes.prefix;
    bytes_.running += bytes.running;
    bytes_.reading += bytes.reading;
    bytes_.prefix += bytes.prefix;
  }
  const RequestBytes& bytes() const { return bytes_; }

  /// Frees what is only needed while the prompt is read.
  void end_reading() {
    if (account_ == nullptr) return;
    account_->reading() -= bytes_.reading + bytes_.prefix;
    bytes_.reading = bytes_.prefix = 0;
  }
  /// Frees some of the bytes that were reserved until the answers are done.
  void end_part(size_t running) {
    if (account_ == nullptr) return;
    running = std::min(running, bytes_.running);
    account_->running() -= running;
    bytes_.running -= running;
  }
  void release() {
    end_reading();
    if (account_ == nullptr) return;
    account_->running() -= bytes_.running;
    bytes_.running = 0;
  }

 private:
  MemoryAccount* account_ = nullptr;
  RequestBytes bytes_;
};

}  // namespace snapkv::server
