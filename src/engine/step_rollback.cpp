// SPDX-License-Identifier: MIT
#include "engine/step_rollback.h"

namespace snapkv {

void StepRollback::before(int64_t s, int il) {
  const std::span<const KvLayer::Head> heads = sessions_[s]->layers[il].heads();
  heads_.insert(heads_.end(), heads.begin(), heads.end());
  ++n_changed_;
}

StepRollback::~StepRollback() {
  const int64_t n_seq = std::ssize(sessions_);
  std::span<const KvLayer::Head> saved = heads_;
  for (int64_t i = 0; i < n_changed_; ++i) {
    Session::Impl& session = *sessions_[i % n_seq];
    KvLayer& layer = session.layers[i / n_seq];
    const size_t n = layer.heads().size();
    layer.restore_heads(saved.first(n));
    saved = saved.subspan(n);
    if (i < n_seq) session.queries.drop_pushed();
  }
}

}  // namespace snapkv
