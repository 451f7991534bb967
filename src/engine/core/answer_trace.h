// SPDX-License-Identifier: MIT
// AnswerTrace: which positions the tokens of an answer attend to (Session::trace_answer). Decoding
// computes nothing for it but copies of some layers' queries; every kPiece tokens the op that
// SnapKV votes with reads the keys of these layers once for all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "engine/core/query_ring.h"
#include "snapkv/engine.h"

namespace snapkv {

struct ModelSpec;

class AnswerTrace {
 public:
  AnswerTrace() = default;  // traces nothing
  /// For a session of this model that has seen n_tokens.
  AnswerTrace(Backend& backend, const ModelSpec& spec, int64_t n_tokens);

  explicit operator bool() const { return !layers_.empty(); }
  /// Keeps the query q [n_head, head_dim] f32 of the i-th token that is being decoded, if layer il
  /// is one of those that are looked at. Call advance() after the step.
  void push(Backend& backend, int il, int64_t i, const void* q);
  void advance(int64_t n_tokens);
  /// Forgets the queries of the last n tokens.
  void pop(int64_t n_tokens);
  /// How many more tokens it has room for.
  int64_t room() const { return kPiece - n_pending_; }

  /// The layers whose pending queries must be voted with before more of them come.
  const std::vector<int>& layers() const { return layers_; }
  int64_t n_pending() const { return n_pending_; }
  /// The pending queries of layers()[k], oldest first: [n_pending, n_head, head_dim] f32.
  Buffer pending(Backend& backend, int k) const { return queries_.last(backend, k, n_pending_); }
  /// Notes what a pending query of layers()[k] gives a position: kept if it is the most so far.
  void note(int k, int32_t position, float attention);
  void clear_pending() { n_pending_ = 0; }

  /// [n_tokens]: the mean over the layers of the strongest attention to each position.
  std::vector<float> attention() const;

  static constexpr int64_t kPiece = 16;

 private:
  std::vector<int> layers_;
  QueryRing queries_;  // its layers are those of layers_
  int64_t n_pending_ = 0;
  std::vector<std::vector<float>> strongest_;  // [layers_][n_tokens]
};

/// Lets the queries that a session's trace keeps vote, which makes room for more. The rows of the
/// tokens that they belong to must be the session's last ones. Does nothing if there is no trace.
void vote_pending(Session::Impl& session);

}  // namespace snapkv
