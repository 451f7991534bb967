// SPDX-License-Identifier: MIT
// Layer-major prefill (DESIGN.md section 2): every layer runs over the whole prompt in chunks, with
// one scratch layer for the keys and values of all tokens; then the policy selects and the kept rows
// move to the session's cache. Nothing of the session changes before the last layer is done.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/timer.h"
#include "engine/memory_plan.h"
#include "engine/session_impl.h"

namespace snapkv {
namespace {

/// Rows of logits computed at once after the last layer.
constexpr int64_t kOutputRows = 16;

/// Stores a chunk's keys and values in the scratch layer and attends to all rows up to it. Keeps the
/// queries of the prompt's last tokens for the policy.
class PrefillAttentionStep final : public AttentionStep {
 public:
  PrefillAttentionStep(Backend& backend, const ModelConfig& config, SessionStats& stats)
      : backend_(backend), config_(config), stats_(stats) {}

  /// The chunk that comes next: scratch layer, positions of its tokens, its queries' place in
  /// `q_window` (rows before 0 are not kept).
  void begin(KvLayer& scratch, std::span<const int32_t> pos, const Tensor& q_window,
             int64_t window_row) {
    scratch_ = &scratch;
    pos_ = pos;
    q_window_ = q_window;
    window_row_ = window_row;
  }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    Timer timer;
    std::vector<int32_t> n_past = scratch_->n_kv();
    scratch_->append(backend_, k, v, pos_);
    keep_window(q, k.shape[0]);
    const int64_t n_out = out.shape[0];
    if (n_out > 0) {
      for (int32_t& n : n_past) n += static_cast<int32_t>(k.shape[0] - n_out);
      PrefillAttention a;
      a.q = q.slice(q.shape[0] - n_out, q.shape[0]);
      a.k = scratch_->k_view();
      a.v = scratch_->v_view();
      a.n_past = n_past;
      a.scale = config_.attention_scale;
      a.out = out;
      ops::attention_prefill(backend_, a);
    }
    stats_.attention_seconds += timer.seconds();
  }

 private:
  /// Rows of q that belong to the window: those whose row in q_window is not negative.
  void keep_window(const Tensor& q, int64_t n) {
    if (!q_window_) return;
    const int64_t n_q = q.shape[0];
    const int64_t first = window_row_ + n - n_q;  // row of q's first query in q_window
    const int64_t skip = std::max<int64_t>(0, -first);
    if (skip >= n_q) return;
    const size_t row = static_cast<size_t>(q.stride[0]);
    backend_.copy(q_window_.at<float>(first + skip), q.at<float>(skip),
                  row * static_cast<size_t>(n_q - skip));
  }

  Backend& backend_;
  const ModelConfig& config_;
  SessionStats& stats_;
  KvLayer* scratch_ = nullptr;
  std::span<const int32_t> pos_;
  Tensor q_window_;
  int64_t window_row_ = 0;
};

/// One prefill: memory, loop over layers and chunks, selection. Leaves the session alone; commit()
/// hands over the result.
class PrefillRun {
 public:
  PrefillRun(Session::Impl& session, std::span<const int32_t> tokens, const PrefillOptions& options)
      : session_(session),
        tokens_(tokens),
        options_(options),
        backend_(session.backend()),
        architecture_(session.architecture()),
        config_(architecture_.config()),
        stats_(session.stats),
        n_(static_cast<int64_t>(tokens.size())),
        chunk_(std::min(n_, session.options.chunk)),
        n_window_(std::min<int64_t>(n_, session.policy->window_size())),
        n_logits_(std::min(n_, options.n_logits)),
        budget_(session.policy->budget_for(session.n_past + n_)),
        linear_(backend_),
        attention_(backend_, config_, stats_) {
    old_n_kv_.resize(session.layers.size());
  }
  ~PrefillRun() { restore(); }
  PrefillRun(const PrefillRun&) = delete;
  PrefillRun& operator=(const PrefillRun&) = delete;

  void run() {
    allocate();
    architecture_.embed(tokens_, hidden_);
    for (int il = 0; il < config_.n_layer; ++il) {
      if (n_ >= kPackedMinTokens) {
        Timer timer;
        linear_.pack(architecture_.layer_weights(il));
        stats_.pack_seconds += timer.seconds();
      }
      run_layer(il);
      compress_layer(il);
    }
    compute_logits();
  }

  void commit() {
    session_.layers = std::move(fresh_);
    session_.logits = std::move(logits_);
    session_.n_past += n_;
    stats_.n_prompt += n_;
    stats_.layers = std::move(layer_stats_);
    stats_.prefill_seconds += timer_.seconds();
    stats_.linear_seconds = stats_.prefill_seconds - stats_.pack_seconds -
                            stats_.attention_seconds - stats_.score_seconds -
                            stats_.gather_seconds;
    session_.stats = std::move(stats_);
    committed_ = true;
  }

 private:
  void allocate() {
    hidden_buffer_ = backend_.allocate(
        static_cast<size_t>(n_) * static_cast<size_t>(config_.n_embd) * sizeof(float),
        "hidden states of the prompt");
    hidden_ = hidden_buffer_.view(DType::f32, {n_, config_.n_embd});
    if (n_window_ > 0) {
      window_buffer_ = backend_.allocate(
          static_cast<size_t>(n_window_ * config_.n_head * config_.head_dim) * sizeof(float),
          "queries of the window");
      q_window_ = window_buffer_.view(DType::f32, {n_window_, config_.n_head, config_.head_dim});
    }
    pos_.resize(static_cast<size_t>(n_));
    std::iota(pos_.begin(), pos_.end(), static_cast<int32_t>(session_.n_past));
    fresh_.resize(static_cast<size_t>(config_.n_layer));
    layer_stats_.resize(static_cast<size_t>(config_.n_layer));
  }

  /// An empty scratch layer with room for the old rows and the prompt, holding the old rows.
  void fill_scratch(int il) {
    int32_t n_rows = static_cast<int32_t>(n_);
    const KvLayer* old = session_.layers.empty() ? nullptr : &session_.layers[static_cast<size_t>(il)];
    if (old != nullptr) {
      const std::vector<int32_t> n_kv = old->n_kv();
      n_rows += *std::max_element(n_kv.begin(), n_kv.end());
    }
    const bool keeps_all = n_rows <= budget_;  // the scratch layer will become the cache
    const int32_t reserve = keeps_all ? static_cast<int32_t>(session_.options.decode_reserve) : 0;
    const bool fits = scratch_ && scratch_.capacity(0) >= n_rows + reserve;
    if (!fits) {
      scratch_ = KvLayer();  // the old one goes first
      const std::vector<int32_t> capacity(static_cast<size_t>(config_.n_head_kv), n_rows + reserve);
      scratch_ = KvLayer(backend_, session_.meter, config_.head_dim, session_.options.kv_type, capacity);
    }
    scratch_.clear();
    if (old != nullptr) scratch_.append(backend_, *old);
  }

  void run_layer(int il) {
    fill_scratch(il);
    const DType dtype = linear_.input_dtype();
    buffers_.ensure(backend_, config_, chunk_, dtype);
    const bool last = il + 1 == config_.n_layer;
    // the last layer's queries and outputs are needed only where something reads them
    const int64_t first_q = last ? n_ - std::max(n_window_, n_logits_) : 0;
    const int64_t first_out = last ? n_ - n_logits_ : 0;
    for (int64_t begin = 0; begin < n_; begin += chunk_) {
      const int64_t end = std::min(n_, begin + chunk_);
      LayerPass pass;
      pass.x = hidden_.slice(begin, end);
      pass.pos = std::span(pos_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      pass.n_q = std::clamp<int64_t>(end - first_q, 0, end - begin);
      pass.n_out = std::clamp<int64_t>(end - first_out, 0, end - begin);
      pass.attention = &attention_;
      pass.linear = &linear_;
      pass.buffers = &buffers_;
      attention_.begin(scratch_, pass.pos, q_window_, begin - (n_ - n_window_));
      architecture_.layer(il, pass);
      report(il, end);
    }
  }

  void compress_layer(int il) {
    Timer timer;
    const std::vector<int32_t> n_rows = scratch_.n_kv();
    Selection selection;
    selection.keep_all =
        std::all_of(n_rows.begin(), n_rows.end(), [&](int32_t n) { return n <= budget_; });
    if (!selection.keep_all) {
      PolicyInput input;
      input.il = il;
      input.n_layer = static_cast<int>(config_.n_layer);
      input.q_window = q_window_;
      input.k = scratch_.k_view();
      input.v = scratch_.v_view();
      input.n_rows = n_rows;
      input.scale = config_.attention_scale;
      selection = session_.policy->select(backend_, input, budget_);
    }
    stats_.score_seconds += timer.lap();
    KvLayer& fresh = fresh_[static_cast<size_t>(il)];
    if (selection.keep_all) {
      keep_scratch(il);
    } else {
      fresh = scratch_.gather(backend_, selection,
                              static_cast<int32_t>(session_.options.decode_reserve));
    }
    stats_.gather_seconds += timer.lap();
    SessionStats::Layer& layer = layer_stats_[static_cast<size_t>(il)];
    layer.n_total = session_.n_past + n_;
    for (int h = 0; h < fresh.n_head_kv(); ++h) layer.n_kept.push_back(fresh.n_kv(h));
  }

  /// The scratch layer becomes the cache. Its first rows are the old cache's, so the old one is freed
  /// at once: restore() can cut the new one back.
  void keep_scratch(int il) {
    fresh_[static_cast<size_t>(il)] = std::move(scratch_);
    scratch_ = KvLayer();
    if (!session_.layers.empty()) {
      old_n_kv_[static_cast<size_t>(il)] = session_.layers[static_cast<size_t>(il)].n_kv();
      session_.layers[static_cast<size_t>(il)] = KvLayer();
    }
  }

  /// After an error: gives the session back the layers that keep_scratch() took.
  void restore() {
    if (committed_) return;
    for (size_t il = 0; il < old_n_kv_.size(); ++il) {
      if (old_n_kv_[il].empty()) continue;
      fresh_[il].truncate(old_n_kv_[il]);
      session_.layers[il] = std::move(fresh_[il]);
    }
  }

  void compute_logits() {
    const int64_t n_vocab = config_.n_vocab;
    logits_.resize(static_cast<size_t>(n_logits_ * n_vocab));
    linear_.unpack();
    for (int64_t begin = 0; begin < n_logits_; begin += kOutputRows) {
      const int64_t rows = std::min(kOutputRows, n_logits_ - begin);
      const Tensor x = hidden_.slice(n_ - n_logits_ + begin, n_ - n_logits_ + begin + rows);
      const Tensor logits(logits_.data() + begin * n_vocab, DType::f32, {rows, n_vocab});
      architecture_.output(x, session_.decode_buffers, logits);
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

  Session::Impl& session_;
  std::span<const int32_t> tokens_;
  const PrefillOptions& options_;
  Backend& backend_;
  Architecture& architecture_;
  const ModelConfig& config_;
  SessionStats stats_;                            // the session's, if all goes well
  const int64_t n_, chunk_, n_window_, n_logits_, budget_;

  Timer timer_;
  LinearRunner linear_;
  PrefillAttentionStep attention_;
  ActivationBuffer buffers_;
  Buffer hidden_buffer_, window_buffer_;
  Tensor hidden_;                                 // [n, n_embd] f32
  Tensor q_window_;                               // [n_window, n_head, head_dim] f32
  std::vector<int32_t> pos_;                      // [n]
  KvLayer scratch_;
  std::vector<KvLayer> fresh_;                    // [n_layer]
  std::vector<std::vector<int32_t>> old_n_kv_;    // [n_layer], of layers that keep_scratch() took
  std::vector<float> logits_;
  std::vector<SessionStats::Layer> layer_stats_;
  bool committed_ = false;
};

void check_tokens(std::span<const int32_t> tokens, int64_t n_vocab) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= n_vocab) {
      fail(ErrorCode::kUsage, "token {} of the prompt is {}, the vocabulary has {} tokens", i,
           tokens[i], n_vocab);
    }
  }
}

std::string mib(size_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

/// Weights are mapped from the file and may be dropped by the system: they are not counted.
void check_memory(const Session::Impl& session, int64_t n) {
  const MemoryPlan plan =
      plan_memory(session.info(), session.options, n, session.backend().compute_dtype());
  const size_t needed = plan.total() - plan.weights;
  const size_t limit = session.options.memory_limit > 0 ? session.options.memory_limit
                                                        : available_memory();
  if (needed <= limit) return;
  fail(ErrorCode::kDoesNotFit,
       "a prompt of {} tokens needs {} beside the weights (hidden states {}, one layer of KV {}, "
       "kept KV {}, activations {}, packed weights {}); {} are {}",
       n, mib(needed), mib(plan.hidden_states), mib(plan.kv_scratch), mib(plan.kv_kept),
       mib(plan.activations), mib(plan.packed_weights), mib(limit),
       session.options.memory_limit > 0 ? "allowed by memory_limit" : "available");
}

}  // namespace

void Session::Impl::prefill(std::span<const int32_t> tokens, const PrefillOptions& prefill_options) {
  const int64_t n = static_cast<int64_t>(tokens.size());
  if (n == 0) fail(ErrorCode::kUsage, "the prompt has no tokens");
  if (prefill_options.n_logits < 1) {
    fail(ErrorCode::kUsage, "n_logits must be 1 or more, it is {}", prefill_options.n_logits);
  }
  check_tokens(tokens, info().n_vocab);
  if (n_past + n > n_ctx) {
    fail(ErrorCode::kContextExceeded, "the prompt has {} tokens after {} already seen, the context {}",
         n, n_past, n_ctx);
  }
  check_memory(*this, n);
  {
    PrefillRun run(*this, tokens, prefill_options);
    run.run();
    run.commit();
  }
  update_memory_stats();
}

}  // namespace snapkv
