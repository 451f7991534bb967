// SPDX-License-Identifier: MIT
// BodyMemory: the memory that the bodies of requests may take, from their first byte to the tokens
// of their prompts. A body waits for its share before it is read, so that a client that sends more
// than there is room for is held up by its connection. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

namespace snapkv::server {

/// One limit, and those that wait for a part of it.
class MemoryLane {
 public:
  /// Called while waiting, now and then; throws to give up.
  using Check = std::function<void()>;

  void set_limit(size_t bytes);
  /// The most that take() may be asked for.
  size_t most() const;
  /// Waits until `bytes` are free, in the order of the calls; small amounts don't wait for large
  /// ones. Returns false if they are not after `seconds`.
  bool take(size_t bytes, double seconds, const Check& check);
  void give_back(size_t bytes);
  size_t used() const;
  size_t n_waiting() const;

 private:
  bool fits(size_t bytes) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t limit_ = 0, used_ = 0;  // guarded by mutex_
  std::list<size_t> waiting_;    // guarded by mutex_: large amounts, first come first
  size_t n_small_waiting_ = 0;   // guarded by mutex_
};

class BodyMemory {
 public:
  using Check = MemoryLane::Check;

  /// A body's share, given back in the end.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept;
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    /// The body has become a prompt; its text and tokens still take what receive() asked for.
    void end_parsing();

   private:
    friend class BodyMemory;
    BodyMemory* memory_ = nullptr;
    size_t received_ = 0, parsing_ = 0;
  };

  /// `seconds`: how long a body waits for memory.
  explicit BodyMemory(size_t bytes, double seconds);
  void set_limit(size_t bytes);
  /// Bytes of the largest body.
  size_t most_body() const;

  /// Wait for the memory to receive `bytes` (more), and to parse a received body, which takes
  /// `bytes`. Throw ApiError: 503 after too long a wait, 413 if there is never so much.
  void receive(Share& share, size_t bytes, const Check& check);
  void parse(Share& share, size_t bytes, const Check& check);

  /// Bytes in use, for tests and for knowing when nothing is going on.
  size_t used() const { return receiving_.used() + parsing_.used(); }
  /// Bodies that wait for memory.
  size_t n_waiting() const { return receiving_.n_waiting() + parsing_.n_waiting(); }
  /// Returns freed memory to the system after large bodies. To be called now and then.
  void trim();

 private:
  void give_back_parsing(size_t bytes);

  const double seconds_;
  MemoryLane receiving_, parsing_;
  std::mutex freed_mutex_;
  size_t freed_ = 0;  // guarded by freed_mutex_: bytes of parsing since the last trim()
};

}  // namespace snapkv::server
