// SPDX-License-Identifier: MIT
// Stopping long work that has no progress callback: checksums and files of caches. A program says
// how to find out whether it is to stop; the engine asks between pieces of the work.
#pragma once

namespace snapkv {

/// While it lives, check_stop() asks `is_stopped`, which any thread may call. One at a time, for a
/// program that does one thing: the server has none, and writes what it has begun.
class StopCheck {
 public:
  explicit StopCheck(bool (*is_stopped)());
  StopCheck(const StopCheck&) = delete;
  StopCheck& operator=(const StopCheck&) = delete;
  ~StopCheck();
};

/// Throws Error{kCancelled}, "reading the cache was cancelled", when the program is to stop.
void check_stop(const char* what);

}  // namespace snapkv
