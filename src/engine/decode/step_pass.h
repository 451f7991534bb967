// SPDX-License-Identifier: MIT
// run_pass(): a few tokens of each of several sequences go through all layers together, so that
// weights are read once for all. What it appends to, and what undoes it, is up to its callers: a
// decode step reads what the session remembers, guesses read less (guess_tokens).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/session_impl.h"

namespace snapkv {

/// Undoes a step that fails, so that an Error leaves every session as it was.
class StepRollback {
 public:
  StepRollback(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens);
  ~StepRollback();
  StepRollback(const StepRollback&) = delete;
  StepRollback& operator=(const StepRollback&) = delete;

  /// Must be called before the first change of a layer's state in the i-th session.
  void before(size_t i, LayerState& layer);
  /// Keeps the tokens of the step, which has succeeded.
  void commit() { changed_.clear(); }

 private:
  std::span<Session::Impl* const> sessions_;
  std::span<const StepTokens> tokens_;
  struct Change {
    size_t session;
    LayerState* layer;
  };
  std::vector<Change> changed_;  // never grows beyond its first capacity: before() may not fail
};

struct StepPass {
  std::span<Session::Impl* const> sessions;
  std::span<const StepTokens> tokens;  ///< of each session, at least one
  std::span<const int32_t> pos;        ///< of all tokens
  /// null: the pass makes guesses. It then reads and appends to the kept rows, and to copies of
  /// recurrent states (Session::Impl::draft_states), and keeps no queries; the caller undoes it.
  /// Else: it reads all rows that there are, and appends to these and to the kept ones.
  StepRollback* rollback = nullptr;
};

/// Allocates what a pass of n tokens needs, which belongs to its first session and never shrinks.
void reserve_pass(Session::Impl& first, int64_t n_tokens);

/// Runs a pass, for which every state and the pass's memory must have room. Returns the logits
/// [n_tokens, n_vocab] in host memory, valid until the first session's next pass.
std::span<float> run_pass(const StepPass& pass);

}  // namespace snapkv
