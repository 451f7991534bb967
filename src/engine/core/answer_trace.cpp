// SPDX-License-Identifier: MIT
#include "engine/core/answer_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/ops.h"
#include "engine/core/select_rows.h"
#include "engine/core/session_impl.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

/// Layers whose heads find what an answer is taken from: in SmolLM2 those between three and nine
/// tenths of the depth, of which a few are as good as all; in Gemma 3 each of the three layers
/// without a window.
std::vector<int> traced_layers(const ModelSpec& spec) {
  constexpr int kMost = 6;
  std::vector<int> all;
  for (int il = 0; il < std::ssize(spec.layers); ++il) {
    if (spec.layers[spec.rows_of(il)].compressed) all.push_back(il);
  }
  const auto n = static_cast<int>(all.size());
  if (n <= kMost) return all;
  std::vector<int> layers;
  for (int i = 0; i < kMost; ++i) {
    const double depth = 0.3 + 0.6 * i / (kMost - 1);
    const int k = std::min(n - 1, static_cast<int>(std::lround(depth * n)));
    if (layers.empty() || layers.back() != all[k]) layers.push_back(all[k]);
  }
  return layers;
}

/// First positions, which all queries attend to whatever they say (arXiv 2309.17453).
constexpr size_t kSinks = 4;

/// Lets the n queries q of the last tokens vote for the rows of layer layers()[k].
void vote(Session::Impl& s, int k, const RowState& rows, const Tensor& q) {
  Backend& backend = s.backend();
  const int il = s.trace.layers()[k];
  const LayerSpec& spec = s.architecture().layer_spec(il);
  const std::vector<int32_t> n_rows = rows.n_rows();
  const int64_t n_before = rows.most_rows() - q.shape[0];
  std::vector<float> votes(n_rows.size() * n_before);
  const Buffer storage = backend.allocate(votes.size() * sizeof(float), "votes of an answer");
  ops::window_votes(backend, {.q = q,
                              .k = rows.views().k,
                              .n_rows = n_rows,
                              .scale = spec.scale,
                              .group = GroupReduce::max,
                              .votes = storage.view(DType::f32, {std::ssize(n_rows), n_before}),
                              .variant = s.architecture().variant(il),
                              .reduce = VoteReduce::max});
  backend.download(votes.data(), storage.data(), votes.size() * sizeof(float));
  for (int64_t h = 0; h < std::ssize(n_rows); ++h) {
    const std::vector<int32_t> positions = rows.positions(backend, static_cast<int>(h));
    for (int64_t i = 0; i < n_rows[h] - q.shape[0]; ++i) {
      s.trace.note(k, positions[i], votes[h * n_before + i]);
    }
  }
}

}  // namespace

void vote_pending(Session::Impl& s) {
  if (s.trace.n_pending() == 0) return;
  for (int k = 0; k < std::ssize(s.trace.layers()); ++k) {
    const int il = s.trace.layers()[k];
    const int64_t n = s.trace.n_pending();
    const LayerSpec& layer = s.architecture().layer_spec(il);
    const Buffer q = s.trace.pending(s.backend(), k);
    const Tensor queries = q.view(DType::f32, {n, layer.n_head, layer.state.head_dim_k});
    const int rows_of = s.architecture().spec().rows_of(il);
    const RowState& rows = s.reads_all(rows_of) ? *s.history[rows_of] : s.layers[rows_of]->rows();
    if (rows.has_views()) {
      vote(s, k, rows, queries);
    } else {
      vote(s, k, *readable_copy(s, il, rows), queries);
    }
  }
  s.trace.clear_pending();
}

AnswerTrace::AnswerTrace(Backend& backend, const ModelSpec& spec, int64_t n_tokens)
    : layers_(traced_layers(spec)) {
  if (layers_.empty()) return;
  std::vector<int64_t> floats;
  for (const int il : layers_) floats.push_back(spec.layers[il].n_q());
  queries_ = QueryRing(backend, std::move(floats), kPiece);
  strongest_.assign(layers_.size(), std::vector<float>(n_tokens));
}

void AnswerTrace::push(Backend& backend, int il, int64_t i, const void* q) {
  const auto found = std::find(layers_.begin(), layers_.end(), il);
  if (found == layers_.end()) return;
  queries_.push(backend, static_cast<int>(found - layers_.begin()), i, q);
}

void AnswerTrace::advance(int64_t n_tokens) {
  queries_.advance(n_tokens);
  n_pending_ += n_tokens;
}

void AnswerTrace::pop(int64_t n_tokens) {
  queries_.pop(n_tokens);
  n_pending_ -= n_tokens;
}

void AnswerTrace::note(int k, int32_t position, float attention) {
  std::vector<float>& strongest = strongest_[k];
  if (position >= std::ssize(strongest)) return;  // a token of the answer itself
  strongest[position] = std::max(strongest[position], attention);
}

std::vector<float> AnswerTrace::attention() const {
  std::vector<float> mean(strongest_.empty() ? 0 : strongest_[0].size());
  for (const std::vector<float>& layer : strongest_) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += layer[i] / std::size(strongest_);
  }
  std::fill_n(mean.begin(), std::min<size_t>(kSinks, mean.size()), 0.0F);
  return mean;
}

}  // namespace snapkv
