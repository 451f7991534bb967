// SPDX-License-Identifier: MIT
// Session: options, state, and the public interface to prefill.cpp and decode.cpp.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/core/kv_types.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/decode/decode_step.h"
#include "engine/session_options.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

/// Limits the context, unless it is asked for, to the tokens among which layers need not choose
/// together, and refuses rows whose types indexers can't read.
void check_choices(Session::Impl& s, bool asked) {
  const ModelSpec& spec = s.architecture().spec();
  const int64_t n_unchosen = spec.config.n_unchosen;
  if (n_unchosen > 0 && !asked) s.n_ctx = std::min(s.n_ctx, n_unchosen);
  if (n_unchosen > 0 && s.n_ctx > n_unchosen) {
    fail(ErrorCode::kUsage,
         "{} is {}; of more than {} tokens, {} has layers that attend to those that an earlier "
         "layer's indexer chooses, which is not supported",
         OptionName("n_ctx"), s.n_ctx, n_unchosen, s.info().path);
  }
  for (const LayerSpec& layer : spec.layers) {
    const IndexSpec& index = layer.latent.index;
    if (!index || s.n_ctx <= index.top_k || block_size(s.options.kv_type) == 1) continue;
    fail(ErrorCode::kUsage,
         "{} is {}; of more than {} tokens, {} attends to those that indexers choose, whose keys "
         "must be f32, f16 or bf16",
         OptionName("kv_type"), name(s.options.kv_type), index.top_k, s.info().path);
  }
}

}  // namespace

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (model == nullptr) fail(ErrorCode::kUsage, "Session: the model is null");
  impl_->parts = {.info = &model->info(),
                  .backend = model->impl_->backend.get(),
                  .architecture = model->impl_->architecture.get(),
                  .file = &model->impl_->file,
                  .weight_pages = &*model->impl_->weight_pages};
  CheckedOptions checked = check_session_options(options, model->info());
  impl_->options = std::move(checked.options);
  impl_->policy = std::move(checked.policy);
  impl_->n_ctx =
      options.n_ctx > 0 ? options.n_ctx : std::min(model->info().n_ctx_train, kMostTokens);
  impl_->model = std::move(model);
  const int64_t n_positions = impl_->architecture().config().n_positions;
  if (n_positions > 0 && options.n_ctx == 0) impl_->n_ctx = std::min(impl_->n_ctx, n_positions);
  if (n_positions > 0 && impl_->n_ctx > n_positions) {
    fail(ErrorCode::kUsage, "{} is {}; {} has learned positions for {} tokens only",
         OptionName("n_ctx"), impl_->n_ctx, impl_->info().path, n_positions);
  }
  const std::vector<LayerSpec>& layers = impl_->architecture().spec().layers;
  const bool biased = std::any_of(layers.begin(), layers.end(),
                                  [](const LayerSpec& layer) { return bool{layer.position_bias}; });
  check_choices(*impl_, options.n_ctx > 0);
  if (biased && options.n_ctx == 0) {
    impl_->n_ctx = std::min(impl_->n_ctx, PositionBiasSpec::kMostTokens);
  }
  if (biased && impl_->n_ctx > PositionBiasSpec::kMostTokens) {
    fail(ErrorCode::kUsage, "{} is {}; {} has position biases, which reach {} tokens",
         OptionName("n_ctx"), impl_->n_ctx, impl_->info().path, PositionBiasSpec::kMostTokens);
  }
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Session::Impl& Session::state() const {
  if (impl_ == nullptr) fail(ErrorCode::kUsage, "the session was moved from");
  return *impl_;
}

std::vector<Session::Impl*> Session::states(std::span<Session* const> batch, const char* call) {
  std::vector<Impl*> all;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] == nullptr || batch[i]->impl_ == nullptr) {
      fail(ErrorCode::kUsage, "{}: session {} is {}", call, i,
           batch[i] == nullptr ? "null" : "one that was moved from");
    }
    all.push_back(batch[i]->impl_.get());
  }
  return all;
}

void Session::prefill(std::span<const int32_t> tokens, const PrefillOptions& options) {
  Session* self = this;
  prefill_many({&self, 1}, tokens, options);
}

void Session::decode(int32_t token) {
  Session* self = this;
  decode_batch({&self, 1}, {&token, 1});
}

std::span<const float> Session::logits() const {
  const size_t n_vocab = state().info().n_vocab;
  if (state().logits.empty()) return {};
  return state().logits.values().last(n_vocab);
}

int64_t Session::decode_room() const {
  return state().layers.empty() ? 0 : snapkv::decode_room(state());
}

int64_t Session::keep_decoded(int64_t n) {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "keep_decoded");
  return snapkv::keep_decoded(*self, n);
}

std::span<const float> Session::step_logits(int64_t i) const {
  if (i < 0 || i >= state().n_run) {
    fail(ErrorCode::kUsage, "step_logits({}): the last step has logits of {} tokens", i,
         state().n_run);
  }
  const size_t n_vocab = state().info().n_vocab;
  return state().run_logits.values().subspan((i + 1) * n_vocab, n_vocab);
}

std::span<const float> Session::prefill_logits(int64_t i) const {
  const size_t n_vocab = state().info().n_vocab;
  const int64_t n = std::ssize(state().logits.values()) / state().info().n_vocab;
  if (i < 0 || i >= n) {
    fail(ErrorCode::kUsage, "prefill_logits({}): the last prefill made logits of {} tokens", i, n);
  }
  return state().logits.values().subspan(i * n_vocab, n_vocab);
}

int64_t Session::n_past() const { return state().n_past; }
int64_t Session::n_ctx() const { return state().n_ctx; }
const SessionStats& Session::stats() const { return state().stats; }
const SessionOptions& Session::options() const { return state().options; }
const Model& Session::model() const { return *state().model; }

std::vector<int32_t> Session::cached_positions(int il, int head) const {
  if (state().layers.empty()) return {};
  const bool known = 0 <= il && il < std::ssize(state().layers);
  const int rows_of = known ? state().architecture().spec().rows_of(il) : 0;
  const RowState* const rows = known ? state().layers[rows_of]->as_rows() : nullptr;
  if (rows == nullptr || head < 0 || head >= std::ssize(rows->n_rows())) {
    fail(ErrorCode::kUsage, "cached_positions: no layer {} with a KV head {}", il, head);
  }
  return rows->positions(state().backend(), head);
}

void Session::trace_answer() {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "trace_answer");
  if (self->layers.empty()) {
    fail(ErrorCode::kUsage, "trace_answer: the session has read no prompt yet");
  }
  self->trace = AnswerTrace(self->backend(), self->architecture().spec(), self->n_past);
}

std::vector<float> Session::answer_attention() {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "answer_attention");
  vote_pending(*self);
  return self->trace.attention();
}

void Session::reset() {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "reset");
  state().layers.clear();
  state().history.clear();
  state().in_history.clear();
  state().draft_states.clear();
  state().text.clear();
  state().draft_reader.reset();
  state().queries = {};
  state().trace = {};
  state().logits.clear();
  state().run_logits.clear();
  state().n_run = 0;
  state().n_past = 0;
  state().stats = {};
  state().meter.peak = state().meter.now;
}

QueryRing Session::Impl::make_query_ring() const {
  const int n_spare = options.draft == Draft::off ? 0 : static_cast<int>(most_step_tokens());
  return QueryRing(backend(), query_floats(architecture().spec()), policy->window_size(), n_spare);
}

void Session::Impl::add_to_history(int il, const RowState& source, std::span<const int32_t> first) {
  const std::vector<int32_t> n_rows = source.n_rows();
  int32_t n = 0;
  for (size_t h = 0; h < n_rows.size(); ++h) n = std::max(n, n_rows[h] - first[h]);
  if (n == 0) return;
  history[il]->reserve(backend(), n, n + kHistoryGrowth);
  history[il]->append(backend(), source, first, n);
}

void Session::Impl::note_room(int64_t n) {
  if (options.draft != Draft::model) return;
  const size_t needed = text.size() + static_cast<size_t>(n);
  if (needed > text.capacity()) text.reserve(std::max(needed, 2 * text.capacity()));
}

void Session::Impl::note(std::span<const int32_t> tokens) {
  if (options.draft == Draft::model) text.insert(text.end(), tokens.begin(), tokens.end());
}

void Session::Impl::remember(int il) {
  if (!has_history(il) || layers.empty()) return;
  const RowState& rows = layers[il]->rows();
  std::vector<int32_t> n_rows = rows.n_rows();  // first: nothing may fail after append()
  if (!reads_all(il)) add_to_history(il, rows, in_history[il]);
  in_history[il] = std::move(n_rows);
}

void check_rotation(const Session::Impl& s, const Session::Impl& first, size_t i) {
  if (s.architecture().spec().rotate_alike(s.n_ctx, first.n_ctx)) return;
  fail(ErrorCode::kUsage,
       "session {} has {} {} and session 0 {}: the model rotates keys of long contexts otherwise, "
       "so "
       "the two cannot be computed together",
       i, OptionName("n_ctx"), s.n_ctx, first.n_ctx);
}

void Session::Impl::update_memory_stats() {
  stats.kv_bytes_full = architecture().spec().full_bytes(options.kv_type, n_past);
  stats.kv_bytes_peak = meter.peak;
  stats.kv_bytes = meter.now;
  stats.query_bytes = queries.bytes();
  stats.history_bytes = history_meter.now;
  stats.draft_bytes = draft_reader != nullptr ? draft_reader->session().stats().kv_bytes : 0;
  stats.kv_bytes_used = 0;
  for (const auto& layer : layers) stats.kv_bytes_used += layer->bytes_used();
}

}  // namespace snapkv
