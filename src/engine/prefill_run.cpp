// SPDX-License-Identifier: MIT
#include "engine/prefill_run.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "engine/finite_check.h"
#include "engine/memory_plan.h"

namespace snapkv {
namespace {

std::unique_ptr<ProbeObserver> make_probe(const PrefillPlan& plan, const PrefillOptions& options) {
  if (options.probe == nullptr) return nullptr;
  return std::make_unique<ProbeObserver>(*options.probe, plan.n_tokens, plan.n_past);
}

/// Asks the system to read the weights of layer il from the disk while the layer before is
/// computed: a model larger than the memory streams through it once per prompt.
void prefetch_layer(const GgufFile& file, const Architecture& architecture, int il) {
  if (il >= architecture.config().n_layer) return;
  for (const GgufTensor* t : architecture.layer_tensors(il)) file.will_need(*t);
}

/// Takes the weights of layer il out of this process's resident memory; the system still caches the
/// file as long as it has room.
void release_layer(const GgufFile& file, const Architecture& architecture, int il) {
  for (const GgufTensor* t : architecture.layer_tensors(il)) file.dont_need(*t);
}

}  // namespace

PrefillRun::PrefillRun(PrefillTargets& targets, const PrefillPlan& plan,
                       const PrefillOptions& options)
    : targets_(targets),
      plan_(plan),
      options_(options),
      first_(targets[0]->session()),
      backend_(first_.backend()),
      architecture_(first_.architecture()),
      linear_(backend_),
      probe_(make_probe(plan, options)),
      attention_(backend_, architecture_, targets, probe_.get(), first_.n_ctx, times_) {}

void PrefillRun::run() {
  allocate();
  for (int il = 0; il < architecture_.config().n_layer; ++il) {
    Timer timer;
    if (plan_.packed) linear_.pack(architecture_.layer_weights(il));
    if (plan_.releases_weights) release_layer(first_.file(), architecture_, il);
    times_.pack += timer.lap();
    prefetch_layer(first_.file(), architecture_, il + 1);
    for (const auto& target : targets_) target->begin_layer(il);
    if (probe_) probe_->begin_layer(il);
    run_layer(il);
    backend_.synchronize();  // before its time is taken
    attention_.end_layer();
    times_.layers += timer.lap();
    keep_rows(il);
  }
  const Timer timer;
  compute_logits();
  times_.layers += timer.seconds();
}

void PrefillRun::commit() {
  scratch_ = KvLayer();  // before the sessions count what they hold
  // copies first: nothing may fail once a session has changed
  std::vector<std::vector<float>> logits(targets_.size() - 1, logits_);
  logits.push_back(std::move(logits_));
  for (size_t i = 0; i < targets_.size(); ++i) {
    targets_[i]->commit(std::move(logits[i]), times_, plan_,
                        targets_.size() > 1 ? scratch_bytes_ : 0);
  }
}

void PrefillRun::allocate() {
  const ModelConfig& c = architecture_.config();
  hidden_ = HiddenStates(backend_, plan_.hidden_place, plan_.n_tokens, c.n_embd, plan_.chunk,
                         first_.options.spill_dir);
  int64_t n_window = 0;
  for (const auto& target : targets_) n_window = std::max(n_window, target->n_window());
  if (n_window > 0) {
    window_buffer_ = backend_.allocate(n_window * c.n_q() * sizeof(float), "queries of the window");
    q_window_ = window_buffer_.view(DType::f32, {n_window, c.n_head, c.head_dim});
  }
  pos_.resize(plan_.n_tokens);
  std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(plan_.n_past));
}

/// A scratch layer that holds the old rows and has room for the prompt.
void PrefillRun::fill_scratch(int il) {
  const ModelConfig& c = architecture_.config();
  int64_t n_rows = plan_.n_tokens;
  const KvLayer* old = targets_[0]->old_layer(il);
  if (old != nullptr) {
    const std::vector<int32_t> n_kv = old->n_kv();
    n_rows += *std::max_element(n_kv.begin(), n_kv.end());
  }
  // a scratch layer that will become the cache needs room for generated tokens
  const DType dtype = scratch_dtype(first_.options.kv_type);
  const bool taken =
      targets_.size() == 1 && dtype == first_.options.kv_type && n_rows <= targets_[0]->budget(il);
  const int64_t room = n_rows + (taken ? first_.options.decode_reserve : 0);
  if (!scratch_ || scratch_.capacity(0) < room) {
    scratch_ = KvLayer();  // frees the old one before the new one is allocated
    const std::vector<int32_t> capacity(c.n_head_kv, static_cast<int32_t>(room));
    scratch_ = KvLayer(backend_, first_.meter, c.head_dim, dtype, capacity);
    scratch_bytes_ = scratch_.bytes();
  }
  scratch_.clear();
  if (old != nullptr) scratch_.append(backend_, *old);
}

void PrefillRun::run_layer(int il) {
  fill_scratch(il);
  buffers_.ensure(backend_, architecture_.spec(), plan_.chunk, linear_.input_dtype());
  const int64_t n = plan_.n_tokens;
  const bool last = il + 1 == architecture_.config().n_layer;
  const bool observed = std::any_of(targets_.begin(), targets_.end(),
                                    [](const auto& target) { return target->observes(); });
  // the last layer's queries and outputs are needed only where something reads them
  const int64_t n_window = q_window_ ? q_window_.shape[0] : 0;
  int64_t first_q = last && !observed ? n - std::max(n_window, plan_.n_logits) : 0;
  if (probe_) first_q = std::min(first_q, probe_->first_token());
  const int64_t first_out = last ? n - plan_.n_logits : 0;
  for (int64_t begin = 0; begin < n; begin += plan_.chunk) {
    run_chunk(il, begin, std::min(n, begin + plan_.chunk), first_q, first_out);
  }
}

/// Tokens [begin, end) of layer il; queries are needed from first_q on, outputs from first_out on.
void PrefillRun::run_chunk(int il, int64_t begin, int64_t end, int64_t first_q, int64_t first_out) {
  const int64_t n_window = q_window_ ? q_window_.shape[0] : 0;
  LayerPass pass;
  pass.x = hidden_.enter(begin, end);
  pass.pos = std::span(pos_).subspan(begin, end - begin);
  pass.n_ctx = first_.n_ctx;
  pass.n_q = std::clamp<int64_t>(end - first_q, 0, end - begin);
  pass.n_out = std::clamp<int64_t>(end - first_out, 0, end - begin);
  pass.attention = &attention_;
  pass.linear = &linear_;
  pass.buffers = &buffers_;
  if (il == 0) architecture_.embed(plan_.tokens.subspan(begin, end - begin), pass);
  attention_.begin(il, scratch_, pass.pos, q_window_, begin - (plan_.n_tokens - n_window));
  architecture_.layer(il, pass);
  hidden_.leave(begin, end);
  report(il, end);
}

void PrefillRun::keep_rows(int il) {
  const bool may_take = targets_.size() == 1;
  for (const auto& target : targets_) {
    Tensor window;
    if (q_window_) {
      const int64_t n = q_window_.shape[0];
      window = q_window_.slice(n - target->n_window(), n);
    }
    target->keep_rows(il, scratch_, window, may_take);
  }
}

void PrefillRun::compute_logits() {
  const int64_t n_vocab = architecture_.config().n_vocab;
  const int64_t n = plan_.n_tokens, n_logits = plan_.n_logits;
  logits_.resize(n_logits * n_vocab);
  linear_.unpack();
  const int64_t most = std::min(kOutputRows, n_logits);
  const Buffer storage = backend_.allocate(most * n_vocab * sizeof(float), "logits");
  for (int64_t begin = 0; begin < n_logits; begin += kOutputRows) {
    const int64_t rows = std::min(kOutputRows, n_logits - begin);
    const int64_t first = n - n_logits + begin;
    const Tensor x = hidden_.enter(first, first + rows);
    const Tensor logits = storage.view(DType::f32, {rows, n_vocab});
    architecture_.output(x, first_.decode_buffers, logits);
    backend_.download(logits_.data() + begin * n_vocab, logits.data,
                      rows * n_vocab * sizeof(float));
  }
  require_finite_logits(logits_, n_vocab, "a prompt");
}

void PrefillRun::report(int il, int64_t n_done) {
  if (!options_.progress) return;
  const auto n_layer = static_cast<double>(architecture_.config().n_layer);
  const double done = static_cast<double>(n_done) / static_cast<double>(plan_.n_tokens);
  Progress p;
  p.phase = Phase::prefill;
  p.il = il;
  p.n_layer = static_cast<int>(architecture_.config().n_layer);
  p.n_tokens = plan_.n_tokens;
  p.fraction = (il + done) / n_layer;
  p.seconds = timer_.seconds();
  if (!options_.progress(p)) {
    fail(ErrorCode::kCancelled, "prefill was cancelled at {:.0f}%", 100 * p.fraction);
  }
}

}  // namespace snapkv
