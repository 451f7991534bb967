// SPDX-License-Identifier: MIT
// Stops long work that has no progress callback: checksums and files of caches. A program tells it
// how to find out whether to stop; the engine asks between pieces of the work.
#pragma once

namespace snapkv {

/// While an object exists, check_stop() calls `is_stopped`, from any thread. There can be only one,
/// for a program that does one thing at a time; the server has none, and finishes what it has
/// begun.
class StopCheck {
 public:
  explicit StopCheck(bool (*is_stopped)());
  StopCheck(const StopCheck&) = delete;
  StopCheck& operator=(const StopCheck&) = delete;
  ~StopCheck();
};

/// Throws Error{kCancelled}, "reading the cache was cancelled", if the program is to stop.
void check_stop(const char* what);

}  // namespace snapkv
