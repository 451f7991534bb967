// SPDX-License-Identifier: MIT
// One decode step for a batch of sequences, of one token or several each: weights are read once for
// all of them, and each sequence attends to its own rows.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/timer.h"
#include "engine/core/finite_check.h"
#include "engine/core/kv_types.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/decode/decode_step.h"
#include "engine/decode/recompress.h"
#include "engine/decode/step_pass.h"

namespace snapkv {
namespace {

/// Throws unless session i can append these tokens.
void check_tokens(const Session::Impl& s, StepTokens tokens, size_t i, const char* call) {
  const int64_t n = std::ssize(tokens);
  if (n == 0) fail(ErrorCode::kUsage, "{}: there is no token for session {}", call, i);
  for (const int32_t token : tokens) {
    if (token >= 0 && token < s.info().n_vocab) continue;
    fail(ErrorCode::kUsage, "{}: token {} is not in the vocabulary of {} tokens", call, token,
         s.info().n_vocab);
  }
  if (s.n_past + n > s.n_ctx) {
    fail(ErrorCode::kContextExceeded, "the context of {} tokens is full", s.n_ctx);
  }
  if (n > decode_room(s)) {
    fail(ErrorCode::kUsage, "{}: {} tokens for session {}, which has room for {} in a step", call,
         n, i, decode_room(s));
  }
}

/// Reserves room for n new rows in every layer, and with a limit no more than will be used.
void reserve_rows(Session::Impl& s, int32_t n) {
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    const int64_t step = std::min(s.options.decode_reserve, steps_to_limit(s, il));
    s.layers[il]->reserve(s.backend(), n, static_cast<int32_t>(step));
    if (!s.reads_all(il)) continue;
    // all of a long prompt's rows are copied, so seldom
    const int32_t grown = std::max(kHistoryGrowth, s.history[il]->most_rows() / 8);
    s.history[il]->reserve(s.backend(), n, grown);
  }
}

/// Allocates everything that the step needs, before the first change.
void prepare(Session::Impl& s, int64_t n_tokens) {
  const int64_t n_vocab = s.architecture().config().n_vocab;
  if (s.trace && n_tokens > s.trace.room()) vote_pending(s);
  s.note_room(n_tokens);
  prepare_rows(s, n_tokens);
  s.logits.reserve(s.backend(), n_vocab);
  if (n_tokens > 1) s.run_logits.reserve(s.backend(), (n_tokens + 1) * n_vocab);
}

/// Notes that a session has read these tokens, with their logits [n, n_vocab].
void advance(Session::Impl& s, StepTokens tokens, std::span<const float> logits, double seconds) {
  const int64_t n = std::ssize(tokens);
  const int64_t n_vocab = s.architecture().config().n_vocab;
  if (n > 1) {
    const std::span<const float> before = s.logits.values().last(n_vocab);
    s.run_logits.assign(s.backend(), before, logits);
  }
  s.logits.assign(s.backend(), logits.last(n_vocab));
  s.n_run = n > 1 ? n : 0;
  s.n_past += n;
  s.note(tokens);
  if (s.queries) s.queries.advance(n);
  if (s.trace) s.trace.advance(n);
  s.stats.n_decoded += n;
  s.stats.decode_seconds += seconds;
  s.update_memory_stats();
}

}  // namespace

void check_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens,
                const char* call) {
  if (sessions.empty() || sessions.size() != tokens.size()) {
    fail(ErrorCode::kUsage, "{}: {} sessions and {} tokens", call, sessions.size(), tokens.size());
  }
  for (size_t i = 0; i < sessions.size(); ++i) {
    const Session::Impl& s = *sessions[i];
    if (s.layers.empty()) fail(ErrorCode::kUsage, "{}: session {} has read no prompt yet", call, i);
    if (s.model != sessions[0]->model || s.options.kv_type != sessions[0]->options.kv_type) {
      fail(ErrorCode::kUsage, "{}: session {} has another model or KV type than session 0", call,
           i);
    }
    check_rotation(s, *sessions[0], i);
    if (std::count(sessions.begin(), sessions.end(), &s) != 1) {
      fail(ErrorCode::kUsage, "{}: session {} is in the batch twice", call, i);
    }
    check_tokens(s, tokens[i], i, call);
  }
}

void prepare_rows(Session::Impl& s, int64_t n_tokens) {
  recompress_at_limit(s);
  reserve_rows(s, static_cast<int32_t>(n_tokens));
}

std::vector<int32_t> step_positions(std::span<Session::Impl* const> sessions,
                                    std::span<const StepTokens> tokens) {
  std::vector<int32_t> pos;
  for (size_t i = 0; i < sessions.size(); ++i) {
    for (int64_t t = 0; t < std::ssize(tokens[i]); ++t) {
      pos.push_back(static_cast<int32_t>(sessions[i]->n_past + t));
    }
  }
  return pos;
}

int64_t decode_room(const Session::Impl& s) {
  int64_t room = std::min(kMostStepTokens, s.n_ctx - s.n_past);
  if (!s.queries) return room;
  room = std::min(room, std::max<int64_t>(1, s.queries.n_spare()));
  const int64_t tail = s.options.kv_decode_limit - s.policy->budget_for(s.n_past);
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    const int64_t steps = steps_to_limit(s, il);
    room = std::min(room, steps > 0 ? steps : tail);  // at 0 the step compresses first
  }
  return room;
}

void decode_batch(std::span<Session* const> batch, std::span<const int32_t> tokens) {
  std::vector<StepTokens> of_sessions;
  for (const int32_t& token : tokens) of_sessions.emplace_back(&token, 1);
  decode_steps(batch, of_sessions);
}

void decode_steps(std::span<Session* const> batch, std::span<const StepTokens> tokens) {
  const std::vector<Session::Impl*> sessions = Session::states(batch, "decode");
  const SessionsInUse in_use(sessions, "decode");
  check_step(sessions, tokens, "decode");
  decode_step(sessions, tokens);
}

void decode_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens) {
  const Timer timer;
  Session::Impl& first = *sessions[0];
  // everything that may run out of memory comes before the first change
  const std::vector<int32_t> pos = step_positions(sessions, tokens);
  const int64_t n = std::ssize(pos), n_vocab = first.info().n_vocab;
  reserve_pass(first, n);
  for (size_t i = 0; i < sessions.size(); ++i) prepare(*sessions[i], std::ssize(tokens[i]));

  StepRollback rollback(sessions, tokens);
  const std::span<const float> rows =
      run_pass({.sessions = sessions, .tokens = tokens, .pos = pos, .rollback = &rollback});
  if (first.parts.weight_pages != nullptr) first.parts.weight_pages->after_step(timer.seconds());
  const double seconds = timer.seconds();
  if (first.backend().computes()) require_finite_logits(rows, n_vocab, "a decode step");
  rollback.commit();
  int64_t begin = 0;
  for (size_t i = 0; i < sessions.size(); ++i) {
    const int64_t n_tokens = std::ssize(tokens[i]);
    advance(*sessions[i], tokens[i], rows.subspan(begin * n_vocab, n_tokens * n_vocab), seconds);
    sessions[i]->stats.last_step = {n, std::ssize(sessions), seconds};
    begin += n_tokens;
  }
}

int64_t keep_decoded(Session::Impl& s, int64_t n) {
  if (n < 0 || n > s.n_run) {
    fail(ErrorCode::kUsage, "keep_decoded({}): {} tokens can be kept or forgotten", n, s.n_run);
  }
  if (n == s.n_run) return n;
  const bool can_cut = std::all_of(s.layers.begin(), s.layers.end(), [](const auto& layer) {
    return layer->as_recurrent() == nullptr;
  });
  if (!can_cut) n = 0;
  const auto cut = [n](LayerState& state) {
    if (n == 0) {
      state.roll_back();
    } else {
      SNAPKV_CHECK(state.keep_first(static_cast<int32_t>(n)));
    }
  };
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    cut(*s.layers[il]);
    if (s.reads_all(il)) cut(*s.history[il]);
  }
  const int64_t n_forgotten = s.n_run - n;
  const int64_t n_vocab = s.info().n_vocab;
  s.logits.assign(s.backend(), s.run_logits.values().subspan(n * n_vocab, n_vocab));
  if (s.queries) s.queries.pop(n_forgotten);
  if (s.trace) s.trace.pop(n_forgotten);
  s.n_run = n;
  s.n_past -= n_forgotten;
  s.text.resize(s.text.size() - std::min(s.text.size(), static_cast<size_t>(n_forgotten)));
  s.stats.n_decoded -= n_forgotten;
  s.update_memory_stats();
  return n;
}

}  // namespace snapkv
