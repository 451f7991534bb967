// SPDX-License-Identifier: MIT
// One decode step for a batch of sequences, of one token or several each: weights are read once for
// all of them, and each sequence attends to its own rows.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/timer.h"
#include "cache/recurrent_state.h"
#include "engine/core/finite_check.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/decode/decode_step.h"
#include "engine/decode/recompress.h"

namespace snapkv {
namespace {

/// Undoes a step that fails, so that an Error leaves every session as it was.
class StepRollback {
 public:
  StepRollback(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens)
      : sessions_(sessions), tokens_(tokens) {}
  ~StepRollback() {
    const int64_t n_seq = std::ssize(sessions_);
    for (int64_t i = 0; i < n_changed_; ++i) {
      Session::Impl& session = *sessions_[i % n_seq];
      session.layers[i / n_seq]->roll_back();
      if (i < n_seq) session.queries.drop_pushed(std::ssize(tokens_[i]));
    }
  }
  StepRollback(const StepRollback&) = delete;
  StepRollback& operator=(const StepRollback&) = delete;

  /// Must be called before each change. Layers come in order, and within a layer the sessions.
  void before(LayerState& layer) {
    layer.snapshot();
    ++n_changed_;
  }
  /// Keeps the rows of the step, which has succeeded.
  void commit() { n_changed_ = 0; }

 private:
  std::span<Session::Impl* const> sessions_;
  std::span<const StepTokens> tokens_;
  int64_t n_changed_ = 0;  // pairs of a layer and a session
};

/// Appends each sequence's new rows to its own cache, unless the layer reads rows of another one,
/// and attends to that cache alone.
class DecodeAttentionStep final : public AttentionStep {
 public:
  DecodeAttentionStep(Backend& backend, const Architecture& architecture,
                      std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens,
                      std::span<const int32_t> pos, std::vector<HeadRows>& heads,
                      StepRollback& rollback)
      : backend_(backend),
        architecture_(architecture),
        sessions_(sessions),
        tokens_(tokens),
        pos_(pos),
        heads_(heads),
        rollback_(rollback) {}

  void begin(int il) { il_ = il; }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    const LayerSpec& spec = architecture_.layer_spec(il_);
    const int rows_of = architecture_.spec().rows_of(il_);
    heads_.clear();
    int64_t begin = 0;
    for (int64_t s = 0; s < std::ssize(sessions_); ++s) {
      const int64_t n = std::ssize(tokens_[s]);
      RowState& layer = sessions_[s]->layers[rows_of]->rows();
      rollback_.before(*sessions_[s]->layers[il_]);
      if (k) {
        layer.append(backend_, k.slice(begin, begin + n), v.slice(begin, begin + n),
                     pos_.subspan(begin, n));
      }
      for (int64_t i = 0; i < n; ++i) {
        layer.visible_rows(heads_, static_cast<int32_t>(n - 1 - i));
        keep_query(*sessions_[s], i, q.at<const void>(begin + i));
      }
      begin += n;
    }
    DecodeAttention a;
    a.q = q;
    a.heads = heads_;
    a.kv_dtype = sessions_[0]->options.kv_type;
    a.scale = spec.scale;
    a.out = out;
    a.variant = architecture_.variant(il_);
    a.v_in_k = spec.state.v_in_k;
    a.variant.window = 0;  // the state has left out the rows before the window
    ops::attention_decode(backend_, a);
  }

 private:
  /// Keeps the query of the i-th of a session's tokens, if anything wants it.
  void keep_query(Session::Impl& session, int64_t i, const void* q) {
    if (session.queries) session.queries.push(backend_, il_, i, q);
    if (session.trace) session.trace.push(backend_, il_, i, q);
  }

  Backend& backend_;
  const Architecture& architecture_;
  std::span<Session::Impl* const> sessions_;
  std::span<const StepTokens> tokens_;
  std::span<const int32_t> pos_;
  std::vector<HeadRows>& heads_;
  StepRollback& rollback_;
  int il_ = 0;
};

/// The rows of each session in layer il: one for each token. In a layer without rows, its state
/// before the step and the memory for the state after it.
void begin_layer(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens,
                 int il, StepRollback& rollback, std::vector<SequenceRows>& sequences) {
  int64_t begin = 0;
  for (int64_t s = 0; s < std::ssize(sessions); ++s) {
    sequences[s] = {.begin = begin, .end = begin + std::ssize(tokens[s])};
    begin = sequences[s].end;
    RecurrentState* const state = sessions[s]->layers[il]->as_recurrent();
    if (state == nullptr) continue;
    rollback.before(*state);
    sequences[s].from = state->now();
    sequences[s].to = state->next();
  }
}

/// Throws unless session i can append these tokens.
void check_tokens(const Session::Impl& s, StepTokens tokens, size_t i) {
  const int64_t n = std::ssize(tokens);
  if (n == 0) fail(ErrorCode::kUsage, "decode: there is no token for session {}", i);
  for (const int32_t token : tokens) {
    if (token >= 0 && token < s.info().n_vocab) continue;
    fail(ErrorCode::kUsage, "decode: token {} is not in the vocabulary of {} tokens", token,
         s.info().n_vocab);
  }
  if (s.n_past + n > s.n_ctx) {
    fail(ErrorCode::kContextExceeded, "the context of {} tokens is full", s.n_ctx);
  }
  if (n > decode_room(s)) {
    fail(ErrorCode::kUsage, "decode: {} tokens for session {}, which has room for {} in a step", n,
         i, decode_room(s));
  }
}

void check_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens) {
  if (sessions.empty() || sessions.size() != tokens.size()) {
    fail(ErrorCode::kUsage, "decode: {} sessions and {} tokens", sessions.size(), tokens.size());
  }
  for (size_t i = 0; i < sessions.size(); ++i) {
    const Session::Impl& s = *sessions[i];
    if (s.layers.empty()) fail(ErrorCode::kUsage, "decode: session {} has read no prompt yet", i);
    if (s.model != sessions[0]->model || s.options.kv_type != sessions[0]->options.kv_type) {
      fail(ErrorCode::kUsage, "decode: session {} has another model or KV type than session 0", i);
    }
    check_rotation(s, *sessions[0], i);
    if (std::count(sessions.begin(), sessions.end(), &s) != 1) {
      fail(ErrorCode::kUsage, "decode: session {} is in the batch twice", i);
    }
    check_tokens(s, tokens[i], i);
  }
}

/// Allocates the step's memory, which the first session owns; it never shrinks.
void ensure_memory(Session::Impl& first, int64_t n_tokens) {
  const ModelConfig& config = first.architecture().config();
  first.decode_buffers.ensure(first.backend(), first.architecture().activations(), n_tokens,
                              DType::f32);
  if (n_tokens <= first.decode_rows) return;
  const auto allocate = [&](int64_t n_cols) {
    return first.backend().allocate(n_tokens * n_cols * sizeof(float), LogitRows::kLabel);
  };
  first.decode_x = allocate(config.n_embd);
  first.decode_logits = allocate(config.n_vocab);
  first.step_logits = LogitRows(first.backend(), n_tokens * config.n_vocab);
  first.decode_rows = n_tokens;
}

/// Brackets the ops of a step; tells the backend if not all of them were completed.
class BackendStep {
 public:
  BackendStep(Backend& backend, uint64_t shape) : backend_(backend) { backend.begin_step(shape); }
  ~BackendStep() {
    if (!completed_) backend_.end_step(false);
  }
  BackendStep(const BackendStep&) = delete;
  BackendStep& operator=(const BackendStep&) = delete;
  void complete() {
    completed_ = true;
    backend_.end_step(true);
  }

 private:
  Backend& backend_;
  bool completed_ = false;
};

/// The shape of a step as Backend::begin_step takes it: a hash of the addresses and numbers that
/// the step's ops receive.
uint64_t step_shape(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens,
                    const Tensor& x, const Tensor& logits) {
  Fnv1a hash;
  hash.add(reinterpret_cast<uintptr_t>(x.data));
  hash.add(reinterpret_cast<uintptr_t>(logits.data));
  hash.add(reinterpret_cast<uintptr_t>(sessions[0]->decode_buffers.data()));
  hash.add(sessions.size());
  for (const StepTokens& of_session : tokens) hash.add(of_session.size());
  hash.add(static_cast<uint64_t>(sessions[0]->options.kv_type));
  for (int64_t il = 0; il < std::ssize(sessions[0]->layers); ++il) {
    int32_t most = 0;  // the most rows that the step's attention sees
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (const RowState* rows = sessions[i]->layers[il]->as_rows()) {
        most = std::max(most, rows->most_rows() + static_cast<int32_t>(tokens[i].size()));
      }
    }
    hash.add((most + kStepRows - 1) / kStepRows);
  }
  return hash.value();
}

/// Reserves room for n new rows in every layer, and with a limit no more than will be used.
void reserve_rows(Session::Impl& s, int32_t n) {
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    const int64_t step = std::min(s.options.decode_reserve, steps_to_limit(s, il));
    s.layers[il]->reserve(s.backend(), n, static_cast<int32_t>(step));
  }
}

/// Allocates everything that the step needs, before the first change.
void prepare(Session::Impl& s, int64_t n_tokens) {
  const int64_t n_vocab = s.architecture().config().n_vocab;
  if (s.trace && n_tokens > s.trace.room()) vote_pending(s);
  recompress_at_limit(s);
  reserve_rows(s, static_cast<int32_t>(n_tokens));
  s.logits.reserve(s.backend(), n_vocab);
  if (n_tokens > 1) s.run_logits.reserve(s.backend(), (n_tokens + 1) * n_vocab);
}

/// Notes that a session has read n more tokens, with their logits [n, n_vocab].
void advance(Session::Impl& s, std::span<const float> logits, int64_t n, double seconds) {
  const int64_t n_vocab = s.architecture().config().n_vocab;
  if (n > 1) {
    const std::span<const float> before = s.logits.values().last(n_vocab);
    s.run_logits.assign(s.backend(), before, logits);
  }
  s.logits.assign(s.backend(), logits.last(n_vocab));
  s.n_run = n > 1 ? n : 0;
  s.n_past += n;
  if (s.queries) s.queries.advance(n);
  if (s.trace) s.trace.advance(n);
  s.stats.n_decoded += n;
  s.stats.decode_seconds += seconds;
  s.update_memory_stats();
}

}  // namespace

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
  check_step(sessions, tokens);
  decode_step(sessions, tokens);
}

void decode_step(std::span<Session::Impl* const> sessions, std::span<const StepTokens> tokens) {
  const Timer timer;
  Session::Impl& first = *sessions[0];
  Backend& backend = first.backend();
  const Architecture& architecture = first.architecture();
  const ModelConfig& config = architecture.config();

  // everything that may run out of memory comes before the first change
  std::vector<int32_t> ids, pos;
  for (size_t i = 0; i < sessions.size(); ++i) {
    ids.insert(ids.end(), tokens[i].begin(), tokens[i].end());
    for (int64_t t = 0; t < std::ssize(tokens[i]); ++t) {
      pos.push_back(static_cast<int32_t>(sessions[i]->n_past + t));
    }
  }
  const int64_t n = std::ssize(ids);
  ensure_memory(first, n);
  for (size_t i = 0; i < sessions.size(); ++i) prepare(*sessions[i], std::ssize(tokens[i]));

  const Tensor x = first.decode_x.view(DType::f32, {n, config.n_embd});
  const Tensor logits = first.decode_logits.view(DType::f32, {n, config.n_vocab});
  LinearRunner linear(backend);
  StepRollback rollback(sessions, tokens);
  DecodeAttentionStep attention(backend, architecture, sessions, tokens, pos, first.decode_heads,
                                rollback);
  // queries are kept by copies, which a step can't hold
  const bool copies = std::any_of(sessions.begin(), sessions.end(),
                                  [](const Session::Impl* s) { return s->queries || s->trace; });
  std::optional<BackendStep> step;
  if (!copies) step.emplace(backend, step_shape(sessions, tokens, x, logits));
  std::vector<SequenceRows> sequences(sessions.size());
  LayerPass pass;
  pass.sequences = sequences;
  pass.tokens = ids;
  pass.backend = &backend;
  pass.x = x;
  pass.pos = pos;
  pass.n_ctx = first.n_ctx;
  pass.n_q = pass.n_out = n;
  pass.attention = &attention;
  pass.linear = &linear;
  pass.buffers = &first.decode_buffers;
  architecture.embed(ids, pass);
  for (int il = 0; il < config.n_layer; ++il) {
    attention.begin(il);
    begin_layer(sessions, tokens, il, rollback, sequences);
    architecture.layer(il, pass);
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (RecurrentState* state = sessions[i]->layers[il]->as_recurrent()) {
        state->advance(std::ssize(tokens[i]));
      }
    }
  }
  architecture.output(backend, x, first.decode_buffers, logits);
  if (step) step->complete();
  backend.synchronize();  // so that times include the whole step

  if (first.parts.weight_pages != nullptr) first.parts.weight_pages->after_step(timer.seconds());
  const double seconds = timer.seconds();
  const std::span<float> rows = first.step_logits.values().first(n * config.n_vocab);
  backend.download(rows.data(), logits.data, rows.size_bytes());
  if (backend.computes()) require_finite_logits(rows, config.n_vocab, "a decode step");
  rollback.commit();
  int64_t begin = 0;
  for (size_t i = 0; i < sessions.size(); ++i) {
    const int64_t n_tokens = std::ssize(tokens[i]);
    advance(*sessions[i], rows.subspan(begin * config.n_vocab, n_tokens * config.n_vocab), n_tokens,
            seconds);
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
  for (const auto& layer : s.layers) {
    if (n == 0) {
      layer->roll_back();
    } else {
      SNAPKV_CHECK(layer->keep_first(static_cast<int32_t>(n)));
    }
  }
  const int64_t n_forgotten = s.n_run - n;
  const int64_t n_vocab = s.info().n_vocab;
  s.logits.assign(s.backend(), s.run_logits.values().subspan(n * n_vocab, n_vocab));
  if (s.queries) s.queries.pop(n_forgotten);
  if (s.trace) s.trace.pop(n_forgotten);
  s.n_run = n;
  s.n_past -= n_forgotten;
  s.stats.n_decoded -= n_forgotten;
  s.update_memory_stats();
  return n;
}

}  // namespace snapkv
