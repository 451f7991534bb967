// SPDX-License-Identifier: MIT
// StepRollback: the rows that a decode step has appended so far, taken back when the step does not
// reach its end, so that an Error leaves every session as it was. Used by decode.cpp.
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

  /// The next session of the current layer has its new row: layers in order, within a layer the
  /// sessions in order.
  void appended() { ++n_appended_; }
  /// The step is done and its rows stay.
  void commit() { n_appended_ = 0; }

 private:
  std::span<Session::Impl* const> sessions_;
  int64_t n_appended_ = 0;
};

}  // namespace snapkv
