// SPDX-License-Identifier: MIT
#include "engine/decode/step_pass.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "cache/recurrent_state.h"

namespace snapkv {

StepRollback::StepRollback(std::span<Session::Impl* const> sessions,
                           std::span<const StepTokens> tokens)
    : sessions_(sessions), tokens_(tokens) {
  size_t n = 0;
  for (const Session::Impl* session : sessions) n += 2 * session->layers.size();
  changed_.reserve(n);
}

StepRollback::~StepRollback() {
  std::vector<bool> began(changed_.empty() ? 0 : sessions_.size());
  for (const Change& change : changed_) {
    change.layer->roll_back();
    if (began[change.session]) continue;
    began[change.session] = true;
    sessions_[change.session]->queries.drop_pushed(std::ssize(tokens_[change.session]));
  }
}

void StepRollback::before(size_t i, LayerState& layer) {
  layer.snapshot();
  changed_.push_back({i, &layer});
}

namespace {

/// Appends each sequence's new rows to its own cache, unless the layer reads rows of another one,
/// and attends to that cache alone.
class StepAttention final : public AttentionStep {
 public:
  StepAttention(const StepPass& pass, Session::Impl& first)
      : pass_(pass),
        backend_(first.backend()),
        architecture_(first.architecture()),
        kv_type_(first.options.kv_type),
        heads_(first.decode_heads),
        chosen_(first.decode_chosen) {}

  void begin(int il) { il_ = il; }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    attend_to_chosen({}, q, k, v, out);
  }
  void attend_to_chosen(const RowChoice& choice, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& out) override {
    const LayerSpec& spec = architecture_.layer_spec(il_);
    heads_.clear();
    int64_t begin = 0;
    for (size_t s = 0; s < pass_.sessions.size(); ++s) {
      const int64_t n = std::ssize(pass_.tokens[s]);
      const RowState& rows = append(s, k, v, begin, begin + n);
      for (int64_t i = 0; i < n; ++i) {
        rows.visible_rows(heads_, static_cast<int32_t>(n - 1 - i));
        keep_query(*pass_.sessions[s], i, q.at<const void>(begin + i));
      }
      begin += n;
    }
    DecodeAttention a;
    a.q = q;
    a.heads = heads_;
    a.kv_dtype = kv_type_;
    a.scale = spec.scale;
    a.out = out;
    a.variant = architecture_.variant(il_);
    a.v_in_k = spec.state.v_in_k;
    a.variant.window = 0;  // the state has left out the rows before the window
    choice ? attend_in_runs(choice, a) : ops::attention_decode(backend_, a);
  }

 private:
  /// Appends rows [begin, end) of k and v to what session s remembers, if the layer has rows of its
  /// own. Returns the rows that the tokens attend to.
  const RowState& append(size_t s, const Tensor& k, const Tensor& v, int64_t begin, int64_t end) {
    Session::Impl& session = *pass_.sessions[s];
    const int rows_of = architecture_.spec().rows_of(il_);
    const bool reads_all = pass_.rollback != nullptr && session.reads_all(rows_of);
    RowState& kept = session.layers[rows_of]->rows();
    RowState& read = reads_all ? *session.history[rows_of] : kept;
    if (!k) return read;
    const Tensor k_rows = k.slice(begin, end), v_rows = v.slice(begin, end);
    const std::span<const int32_t> pos = pass_.pos.subspan(begin, end - begin);
    read.append(backend_, k_rows, v_rows, pos);
    if (reads_all) kept.append(backend_, k_rows, v_rows, pos);
    return read;
  }
  /// Attention of neighbours that see few enough rows for all of them, or of those for which rows
  /// are chosen.
  void attend_in_runs(const RowChoice& choice, const DecodeAttention& all) {
    const auto few = [&](int64_t i) { return all.heads[i].n_kv <= choice.top_k; };
    for (int64_t begin = 0, n = all.q.shape[0]; begin < n;) {
      int64_t end = begin + 1;
      while (end < n && few(end) == few(begin)) ++end;
      DecodeAttention a = all;
      a.q = all.q.slice(begin, end);
      a.out = all.out.slice(begin, end);
      a.heads = all.heads.subspan(begin, end - begin);
      if (few(begin)) {
        ops::attention_decode(backend_, a);
      } else {
        chosen_.run(backend_, {.choice = choice.slice(begin, end),
                               .q = a.q,
                               .rows = a.heads,
                               .kv_dtype = a.kv_dtype,
                               .scale = a.scale,
                               .variant = a.variant,
                               .out = a.out});
      }
      begin = end;
    }
  }
  /// Keeps the query of the i-th of a session's tokens, if anything wants it.
  void keep_query(Session::Impl& session, int64_t i, const void* q) {
    if (pass_.rollback == nullptr) return;
    if (session.queries) session.queries.push(backend_, il_, i, q);
    if (session.trace) session.trace.push(backend_, il_, i, q);
  }

  const StepPass& pass_;
  Backend& backend_;
  const Architecture& architecture_;
  const DType kv_type_;
  std::vector<HeadRows>& heads_;
  ChosenAttention& chosen_;
  int il_ = 0;
};

/// Whether some layer's indexer chooses rows.
bool chooses_rows(const ModelSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(),
                     [](const LayerSpec& layer) { return bool{layer.latent.index}; });
}

/// The state of layer il that the pass changes, if that is a recurrent one.
RecurrentState* recurrent_state(const StepPass& pass, size_t s, int il) {
  Session::Impl& session = *pass.sessions[s];
  if (pass.rollback != nullptr) return session.layers[il]->as_recurrent();
  return session.draft_states.empty() ? nullptr : session.draft_states[il].get();
}

/// The rows of each session in layer il: one for each token. In a layer with a recurrent state,
/// that before the step and the memory for the one after it.
void begin_layer(const StepPass& pass, int il, std::vector<SequenceRows>& sequences) {
  int64_t begin = 0;
  for (size_t s = 0; s < pass.sessions.size(); ++s) {
    sequences[s] = {.begin = begin, .end = begin + std::ssize(pass.tokens[s])};
    begin = sequences[s].end;
    if (pass.rollback != nullptr) {
      Session::Impl& session = *pass.sessions[s];
      pass.rollback->before(s, *session.layers[il]);
      if (session.reads_all(il)) pass.rollback->before(s, *session.history[il]);
    }
    const RecurrentState* const state = recurrent_state(pass, s, il);
    if (state == nullptr) continue;
    sequences[s].from = state->now();
    sequences[s].to = state->next();
  }
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
uint64_t step_shape(const StepPass& pass, const Tensor& x, const Tensor& logits) {
  const std::span<Session::Impl* const> sessions = pass.sessions;
  Hash64 hash;
  hash.add(reinterpret_cast<uintptr_t>(x.data));
  hash.add(reinterpret_cast<uintptr_t>(logits.data));
  hash.add(reinterpret_cast<uintptr_t>(sessions[0]->decode_buffers.data()));
  hash.add(sessions.size());
  for (const StepTokens& of_session : pass.tokens) hash.add(of_session.size());
  hash.add(static_cast<uint64_t>(sessions[0]->options.kv_type));
  for (int64_t il = 0; il < std::ssize(sessions[0]->layers); ++il) {
    int32_t most = 0;  // the most rows that the step's attention sees
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (const RowState* rows = sessions[i]->layers[il]->as_rows()) {
        most = std::max(most, rows->most_rows() + static_cast<int32_t>(pass.tokens[i].size()));
      }
    }
    hash.add((most + kStepRows - 1) / kStepRows);
  }
  return hash.value();
}

}  // namespace

void reserve_pass(Session::Impl& first, int64_t n_tokens) {
  const ModelConfig& config = first.architecture().config();
  first.decode_buffers.ensure(first.backend(), first.architecture().activations(), n_tokens,
                              DType::f32);
  if (n_tokens <= first.decode_rows) return;
  const auto allocate = [&](int64_t n_cols) {
    return first.backend().allocate(n_tokens * n_cols * sizeof(float), LogitRows::kLabel);
  };
  first.decode_x = allocate(config.n_hidden());
  first.decode_logits = allocate(config.n_vocab);
  first.step_logits = LogitRows(first.backend(), n_tokens * config.n_vocab);
  first.decode_rows = n_tokens;
}

std::span<float> run_pass(const StepPass& step) {
  const std::span<Session::Impl* const> sessions = step.sessions;
  Session::Impl& first = *sessions[0];
  Backend& backend = first.backend();
  const Architecture& architecture = first.architecture();
  const ModelConfig& config = architecture.config();
  std::vector<int32_t> ids;
  for (const StepTokens& tokens : step.tokens) ids.insert(ids.end(), tokens.begin(), tokens.end());
  const int64_t n = std::ssize(ids);
  const Tensor x = first.decode_x.view(DType::f32, {n, config.n_hidden()});
  const Tensor logits = first.decode_logits.view(DType::f32, {n, config.n_vocab});
  // queries are kept by copies, which a replayed step can't hold
  const bool copies = std::any_of(sessions.begin(), sessions.end(),
                                  [](const Session::Impl* s) { return s->queries || s->trace; });
  // and chosen rows are calls that depend on how many rows there are
  const bool varies = copies || chooses_rows(architecture.spec());
  std::optional<BackendStep> replayed;
  if (!varies) replayed.emplace(backend, step_shape(step, x, logits));
  LinearRunner linear(backend);
  StepAttention attention(step, first);
  std::vector<SequenceRows> sequences(sessions.size());
  LayerPass pass;
  pass.sequences = sequences;
  pass.tokens = ids;
  pass.backend = &backend;
  pass.x = x;
  pass.pos = step.pos;
  pass.n_ctx = first.n_ctx;
  pass.n_q = pass.n_out = n;
  pass.attention = &attention;
  pass.linear = &linear;
  pass.buffers = &first.decode_buffers;
  architecture.embed(ids, pass);
  for (int il = 0; il < config.n_layer; ++il) {
    attention.begin(il);
    begin_layer(step, il, sequences);
    architecture.layer(il, pass);
    for (size_t s = 0; s < sessions.size(); ++s) {
      if (RecurrentState* const state = recurrent_state(step, s, il)) {
        state->advance(std::ssize(step.tokens[s]));
      }
    }
  }
  architecture.output(backend, x, first.decode_buffers, logits);
  if (replayed) replayed->complete();
  backend.synchronize();  // so that times include the whole step
  const std::span<float> rows = first.step_logits.values().first(n * config.n_vocab);
  backend.download(rows.data(), logits.data, rows.size_bytes());
  return rows;
}

}  // namespace snapkv
