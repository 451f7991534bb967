// SPDX-License-Identifier: MIT
// One decode step for a batch of sequences: weights are read once for all of them, and each
// sequence attends to its own rows.
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
  explicit StepRollback(std::span<Session::Impl* const> sessions) : sessions_(sessions) {}
  ~StepRollback() {
    const int64_t n_seq = std::ssize(sessions_);
    for (int64_t i = 0; i < n_changed_; ++i) {
      Session::Impl& session = *sessions_[i % n_seq];
      session.layers[i / n_seq]->roll_back();
      if (i < n_seq) session.queries.drop_pushed();
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
  int64_t n_changed_ = 0;  // pairs of a layer and a session
};

/// Appends each sequence's new row to its own cache and attends to that cache alone.
class DecodeAttentionStep final : public AttentionStep {
 public:
  DecodeAttentionStep(Backend& backend, const Architecture& architecture,
                      std::span<Session::Impl* const> sessions, std::span<const int32_t> pos,
                      std::vector<HeadRows>& heads, StepRollback& rollback)
      : backend_(backend),
        architecture_(architecture),
        sessions_(sessions),
        pos_(pos),
        heads_(heads),
        rollback_(rollback) {}

  void begin(int il) { il_ = il; }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    const LayerSpec& spec = architecture_.layer_spec(il_);
    heads_.clear();
    for (int64_t s = 0; s < std::ssize(sessions_); ++s) {
      RowState& layer = sessions_[s]->layers[il_]->rows();
      rollback_.before(layer);
      layer.append(backend_, k.slice(s, s + 1), v.slice(s, s + 1), pos_.subspan(s, 1));
      layer.visible_rows(heads_);
      QueryRing& queries = sessions_[s]->queries;
      if (queries) queries.push(backend_, il_, q.at<const void>(s));
      AnswerTrace& trace = sessions_[s]->trace;
      if (trace) trace.push(backend_, il_, q.at<const void>(s));
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
  Backend& backend_;
  const Architecture& architecture_;
  std::span<Session::Impl* const> sessions_;
  std::span<const int32_t> pos_;
  std::vector<HeadRows>& heads_;
  StepRollback& rollback_;
  int il_ = 0;
};

/// The rows of each session in layer il: one. In a layer without rows, its state before the step
/// and the memory for the state after it.
void begin_layer(std::span<Session::Impl* const> sessions, int il, StepRollback& rollback,
                 std::vector<SequenceRows>& sequences) {
  for (int64_t s = 0; s < std::ssize(sessions); ++s) {
    sequences[s] = {.begin = s, .end = s + 1};
    RecurrentState* const state = sessions[s]->layers[il]->as_recurrent();
    if (state == nullptr) continue;
    rollback.before(*state);
    sequences[s].from = state->now();
    sequences[s].to = state->next();
  }
}

void check_step(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens) {
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
    if (tokens[i] < 0 || tokens[i] >= s.info().n_vocab) {
      fail(ErrorCode::kUsage, "decode: token {} is not in the vocabulary of {} tokens", tokens[i],
           s.info().n_vocab);
    }
    if (s.n_past + 1 > s.n_ctx) {
      fail(ErrorCode::kContextExceeded, "the context of {} tokens is full", s.n_ctx);
    }
  }
}

/// Allocates the step's memory, which the first session owns; it never shrinks.
void ensure_memory(Session::Impl& first, int64_t n_seq) {
  const ModelConfig& config = first.architecture().config();
  first.decode_buffers.ensure(first.backend(), first.architecture().activations(), n_seq,
                              DType::f32);
  if (n_seq <= first.decode_rows) return;
  const auto allocate = [&](int64_t n_cols) {
    return first.backend().allocate(n_seq * n_cols * sizeof(float), LogitRows::kLabel);
  };
  first.decode_x = allocate(config.n_embd);
  first.decode_logits = allocate(config.n_vocab);
  first.step_logits = LogitRows(first.backend(), n_seq * config.n_vocab);
  first.decode_rows = n_seq;
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
uint64_t step_shape(std::span<Session::Impl* const> sessions, const Tensor& x,
                    const Tensor& logits) {
  Fnv1a hash;
  hash.add(reinterpret_cast<uintptr_t>(x.data));
  hash.add(reinterpret_cast<uintptr_t>(logits.data));
  hash.add(reinterpret_cast<uintptr_t>(sessions[0]->decode_buffers.data()));
  hash.add(sessions.size());
  hash.add(static_cast<uint64_t>(sessions[0]->options.kv_type));
  for (int64_t il = 0; il < std::ssize(sessions[0]->layers); ++il) {
    int32_t most = 0;  // the most rows that the step's attention sees
    for (const Session::Impl* s : sessions) {
      if (const RowState* rows = s->layers[il]->as_rows()) {
        most = std::max(most, rows->most_rows() + 1);
      }
    }
    hash.add((most + kStepRows - 1) / kStepRows);
  }
  return hash.value();
}

/// Reserves room for a new row in every layer, and with a limit no more than will be used.
void reserve_rows(Session::Impl& s) {
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    const int64_t step = std::min(s.options.decode_reserve, steps_to_limit(s, il));
    s.layers[il]->reserve(s.backend(), 1, static_cast<int32_t>(step));
  }
}

}  // namespace

void decode_batch(std::span<Session* const> batch, std::span<const int32_t> tokens) {
  const std::vector<Session::Impl*> sessions = Session::states(batch, "decode");
  const SessionsInUse in_use(sessions, "decode");
  check_step(sessions, tokens);
  decode_step(sessions, tokens);
}

void decode_step(std::span<Session::Impl* const> sessions, std::span<const int32_t> tokens) {
  const Timer timer;
  Session::Impl& first = *sessions[0];
  Backend& backend = first.backend();
  const Architecture& architecture = first.architecture();
  const ModelConfig& config = architecture.config();
  const int64_t n_seq = std::ssize(sessions);

  // everything that may run out of memory comes before the first change
  ensure_memory(first, n_seq);
  std::vector<int32_t> pos;
  for (Session::Impl* s : sessions) {
    pos.push_back(static_cast<int32_t>(s->n_past));
    if (s->trace.is_full()) vote_pending(*s);
    recompress_at_limit(*s);
    reserve_rows(*s);
    s->logits.reserve(backend, config.n_vocab);
  }

  const Tensor x = first.decode_x.view(DType::f32, {n_seq, config.n_embd});
  const Tensor logits = first.decode_logits.view(DType::f32, {n_seq, config.n_vocab});
  LinearRunner linear(backend);
  StepRollback rollback(sessions);
  DecodeAttentionStep attention(backend, architecture, sessions, pos, first.decode_heads, rollback);
  // queries are kept by copies, which a step can't hold
  const bool copies = std::any_of(sessions.begin(), sessions.end(),
                                  [](const Session::Impl* s) { return s->queries || s->trace; });
  std::optional<BackendStep> step;
  if (!copies) step.emplace(backend, step_shape(sessions, x, logits));
  std::vector<SequenceRows> sequences(n_seq);
  LayerPass pass;
  pass.sequences = sequences;
  pass.backend = &backend;
  pass.x = x;
  pass.pos = pos;
  pass.n_ctx = first.n_ctx;
  pass.n_q = pass.n_out = n_seq;
  pass.attention = &attention;
  pass.linear = &linear;
  pass.buffers = &first.decode_buffers;
  architecture.embed(tokens, pass);
  for (int il = 0; il < config.n_layer; ++il) {
    attention.begin(il);
    begin_layer(sessions, il, rollback, sequences);
    architecture.layer(il, pass);
    for (Session::Impl* s : sessions) {
      if (RecurrentState* state = s->layers[il]->as_recurrent()) state->advance(1);
    }
  }
  architecture.output(backend, x, first.decode_buffers, logits);
  if (step) step->complete();
  backend.synchronize();  // so that times include the whole step

  if (first.parts.weight_pages != nullptr) first.parts.weight_pages->after_step(timer.seconds());
  const double seconds = timer.seconds();
  const std::span<float> rows = first.step_logits.values().first(n_seq * config.n_vocab);
  backend.download(rows.data(), logits.data, rows.size_bytes());
  if (backend.computes()) require_finite_logits(rows, config.n_vocab, "a decode step");
  rollback.commit();
  for (int64_t i = 0; i < n_seq; ++i) {
    Session::Impl& s = *sessions[i];
    const auto row = rows.subspan(i * config.n_vocab, config.n_vocab);
    s.logits.assign(backend, row);
    s.n_past += 1;
    if (s.queries) s.queries.advance();
    if (s.trace) s.trace.advance();
    s.stats.n_decoded += 1;
    s.stats.decode_seconds += seconds;
    s.update_memory_stats();
  }
}

}  // namespace snapkv
