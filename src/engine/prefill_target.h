// SPDX-License-Identifier: MIT
// PrefillTarget: one session that a prompt is read for: what its policy wants to see, and the
// layers that will become its cache. Used by prefill.cpp, which may have several for one prompt.
#pragma once

#include <memory>
#include <vector>

#include "engine/session_impl.h"

namespace snapkv {

class PrefillTarget {
 public:
  /// `compress`: PrefillOptions::compress
  PrefillTarget(Session::Impl& session, int64_t n_tokens, bool compress);
  /// Without commit(): the session gets back what was taken from it.
  ~PrefillTarget();
  PrefillTarget(const PrefillTarget&) = delete;
  PrefillTarget& operator=(const PrefillTarget&) = delete;

  Session::Impl& session() { return session_; }
  /// Queries of the prompt's end that the policy wants.
  int64_t n_window() const { return n_window_; }
  /// Rows that layer il had before this prompt; nullptr if none.
  const KvLayer* old_layer(int il) const;
  /// Most rows that any head of layer il may have without being compressed.
  int64_t budget(int il) const;

  void begin_layer();
  /// Whether observe() must be called with every query of the prompt.
  bool observes() const { return compress_ && session_.policy->info().observes; }
  void observe(const QueryChunk& chunk);
  /// Selects rows of the scratch layer, which holds the whole prompt, and keeps them. `q_window`:
  /// the last n_window() queries. `may_take`: the scratch layer may become the cache when all is
  /// kept (and it is of the cache's type).
  void compress(int il, KvLayer& scratch, const Tensor& q_window, bool may_take);

  /// The session takes the result over. `shared` holds the times of what all targets share.
  void commit(std::vector<float> logits, const SessionStats& shared, double shared_seconds,
              size_t scratch_bytes);

 private:
  void take_scratch(int il, KvLayer& scratch);

  Session::Impl& session_;
  const int64_t n_tokens_;
  const bool compress_;
  const int64_t n_window_;
  std::unique_ptr<LayerSelector> selector_;       // of the current layer
  std::vector<KvLayer> fresh_;                    // [n_layer]
  std::vector<std::vector<int32_t>> old_n_kv_;    // [n_layer], of layers that take_scratch() freed
  std::vector<SessionStats::Layer> layer_stats_;  // [n_layer]
  QueryRing queries_;                             // with kv_decode_limit
  double score_seconds_ = 0, gather_seconds_ = 0;
  bool committed_ = false;
};

}  // namespace snapkv
