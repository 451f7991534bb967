// SPDX-License-Identifier: MIT
#include "base/stop_check.h"

#include <atomic>

#include "base/check.h"
#include "base/error.h"

namespace snapkv {
namespace {

std::atomic<bool (*)()> g_is_stopped = nullptr;

}  // namespace

StopCheck::StopCheck(bool (*is_stopped)()) {
  SNAPKV_CHECK(g_is_stopped.exchange(is_stopped) == nullptr);
}

StopCheck::~StopCheck() { g_is_stopped = nullptr; }

void check_stop(const char* what) {
  bool (*const is_stopped)() = g_is_stopped;
  if (is_stopped != nullptr && is_stopped()) {
    fail(ErrorCode::kCancelled, "{} was cancelled", what);
  }
}

}  // namespace snapkv
