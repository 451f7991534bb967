// SPDX-License-Identifier: MIT
// SessionsInUse: marks sessions so that they reject other calls while a prompt or a step runs: a
// callback that read a prompt into its own session would count it twice.
#pragma once

#include <span>

#include "base/error.h"
#include "engine/core/session_impl.h"

namespace snapkv {

class SessionsInUse {
 public:
  /// Throws Error{kUsage} naming the first session that is in use.
  SessionsInUse(std::span<Session::Impl* const> sessions, const char* call) : sessions_(sessions) {
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (!sessions[i]->in_use) continue;
      fail(ErrorCode::kUsage, "{}: session {} is in use: a callback of its own call can't call it",
           call, i);
    }
    for (Session::Impl* s : sessions) s->in_use = true;
  }
  ~SessionsInUse() {
    for (Session::Impl* s : sessions_) s->in_use = false;
  }
  SessionsInUse(const SessionsInUse&) = delete;
  SessionsInUse& operator=(const SessionsInUse&) = delete;

 private:
  std::span<Session::Impl* const> sessions_;
};

}  // namespace snapkv
