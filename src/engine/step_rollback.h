// SPDX-License-Identifier: MIT
// StepRollback: saves the layers' heads before a decode step changes them and restores them if the
// step fails, so that an Error leaves every session as it was.
#pragma once

#include <span>
#include <vector>

#include "engine/session_impl.h"

namespace snapkv {

class StepRollback {
 public:
  /// `heads` is memory that is reused from step to step, so that no step allocates.
  StepRollback(std::span<Session::Impl* const> sessions, std::vector<KvLayer::Head>& heads)
      : sessions_(sessions), heads_(heads) {
    heads_.clear();
  }
  ~StepRollback();
  StepRollback(const StepRollback&) = delete;
  StepRollback& operator=(const StepRollback&) = delete;

  /// Saves the heads of session s in layer il; must be called before each change. Layers come in
  /// order, and so do the sessions within a layer.
  void before(int64_t s, int il);
  /// Keeps the rows of the step, which has succeeded.
  void commit() { n_changed_ = 0; }

 private:
  std::span<Session::Impl* const> sessions_;
  std::vector<KvLayer::Head>& heads_;  // [n_changed, n_head_kv]
  int64_t n_changed_ = 0;              // pairs of a layer and a session
};

}  // namespace snapkv
