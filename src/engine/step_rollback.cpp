// SPDX-License-Identifier: MIT
#include "engine/step_rollback.h"

namespace snapkv {

StepRollback::~StepRollback() {
  const int64_t n_seq = std::ssize(sessions_);
  for (int64_t i = 0; i < n_changed_; ++i) {
    Session::Impl& session = *sessions_[i % n_seq];
    session.layers[i / n_seq]->roll_back();
    if (i < n_seq) session.queries.drop_pushed();
  }
}

}  // namespace snapkv
