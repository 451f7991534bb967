// SPDX-License-Identifier: MIT
// Layer-major prefill (DESIGN.md section 2): every layer runs over the whole prompt in chunks, with
// one scratch layer for the keys and values of all tokens; then the policies select and the kept
// rows move to the sessions' caches. Nothing of a session changes for good before the last layer is
// done.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/timer.h"
#include "engine/attention_probe.h"
#include "engine/hidden_states.h"
#include "engine/memory_plan.h"
#include "engine/prefill_target.h"

namespace snapkv {
namespace {

using Targets = std::vector<std::unique_ptr<PrefillTarget>>;

/// Rows of logits computed at once after the last layer.
constexpr int64_t kOutputRows = 16;

/// Prompts of at least this many tokens let go of a layer's weights when they are packed. Mapping
/// them again takes the next reader about 30 ms per GB, too much beside a short prompt.
constexpr int64_t kReleaseMinTokens = 4096;

template <typename Hint>
void for_layer(const GgufFile& file, int64_t il, Hint hint) {
  const std::string prefix = fmt::format("blk.{}.", il);
  for (const GgufTensor& t : file.tensors()) {
    if (t.name.starts_with(prefix)) hint(t);
  }
}

/// Asks the system to read the weights of layer il from the disk while the layer before is
/// computed: a model larger than the memory streams through it once per prompt.
void prefetch_layer(const GgufFile& file, int64_t il) {
  for_layer(file, il, [&](const GgufTensor& t) { file.will_need(t); });
}

/// Takes the weights of layer il out of this process's resident memory; the system still caches the
/// file as long as it has room.
void release_layer(const GgufFile& file, int64_t il) {
  for_layer(file, il, [&](const GgufTensor& t) { file.dont_need(t); });
}

/// Stores a chunk's keys and values in the scratch layer and attends to all rows up to it. Keeps
/// the queries of the prompt's last tokens, and shows every query to the policies that observe and
/// to the probe.
class PrefillAttentionStep final : public AttentionStep {
 public:
  PrefillAttentionStep(Backend& backend, Architecture& architecture, Targets& targets,
                       QueryObserver* probe)
      : backend_(backend), architecture_(architecture), targets_(targets), probe_(probe) {}

  /// The chunk that comes next: scratch layer, positions of its tokens, and the row of q_window
  /// that its first token would have (queries of negative rows are not kept).
  void begin(KvLayer& scratch, std::span<const int32_t> pos, const Tensor& q_window,
             int64_t window_row) {
    scratch_ = &scratch;
    pos_ = pos;
    q_window_ = q_window;
    window_row_ = window_row;
  }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    const Backend::Mark begin = backend_.mark();
    std::vector<int32_t> n_past = scratch_->n_kv();
    scratch_->append(backend_, k, v, pos_);
    keep_window(q, k.shape[0]);
    const int64_t n_out = out.shape[0];
    const float scale = architecture_.config().attention_scale;
    if (n_out > 0) {
      for (int32_t& n : n_past) n += static_cast<int32_t>(k.shape[0] - n_out);
      PrefillAttention a;
      a.q = q.slice(q.shape[0] - n_out, q.shape[0]);
      a.k = scratch_->k_view();
      a.v = scratch_->v_view();
      a.n_past = n_past;
      a.scale = scale;
      a.out = out;
      ops::attention_prefill(backend_, a);
    }
    intervals_.emplace_back(begin, backend_.mark());
    const Timer timer;
    const std::vector<int32_t> n_rows = scratch_->n_kv();
    const QueryChunk chunk{q,
                           pos_.last(static_cast<size_t>(q.shape[0])),
                           scratch_->k_view(),
                           n_rows,
                           scale,
                           architecture_.rope()};
    for (const auto& target : targets_) {
      if (target->observes()) target->observe(chunk);
    }
    if (probe_ != nullptr) probe_->observe(backend_, chunk);
    observe_seconds_ += timer.seconds();
  }

  /// Of layers that are done.
  double seconds() const { return seconds_; }
  /// When the backend has done the layer.
  void end_layer() {
    for (const auto& [begin, end] : intervals_) seconds_ += backend_.seconds_between(begin, end);
    intervals_.clear();
  }
  /// Of policies, which count it as theirs, and of the probe.
  double observe_seconds() const { return observe_seconds_; }

 private:
  void keep_window(const Tensor& q, int64_t n) {
    if (!q_window_) return;
    const int64_t n_q = q.shape[0];
    const int64_t first = window_row_ + n - n_q;  // row of q's first query in q_window
    const int64_t skip = std::max<int64_t>(0, -first);
    if (skip >= n_q) return;
    backend_.copy(q_window_.at<float>(first + skip), q.at<float>(skip),
                  static_cast<size_t>(q.stride[0]) * static_cast<size_t>(n_q - skip));
  }

  Backend& backend_;
  Architecture& architecture_;
  Targets& targets_;
  QueryObserver* probe_;  // may be nullptr
  KvLayer* scratch_ = nullptr;
  std::span<const int32_t> pos_;
  Tensor q_window_;
  int64_t window_row_ = 0;
  std::vector<std::pair<Backend::Mark, Backend::Mark>> intervals_;  // of the layer
  double seconds_ = 0, observe_seconds_ = 0;
};

/// One prompt: memory, loop over layers and chunks. All targets share the model, the KV type and,
/// if there are several, an empty past.
class PrefillRun {
 public:
  PrefillRun(Targets& targets, std::span<const int32_t> tokens, const PrefillOptions& options,
             HiddenStates::Place hidden_place)
      : targets_(targets),
        hidden_place_(hidden_place),
        first_(targets[0]->session()),
        tokens_(tokens),
        options_(options),
        backend_(first_.backend()),
        architecture_(first_.architecture()),
        config_(architecture_.config()),
        n_(static_cast<int64_t>(tokens.size())),
        chunk_(std::min(n_, first_.options.chunk)),
        n_logits_(std::min(n_, options.n_logits)),
        packed_(n_ >= packed_min_tokens(first_.info(), backend_.compute_dtype(),
                                        backend_.device())),
        linear_(backend_),
        probe_(make_probe()),
        attention_(backend_, architecture_, targets, probe_.get()) {}

  void run() {
    allocate();
    for (int il = 0; il < config_.n_layer; ++il) {
      Timer timer;
      if (packed_) linear_.pack(architecture_.layer_weights(il));
      if (packed_ && n_ >= kReleaseMinTokens) release_layer(first_.file(), il);
      shared_.pack_seconds += timer.lap();
      prefetch_layer(first_.file(), il + 1);
      for (const auto& target : targets_) target->begin_layer(il);
      if (probe_) probe_->begin_layer(il);
      run_layer(il);
      backend_.synchronize();  // before its time is taken
      attention_.end_layer();
      layers_seconds_ += timer.lap();
      const bool may_take = targets_.size() == 1;
      for (const auto& target : targets_) {
        const Tensor window =
            q_window_ ? q_window_.slice(n_window_ - target->n_window(), n_window_) : Tensor();
        target->compress(il, scratch_, window, may_take);
      }
    }
    Timer timer;
    compute_logits();
    layers_seconds_ += timer.seconds() - attention_.observe_seconds();
    shared_.attention_seconds = attention_.seconds();
    shared_.linear_seconds = layers_seconds_ - attention_.seconds();
  }

  void commit() {
    scratch_ = KvLayer();  // before the sessions count what they hold
    const double seconds = layers_seconds_ + shared_.pack_seconds;
    for (const auto& target : targets_) {
      target->commit(logits_, shared_, seconds, targets_.size() > 1 ? scratch_bytes_ : 0);
    }
  }

 private:
  std::unique_ptr<ProbeObserver> make_probe() const {
    if (options_.probe == nullptr) return nullptr;
    return std::make_unique<ProbeObserver>(*options_.probe, n_, first_.n_past);
  }

  void allocate() {
    hidden_ =
        HiddenStates(backend_, hidden_place_, n_, config_.n_embd, chunk_, first_.options.spill_dir);
    for (const auto& target : targets_) n_window_ = std::max(n_window_, target->n_window());
    if (n_window_ > 0) {
      window_buffer_ = backend_.allocate(
          static_cast<size_t>(n_window_ * config_.n_head * config_.head_dim) * sizeof(float),
          "queries of the window");
      q_window_ = window_buffer_.view(DType::f32, {n_window_, config_.n_head, config_.head_dim});
    }
    pos_.resize(static_cast<size_t>(n_));
    std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(first_.n_past));
  }

  /// A scratch layer that holds the old rows and has room for the prompt.
  void fill_scratch(int il) {
    int32_t n_rows = static_cast<int32_t>(n_);
    const KvLayer* old = targets_[0]->old_layer(il);
    if (old != nullptr) {
      const std::vector<int32_t> n_kv = old->n_kv();
      n_rows += *std::max_element(n_kv.begin(), n_kv.end());
    }
    // a scratch layer that will become the cache needs room for generated tokens
    const DType dtype = scratch_dtype(first_.options.kv_type);
    const bool taken = targets_.size() == 1 && dtype == first_.options.kv_type &&
                       n_rows <= targets_[0]->budget(il);
    const int32_t reserve = taken ? static_cast<int32_t>(first_.options.decode_reserve) : 0;
    if (!scratch_ || scratch_.capacity(0) < n_rows + reserve) {
      scratch_ = KvLayer();  // the old one goes first
      const std::vector<int32_t> capacity(static_cast<size_t>(config_.n_head_kv), n_rows + reserve);
      scratch_ = KvLayer(backend_, first_.meter, config_.head_dim, dtype, capacity);
      scratch_bytes_ = scratch_.bytes();
    }
    scratch_.clear();
    if (old != nullptr) scratch_.append(backend_, *old);
  }

  void run_layer(int il) {
    fill_scratch(il);
    buffers_.ensure(backend_, config_, chunk_, linear_.input_dtype());
    const bool last = il + 1 == config_.n_layer;
    const bool observed = std::any_of(targets_.begin(), targets_.end(),
                                      [](const auto& target) { return target->observes(); });
    // the last layer's queries and outputs are needed only where something reads them
    int64_t first_q = last && !observed ? n_ - std::max(n_window_, n_logits_) : 0;
    if (probe_) first_q = std::min(first_q, probe_->first_token());
    const int64_t first_out = last ? n_ - n_logits_ : 0;
    for (int64_t begin = 0; begin < n_; begin += chunk_) {
      const int64_t end = std::min(n_, begin + chunk_);
      LayerPass pass;
      pass.x = hidden_.enter(begin, end);
      const auto at = static_cast<size_t>(begin), n = static_cast<size_t>(end - begin);
      if (il == 0) architecture_.embed(tokens_.subspan(at, n), pass.x);
      pass.pos = std::span(pos_).subspan(at, n);
      pass.n_q = std::clamp<int64_t>(end - first_q, 0, end - begin);
      pass.n_out = std::clamp<int64_t>(end - first_out, 0, end - begin);
      pass.attention = &attention_;
      pass.linear = &linear_;
      pass.buffers = &buffers_;
      attention_.begin(scratch_, pass.pos, q_window_, begin - (n_ - n_window_));
      architecture_.layer(il, pass);
      hidden_.leave(begin, end);
      report(il, end);
    }
  }

  void compute_logits() {
    const int64_t n_vocab = config_.n_vocab;
    logits_.resize(static_cast<size_t>(n_logits_ * n_vocab));
    linear_.unpack();
    const int64_t most = std::min(kOutputRows, n_logits_);
    const Buffer storage =
        backend_.allocate(static_cast<size_t>(most * n_vocab) * sizeof(float), "logits");
    for (int64_t begin = 0; begin < n_logits_; begin += kOutputRows) {
      const int64_t rows = std::min(kOutputRows, n_logits_ - begin);
      const int64_t first = n_ - n_logits_ + begin;
      const Tensor x = hidden_.enter(first, first + rows);
      const Tensor logits = storage.view(DType::f32, {rows, n_vocab});
      architecture_.output(x, first_.decode_buffers, logits);
      backend_.download(logits_.data() + begin * n_vocab, logits.data,
                        static_cast<size_t>(rows * n_vocab) * sizeof(float));
    }
  }

  void report(int il, int64_t n_done) {
    if (!options_.progress) return;
    Progress p;
    p.phase = Phase::prefill;
    p.il = il;
    p.n_layer = static_cast<int>(config_.n_layer);
    p.n_tokens = n_;
    p.fraction = (il + static_cast<double>(n_done) / static_cast<double>(n_)) /
                 static_cast<double>(config_.n_layer);
    p.seconds = timer_.seconds();
    if (!options_.progress(p)) {
      fail(ErrorCode::kCancelled, "prefill was cancelled at {:.0f}%", 100 * p.fraction);
    }
  }

  Targets& targets_;
  const HiddenStates::Place hidden_place_;
  Session::Impl& first_;
  std::span<const int32_t> tokens_;
  const PrefillOptions& options_;
  Backend& backend_;
  Architecture& architecture_;
  const ModelConfig& config_;
  const int64_t n_, chunk_, n_logits_;
  const bool packed_;     // weights, once per layer
  int64_t n_window_ = 0;  // most of all targets

  Timer timer_;
  SessionStats shared_;  // times of what the targets share
  double layers_seconds_ = 0;
  LinearRunner linear_;
  std::unique_ptr<ProbeObserver> probe_;  // if one is set
  PrefillAttentionStep attention_;
  ActivationBuffer buffers_;
  HiddenStates hidden_;
  Buffer window_buffer_;
  Tensor q_window_;           // [n_window, n_head, head_dim] f32
  std::vector<int32_t> pos_;  // [n]
  KvLayer scratch_;
  size_t scratch_bytes_ = 0;
  std::vector<float> logits_;  // [n_logits, n_vocab]
};

void check_tokens(std::span<const int32_t> tokens, int64_t n_vocab) {
  if (tokens.empty()) fail(ErrorCode::kUsage, "the prompt has no tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= n_vocab) {
      fail(ErrorCode::kUsage, "token {} of the prompt is {}, the vocabulary has {} tokens", i,
           tokens[i], n_vocab);
    }
  }
}

void check_sessions(std::span<Session::Impl* const> sessions, int64_t n) {
  if (sessions.empty()) fail(ErrorCode::kUsage, "prefill: no sessions");
  const Session::Impl& first = *sessions[0];
  for (size_t i = 0; i < sessions.size(); ++i) {
    const Session::Impl& s = *sessions[i];
    if (s.n_past + n > s.n_ctx) {
      fail(ErrorCode::kContextExceeded,
           "the prompt has {} tokens after {} already seen, the context {}", n, s.n_past, s.n_ctx);
    }
    if (sessions.size() == 1) return;
    if (s.n_past > 0 || std::count(sessions.begin(), sessions.end(), &s) != 1) {
      fail(ErrorCode::kUsage, "prefill_many: session {} is not empty or is there twice", i);
    }
    if (s.model != first.model || s.options.kv_type != first.options.kv_type ||
        s.options.chunk != first.options.chunk || s.options.spill_dir != first.options.spill_dir) {
      fail(ErrorCode::kUsage, "prefill_many: session {} differs from session 0 in more than kv", i);
    }
  }
}

std::string mib(size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// Where the prompt's hidden states are, so that it fits; fails if it doesn't. Weights are not
/// counted: the system may drop the mapped file's pages, what WeightPages moved is no longer among
/// the memory that is available, and a device has them already.
HiddenStates::Place check_memory(std::span<Session::Impl* const> sessions, int64_t n,
                                 bool compress) {
  const Session::Impl& first = *sessions[0];
  Backend& backend = first.backend();
  const Device device = backend.device();
  const auto plan_of = [&](const Session::Impl& s) {
    SessionOptions options = s.options;
    if (!compress) options.kv.name = "full";
    return plan_memory(s.info(), options, n, backend.compute_dtype(), device);
  };
  MemoryPlan plan = plan_of(first);
  for (const Session::Impl* s : sessions.subspan(1)) {
    const MemoryPlan other = plan_of(*s);
    plan.kv_kept += other.kv_kept;
    plan.queries += other.queries;
    plan.kv_scratch = std::max(plan.kv_scratch, other.kv_scratch);
  }
  const bool spilled = !first.options.spill_dir.empty();
  const size_t allowed = first.options.memory_limit;
  const size_t limit = allowed > 0           ? allowed
                       : backend.is_device() ? backend.free_memory()
                                             : available_memory();
  const auto needed = [&] { return plan.total() - plan.weights; };
  if (needed() <= limit) return spilled ? HiddenStates::Place::file : HiddenStates::Place::memory;
  if (backend.is_device()) {
    plan.hidden_states =
        HiddenStates::bytes(n, first.info().n_embd, first.options.chunk, HiddenStates::Place::host);
    if (needed() <= limit) return HiddenStates::Place::host;
  }
  fail(ErrorCode::kDoesNotFit,
       "a prompt of {} tokens needs {} beside the weights (hidden states {}, one layer of KV {}, "
       "kept KV {}, activations {}, packed weights {}); {} are {}{}",
       n, mib(needed()), mib(plan.hidden_states), mib(plan.kv_scratch), mib(plan.kv_kept),
       mib(plan.activations), mib(plan.packed_weights), mib(limit),
       allowed > 0 ? "allowed by memory_limit" : "available",
       spilled || backend.is_device() ? "" : "; spill_dir would put hidden states into a file");
}

}  // namespace

void prefill_many(std::span<Session* const> batch, std::span<const int32_t> tokens,
                  const PrefillOptions& options) {
  std::vector<Session::Impl*> sessions;
  for (Session* s : batch) sessions.push_back(s->impl_.get());
  const int64_t n = static_cast<int64_t>(tokens.size());
  check_sessions(sessions, n);
  check_tokens(tokens, sessions[0]->info().n_vocab);
  if (options.n_logits < 1) {
    fail(ErrorCode::kUsage, "n_logits must be 1 or more, it is {}", options.n_logits);
  }
  if (sessions[0]->backend().is_device() && !sessions[0]->options.spill_dir.empty()) {
    fail(ErrorCode::kUsage,
         "spill_dir is for the CPU; a GPU's hidden states go to host memory when they don't fit");
  }
  const HiddenStates::Place place = check_memory(sessions, n, options.compress);
  Targets targets;
  for (Session::Impl* s : sessions) {
    targets.push_back(std::make_unique<PrefillTarget>(*s, n, options.compress));
  }
  PrefillRun run(targets, tokens, options, place);
  run.run();
  run.commit();
}

}  // namespace snapkv
