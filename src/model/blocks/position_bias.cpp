// SPDX-License-Identifier: MIT
#include "model/blocks/position_bias.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/ops.h"

namespace snapkv {
namespace {

constexpr int32_t kBase = 64;
constexpr int64_t kMostHighest = PositionBiasSpec::kMostTokens / (kBase * kBase);

/// [n, heads, d] as [n * heads, d].
Tensor head_rows(const Tensor& t) { return t.reshaped({t.shape[0] * t.shape[1], t.shape[2]}); }

/// The slope of head h: those of a power of two of heads are a geometric series, and further heads
/// have every second one of the series of twice as many.
double slope_of(int64_t h, int64_t n_head, double max_bias) {
  const auto n_whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n_head)));
  const double step = max_bias / static_cast<double>(n_whole);
  if (h < n_whole) return std::exp2(-step * static_cast<double>(h + 1));
  return std::exp2(-step / 2 * static_cast<double>(2 * (h - n_whole) + 1));
}

/// The part of x that bf16 holds.
float leading_bits(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
}

/// What digits are divided by, and slopes multiplied with, so that keys stay small and queries
/// within f16. `most`: the highest value that multiplies a digit.
float balance(float most) {
  float factor = 64.0f;
  while (factor > 1.0f && factor * kBase * most > 32768.0f) factor /= 2;
  return factor;
}

}  // namespace

PositionBias::PositionBias(const BlockContext& context, LayerLoader& loader) {
  const LayerSpec& layer = loader.layer();
  const int64_t n = layer.position_bias.n_values, d = layer.state.head_dim_k;
  const auto factor_of = [&](int64_t h) {  // scores are multiplied by the layer's scale
    return static_cast<float>(slope_of(h, layer.n_head, layer.position_bias.max_bias)) /
           layer.scale;
  };
  float most = 0.0f;
  for (int64_t h = 0; h < layer.n_head; ++h) most = std::max(most, factor_of(h));
  const float factor = balance(most);
  slopes_ = loader.ones(layer.n_head * n).reshaped({layer.n_head, n});
  for (int64_t h = 0; h < layer.n_head; ++h) {
    const float all = factor_of(h) * factor, high = leading_bits(all), low = all - high;
    float* const row = slopes_.at<float>(h);
    std::fill_n(row, n, 0.0f);
    for (int64_t i = 0; i < 6; i += 2) {
      const float weight = i == 0 ? 1.0f : static_cast<float>(kBase);
      row[i] = weight * high;
      row[i + 1] = weight * low;
    }
  }
  digits_ = loader.ones(kBase * 2).reshaped({kBase, 2});
  for (int64_t i = 0; i < kBase; ++i) {
    std::fill_n(digits_.at<float>(i), 2, static_cast<float>(i) / factor);
  }
  highest_ = loader.ones(kMostHighest * (n - 4)).reshaped({kMostHighest, n - 4});
  for (int64_t i = 0; i < kMostHighest; ++i) {
    float* const row = highest_.at<float>(i);
    std::fill_n(row, n - 4, 0.0f);
    std::fill_n(row, 2, static_cast<float>(i * kBase) / factor);
  }
  ActivationPlan& plan = context.activations;
  const int64_t n_kv = layer.state.n_head;
  q_ = plan.add_heads("biased q", layer.n_head, d);
  k_ = plan.add_heads("biased k", n_kv, d);
  q_values_ = plan.add_heads("slopes", layer.n_head, n);
  first_ = plan.add_heads("first digits", n_kv, 2);
  second_ = plan.add_heads("second digits", n_kv, 2);
  third_ = plan.add_heads("third digits", n_kv, n - 4);
}

Tensor PositionBias::look_up(const Tensor& table, std::span<const int32_t> ids,
                             const ActivationTensor& out, const LayerPass& pass) const {
  const int64_t n_rows = static_cast<int64_t>(ids.size());
  const Tensor rows = head_rows(pass.buffers->get(out, n_rows / out.n_head));
  ops::embed(*pass.backend, table, ids, rows);
  return rows;
}

Tensor PositionBias::widen_queries(const Tensor& q, const LayerPass& pass) const {
  const int64_t n_rows = q.shape[0] * q.shape[1];
  const Tensor wide = pass.buffers->get(q_, q.shape[0]);
  std::vector<int32_t> heads(n_rows);
  for (int64_t i = 0; i < n_rows; ++i) heads[i] = static_cast<int32_t>(i % q.shape[1]);
  const Tensor parts[] = {head_rows(q), look_up(slopes_, heads, q_values_, pass)};
  ops::join(*pass.backend, parts, head_rows(wide));
  return wide;
}

Tensor PositionBias::widen_keys(const Tensor& k, const LayerPass& pass) const {
  const int64_t n_heads = k.shape[1];
  const Tensor wide = pass.buffers->get(k_, k.shape[0]);
  std::vector<int32_t> first, second, third;
  for (const int32_t pos : pass.pos) {
    first.insert(first.end(), n_heads, pos % kBase);
    second.insert(second.end(), n_heads, pos / kBase % kBase);
    third.insert(third.end(), n_heads, pos / (kBase * kBase));
  }
  const Tensor parts[] = {head_rows(k), look_up(digits_, first, first_, pass),
                          look_up(digits_, second, second_, pass),
                          look_up(highest_, third, third_, pass)};
  ops::join(*pass.backend, parts, head_rows(wide));
  return wide;
}

std::vector<Tensor> PositionBias::tables() const { return {slopes_, digits_, highest_}; }

}  // namespace snapkv
