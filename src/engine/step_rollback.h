// SPDX-License-Identifier: MIT
// StepRollback: undoes a decode step that fails, so that an Error leaves every session as it was.
#pragma once

#include <span>

#include "engine/session_impl.h"

namespace snapkv {

class StepRollback {
 public:
  explicit StepRollback(std::span<Session::Impl* const> sessions) : sessions_(sessions) {}
  ~StepRollback();
  StepRollback(const StepRollback&) = delete;
  StepRollback& operator=(const StepRollback&) = delete;

  /// Must be called before each change of a layer. Layers come in order, and within a layer the
  /// sessions.
  void before(LayerState& layer) {
    layer.snapshot();
    ++n_changed_;
  }
  /// Keeps the rows of the step, which has succeeded.
  void commit() { n_changed_ = 0; }

 private:
  std::span<Session::Impl* const> sessions_;
  int64_t n_changed_ = 0;  // pairs of a layer and a session
};

}  // namespace snapkv
