// SPDX-License-Identifier: MIT
#include "engine/prefill/prefill_run.h"

#include <algorithm>

#include "base/error.h"
#include "engine/core/finite_check.h"

namespace snapkv {
namespace {

/// Asks the system to read the weights of layer il from the disk while the layer before it is
/// computed, so that a model larger than the memory streams through it once per prompt.
void prefetch_layer(const GgufFile* file, const Architecture& architecture, int il) {
  if (file == nullptr || il >= architecture.config().n_layer) return;
  for (const GgufTensor* t : architecture.layer_tensors(il)) file->will_need(*t);
}

/// Attention of several prompts in one chunk; each attends to its own rows.
class SharedAttention final : public AttentionStep {
 public:
  void add(AttentionStep& step, int64_t n_tokens) { parts_.push_back({&step, n_tokens}); }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    attend_to_chosen({}, q, k, v, out);
  }
  void attend_to_chosen(const RowChoice& choice, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& out) override {
    int64_t begin = 0;
    for (const auto& [step, n] : parts_) {
      const int64_t end = begin + n;
      step->attend_to_chosen(choice.slice(begin, end), q.slice(begin, end),
                             k ? k.slice(begin, end) : k, v ? v.slice(begin, end) : v,
                             out.slice(begin, end));
      begin = end;
    }
  }

 private:
  struct Part {
    AttentionStep* step;
    int64_t n_tokens;
  };
  std::vector<Part> parts_;
};

}  // namespace

PrefillRun::PrefillRun(Segments segments, PrefillTimes& times)
    : segments_(std::move(segments)),
      times_(times),
      first_(segments_[0]->first()),
      backend_(first_.backend()),
      architecture_(first_.architecture()),
      plan_(segments_[0]->plan()),
      linear_(backend_) {
  for (const auto& segment : segments_) n_tokens_ += segment->plan().n_tokens;
  n_computed_ = segments_.size() == 1 ? plan_.n_computed() : n_tokens_;
  chunk_ = segments_.size() == 1 ? plan_.chunk : n_tokens_;
}

bool PrefillRun::step() {
  if (!begun_) begin();
  Timer timer;
  if (il_ == architecture_.config().n_layer) {
    const bool is_done = compute_logits();
    times_.layers += timer.lap();
    return is_done;
  }
  if (n_done_ == 0) {
    begin_layer();
    n_done_ = plan_.n_skipped;
  }
  timer.lap();
  const int64_t end = std::min(end_of_text(n_done_), n_done_ + chunk_);
  run_chunk(n_done_, end);
  n_done_ = end;
  if (n_done_ == n_computed_) backend_.synchronize();  // before the time is taken
  const double packing = linear_.take_pack_seconds();
  const double seconds = timer.lap();
  times_.pack += packing;
  times_.layers += seconds - packing;
  // a prompt that drops weights after use keeps the memory small: moved ones would stay
  if (!plan_.releases_weights) move_weights(seconds, plan_.planned_bytes);
  report();
  if (n_done_ < n_computed_) return false;
  end_layer();
  n_done_ = 0;
  if (++il_ < architecture_.config().n_layer) return false;
  timer.lap();
  linear_.unpack();
  const bool is_done = compute_logits();
  times_.layers += timer.lap();
  return is_done;
}

/// Where the prompt or the replay ends that a token of the run belongs to.
int64_t PrefillRun::end_of_text(int64_t token) const {
  const Replay* const replay = segments_.size() == 1 ? plan_.replay_at(token) : nullptr;
  return replay == nullptr ? n_tokens_ : replay->first + std::ssize(replay->tokens);
}

double PrefillRun::fraction() const {
  const double done = static_cast<double>(n_done_) / static_cast<double>(n_computed_);
  return (il_ + done) / static_cast<double>(architecture_.config().n_layer);
}

void PrefillRun::commit() {
  for (const auto& segment : segments_) segment->prepare_commit();
  if (plan_.releases_weights) {
    hidden_ = {};
    buffers_ = {};
    move_weights(times_.total(), 0);
  }
  for (const auto& segment : segments_) segment->commit(times_);
}

void PrefillRun::begin() {
  const int64_t n_states = n_tokens_ + (segments_.size() == 1 ? plan_.n_replayed : 0);
  hidden_ = HiddenStates(backend_, plan_.hidden_place, n_states, architecture_.config().n_hidden(),
                         chunk_, first_.options.spill_dir);
  for (const auto& segment : segments_) {
    segment->allocate();
    if (segments_.size() == 1) break;
    const std::span<const int32_t> tokens = segment->plan().tokens;
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  begun_ = true;
}

void PrefillRun::begin_layer() {
  Timer timer;
  if (plan_.packed) linear_.pack(architecture_.layer_matrices(il_), plan_.packed_at_use);
  if (plan_.releases_weights && !linear_.reads_weights()) release_layer();
  if (plan_.packed) times_.pack += timer.lap();  // exactly 0 if nothing was packed
  prefetch_layer(first_.parts.file, architecture_, il_ + 1);
  for (const auto& segment : segments_) segment->begin_layer(il_);
  buffers_.ensure(backend_, architecture_.activations(), chunk_, linear_.input_dtype());
  times_.layers += timer.lap();
}

void PrefillRun::move_weights(double seconds, size_t planned_bytes) {
  if (first_.parts.weight_pages == nullptr) return;
  Timer timer;
  first_.parts.weight_pages->during_prompt(seconds, planned_bytes);
  times_.pack += timer.lap();
}

/// Takes the layer's weights out of this process's resident memory; the system still caches the
/// file while it has room.
void PrefillRun::release_layer() {
  for (const GgufTensor* t : architecture_.layer_tensors(il_)) first_.parts.file->dont_need(*t);
}

/// Computes tokens [begin, end) of layer il_.
void PrefillRun::run_chunk(int64_t begin, int64_t end) {
  const int64_t n = end - begin;
  LayerPass pass;
  pass.backend = &backend_;
  pass.x = hidden_.enter(begin, end);
  pass.n_ctx = first_.n_ctx;
  pass.n_q = pass.n_out = n;
  pass.linear = &linear_;
  pass.buffers = &buffers_;
  SharedAttention shared;
  sequences_.clear();
  std::span<const int32_t> tokens = tokens_;
  if (segments_.size() == 1) {
    const bool last = il_ + 1 == architecture_.config().n_layer;
    const int64_t first_out = last ? n_tokens_ - plan_.n_logits : 0;
    pass.n_q = std::clamp<int64_t>(end - segments_[0]->first_query(il_), 0, n);
    const Replay* const replay = plan_.replay_at(begin);
    pass.n_out = replay != nullptr && last ? 0 : std::clamp<int64_t>(end - first_out, 0, n);
    pass.attention = &segments_[0]->begin_chunk(il_, begin, end, 0, sequences_);
    pass.pos = segments_[0]->pos();
    tokens = replay != nullptr ? std::span(replay->tokens).subspan(begin - replay->first, n)
                               : plan_.tokens.subspan(begin - plan_.n_skipped, n);
  } else {
    pos_.clear();
    int64_t first_row = 0;
    for (const auto& segment : segments_) {
      const int64_t n_segment = segment->plan().n_tokens;
      shared.add(segment->begin_chunk(il_, 0, n_segment, first_row, sequences_), n_segment);
      first_row += n_segment;
      pos_.insert(pos_.end(), segment->pos().begin(), segment->pos().end());
    }
    pass.attention = &shared;
    pass.pos = pos_;
  }
  pass.sequences = sequences_;
  pass.tokens = tokens;
  if (il_ == 0) architecture_.embed(tokens, pass);
  architecture_.layer(il_, pass);
  for (const auto& segment : segments_) {
    segment->end_chunk(segments_.size() == 1 ? end : segment->plan().n_tokens);
  }
  hidden_.leave(begin, end);
}

void PrefillRun::end_layer() {
  if (plan_.releases_weights && linear_.reads_weights()) release_layer();
  for (const auto& segment : segments_) segment->end_layer(il_);
}

bool PrefillRun::compute_logits() {
  constexpr int64_t kRowsOfStep = 256;  // of those that are reported: others wait meanwhile
  int64_t n_left = kRowsOfStep;
  for (; out_segment_ < segments_.size(); ++out_segment_) {
    PrefillSegment& segment = *segments_[out_segment_];
    const int64_t n_vocab = architecture_.config().n_vocab, n_logits = segment.plan().n_logits;
    const bool reports = segment.options().on_logits != nullptr;
    if (segment.logits().empty()) {
      segment.logits() = LogitRows(backend_, (reports ? 1 : n_logits) * n_vocab);
    }
    const Buffer storage = backend_.allocate(
        std::min(kOutputRows, n_logits) * n_vocab * sizeof(float), LogitRows::kLabel);
    while (n_out_ < n_logits) {
      if (reports && n_left <= 0) return false;
      const int64_t rows = std::min(kOutputRows, n_logits - n_out_);
      compute_logits(segment, storage, rows);
      n_out_ += rows;
      n_left -= rows;
      if (!backend_.computes()) break;  // the first rows are as many as any others
    }
    if (backend_.computes()) {
      require_finite_logits(segment.logits().values(), n_vocab, "a prompt");
    }
    out_row_ += segment.plan().n_tokens;
    n_out_ = 0;
  }
  return true;
}

void PrefillRun::compute_logits(PrefillSegment& segment, const Buffer& storage, int64_t rows) {
  const int64_t n_vocab = architecture_.config().n_vocab;
  const int64_t n = segment.plan().n_tokens, n_logits = segment.plan().n_logits;
  const int64_t token = n - n_logits + n_out_;
  const Tensor x = hidden_.enter(out_row_ + token, out_row_ + token + rows);
  const Tensor logits = storage.view(DType::f32, {rows, n_vocab});
  architecture_.output(backend_, x, first_.decode_buffers, logits);
  const auto& report = segment.options().on_logits;
  if (!report) {
    backend_.download(segment.logits().values().data() + n_out_ * n_vocab, logits.data,
                      rows * n_vocab * sizeof(float));
    return;
  }
  reported_.resize(rows * n_vocab);
  backend_.download(reported_.data(), logits.data, rows * n_vocab * sizeof(float));
  require_finite_logits(reported_, n_vocab, "a prompt");
  for (int64_t i = 0; i < rows; ++i) {
    report(token + i, std::span<const float>(reported_).subspan(i * n_vocab, n_vocab));
  }
  segment.logits().assign(backend_, std::span<const float>(reported_).last(n_vocab));
}

void PrefillRun::report() const {
  for (const auto& segment : segments_) {
    const ProgressFn& progress = segment->options().progress;
    if (!progress) continue;
    Progress p;
    p.phase = Phase::prefill;
    p.il = il_;
    p.n_layer = static_cast<int>(architecture_.config().n_layer);
    p.n_tokens = segment->plan().n_tokens;
    p.fraction = fraction();
    p.seconds = timer_.seconds();
    if (!progress(p)) {
      fail(ErrorCode::kCancelled, "prefill was cancelled at {:.0f}%", 100 * p.fraction);
    }
  }
}

}  // namespace snapkv
