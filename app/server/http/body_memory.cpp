// SPDX-License-Identifier: MIT
#include "server/http/body_memory.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/api/api_error.h"

namespace snapkv::server {
namespace {

/// A sixteenth of the memory is that of the largest body. Two of these parts are for bodies that
/// are received or whose prompts wait, the others for parsing.
constexpr size_t kParts = 16, kReceivingParts = 2;

/// Amounts up to this one wait for no larger one, and have an eighth of a limit for themselves.
constexpr size_t kSmall = size_t{256} << 10;
constexpr size_t kShareOfSmall = 8;

constexpr std::chrono::milliseconds kCheckEvery(100);
constexpr int kRetrySeconds = 5;
/// Freed memory that is worth giving back: it takes time in proportion to the heap.
constexpr size_t kWorthTrimming = size_t{4} << 20;

ApiError no_memory() {
  return ApiError(503, "the bodies of other requests take all memory for them (--body-memory)",
                  "too_many_bodies", "", kRetrySeconds);
}

}  // namespace

void MemoryLane::set_limit(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  changed_.notify_all();
}

size_t MemoryLane::most() const {
  const std::lock_guard lock(mutex_);
  return limit_ - limit_ / kShareOfSmall;
}

size_t MemoryLane::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

size_t MemoryLane::n_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + n_small_waiting_;
}

bool MemoryLane::fits(size_t bytes) const {
  const size_t limit = bytes <= kSmall ? limit_ : limit_ - limit_ / kShareOfSmall;
  return used_ + bytes <= limit;
}

bool MemoryLane::take(size_t bytes, double seconds, const Check& check) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  std::unique_lock lock(mutex_);
  const bool small = bytes <= kSmall;
  const auto place = small ? waiting_.end() : waiting_.insert(waiting_.end(), bytes);
  n_small_waiting_ += small ? 1 : 0;
  const auto leave = [&] {  // with the lock
    if (small) {
      --n_small_waiting_;
    } else {
      waiting_.erase(place);
    }
    changed_.notify_all();
  };
  while ((!small && place != waiting_.begin()) || !fits(bytes)) {
    if (Clock::now() >= until) {
      leave();
      return false;
    }
    changed_.wait_for(lock, kCheckEvery);
    lock.unlock();
    try {
      check();
    } catch (...) {
      lock.lock();
      leave();
      throw;
    }
    lock.lock();
  }
  used_ += bytes;
  leave();
  return true;
}

void MemoryLane::give_back(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  changed_.notify_all();
}

BodyMemory::Share& BodyMemory::Share::operator=(Share&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(received_, other.received_);
  std::swap(parsing_, other.parsing_);
  return *this;
}

BodyMemory::Share::~Share() {
  end_parsing();
  if (memory_ != nullptr) memory_->receiving_.give_back(received_);
}

void BodyMemory::Share::end_parsing() {
  if (parsing_ > 0) memory_->give_back_parsing(std::exchange(parsing_, 0));
}

BodyMemory::BodyMemory(size_t bytes, double seconds) : seconds_(seconds) { set_limit(bytes); }

void BodyMemory::set_limit(size_t bytes) {
  receiving_.set_limit(bytes / kParts * kReceivingParts);
  parsing_.set_limit(bytes / kParts * (kParts - kReceivingParts));
}

size_t BodyMemory::most_body() const { return receiving_.most() * 4 / 7; }

void BodyMemory::receive(Share& share, size_t bytes, const Check& check) {
  if (!receiving_.take(bytes, seconds_, check)) throw no_memory();
  share.memory_ = this;
  share.received_ += bytes;
}

void BodyMemory::parse(Share& share, size_t bytes, const Check& check) {
  if (bytes > parsing_.most()) {
    throw ApiError(413,
                   "to parse the body would take more memory than there is for bodies "
                   "(--body-memory)",
                   "request_too_large");
  }
  if (!parsing_.take(bytes, seconds_, check)) throw no_memory();
  share.memory_ = this;
  share.parsing_ += bytes;
}

void BodyMemory::give_back_parsing(size_t bytes) {
  {
    const std::lock_guard lock(freed_mutex_);
    freed_ += bytes;
  }
  parsing_.give_back(bytes);
}

void BodyMemory::trim() {
  {
    const std::lock_guard lock(freed_mutex_);
    if (freed_ < kWorthTrimming) return;
    freed_ = 0;
  }
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace snapkv::server
