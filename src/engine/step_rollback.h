// SPDX-License-Identifier: MIT
// StepRollback: what the layers' heads held before a decode step, restored when the step does not
// reach its end, so that an Error leaves every session as it was. Used by decode.cpp.
#pragma once

#include <span>
#include <vector>

#include "engine/session_impl.h"

namespace snapkv {

class StepRollback {
 public:
  /// `heads` is memory that is kept from step to step, so that no step allocates.
  StepRollback(std::span<Session::Impl* const> sessions, std::vector<KvLayer::Head>& heads)
      : sessions_(sessions), heads_(heads) {
    heads_.clear();
  }
  ~StepRollback();
  StepRollback(const StepRollback&) = delete;
  StepRollback& operator=(const StepRollback&) = delete;

  /// Call it before each change: it saves the heads of session s in layer il. Layers come in order,
  /// and within a layer the sessions do.
  void before(int64_t s, int il);
  /// The step is done and its rows stay.
  void commit() { n_changed_ = 0; }

 private:
  std::span<Session::Impl* const> sessions_;
  std::vector<KvLayer::Head>& heads_;  // [n_changed, n_head_kv]
  int64_t n_changed_ = 0;              // pairs of layer and session
};

}  // namespace snapkv
