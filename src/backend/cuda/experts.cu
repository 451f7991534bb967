// SPDX-License-Identifier: MIT
// Mixtures of experts. The choice of experts stays on the device, so that a decode step is a graph:
// the kernels of a few rows read it there.
//
//   Floor of few rows: bytes of the chosen experts' matrices / memory bandwidth. Each warp computes
//   an output of one token and one of its experts, from a row of that expert's matrix. Tokens that
//   chose the same expert read it together: the blocks of a row's tokens follow one another, so all
//   but the first find it in the second-level cache.
//
// Many rows, and weights for which the device has no room: the choice is downloaded, and the
// experts' products run one after another for the tokens that chose them.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/load_values.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

// ---------------------------------------------------------------- route

struct RouteArguments {
  const float* logits;   // [n, n_expert]
  const float* bias;     // [n_expert] or nullptr
  const float* factors;  // as bias
  int n_expert, n_used;
  Routing rule;
  int32_t* experts;  // [n, n_used]
  float* weights;    // [n, n_used]
};

/// Whether value a at index i ranks before value b at index j.
__device__ __forceinline__ bool ranks_before(float a, int i, float b, int j) {
  if (a != a || b != b) return (a != a) == (b != b) ? i < j : b != b;
  return a > b || (a == b && i < j);
}

/// The index of the highest of values[0, n) that is not taken; every lane receives it.
__device__ __forceinline__ int find_highest(const float* values, const bool* taken, int n,
                                            int lane) {
  int best = -1;
  float most = 0.0f;
  for (int i = lane; i < n; i += kWarpSize) {
    if (taken[i] || (best >= 0 && !ranks_before(values[i], i, most, best))) continue;
    best = i;
    most = values[i];
  }
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    const int other = __shfl_xor_sync(kAllLanes, best, bits);
    const float value = __shfl_xor_sync(kAllLanes, most, bits);
    if (other >= 0 && (best < 0 || ranks_before(value, other, most, best))) {
      best = other;
      most = value;
    }
  }
  return best;
}

/// Puts the experts of all but the best groups below all others. Called by one lane.
__device__ void drop_groups(const Routing& rule, int n_expert, float* keys) {
  const int n_group = static_cast<int>(rule.n_group), size = n_expert / n_group;
  const bool one_only = rule.n_group_best == 1;
  const auto sum_of = [&](int g) {  // of the two highest, or the highest
    int first = 0, second = -1;
    for (int i = 1; i < size; ++i) {
      const float* k = keys + g * size;
      if (ranks_before(k[i], i, k[first], first)) {
        second = first;
        first = i;
      } else if (second < 0 || ranks_before(k[i], i, k[second], second)) {
        second = i;
      }
    }
    const bool is_sum = second >= 0 && !one_only;
    return keys[g * size + first] + (is_sum ? keys[g * size + second] : 0.0f);
  };
  // A group stays if fewer than n_group_used rank before it. Keys change only after all sums are
  // known: dropped groups are marked in the second half of the memory.
  float* dropped = keys + n_expert;
  for (int g = 0; g < n_group; ++g) {
    int n_before = 0;
    for (int other = 0; other < n_group; ++other) {
      n_before += ranks_before(sum_of(other), other, sum_of(g), g) ? 1 : 0;
    }
    dropped[g] = n_before < static_cast<int>(rule.n_group_used) ? 0.0f : 1.0f;
  }
  for (int i = 0; i < n_expert; ++i) {
    if (dropped[i / size] != 0.0f) keys[i] = -INFINITY;
  }
}

/// The weight of ExpertScore::sparse_mixer of the expert `best`, in every lane: `taken` are those
/// chosen before it.
__device__ __forceinline__ float sparse_weight(const float* logits, const bool* taken, int n,
                                               int best, float jitter, int lane) {
  const float most = logits[best];
  float sum = 0.0f;
  for (int e = lane; e < n; e += kWarpSize) {
    const float distance = (most - logits[e]) / fmaxf(fabsf(logits[e]), most);
    if (!taken[e] && !(distance > 2.0f * jitter)) sum += expf(logits[e] - most);
  }
  return 1.0f / warp_sum(sum);
}

// A warp for each token. Experts are at most kMostExperts.
__global__ void __launch_bounds__(kWarpSize) route_kernel(const RouteArguments a) {
  __shared__ float scores[kMostExperts];
  __shared__ float keys[2 * kMostExperts];
  __shared__ bool taken[kMostExperts];
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int lane = threadIdx.x, n = a.n_expert;
  const float* logits = a.logits + int64_t{blockIdx.x} * n;
  int32_t* experts = a.experts + int64_t{blockIdx.x} * a.n_used;
  float* weights = a.weights + int64_t{blockIdx.x} * a.n_used;

  float max = -INFINITY, sum = 0.0f;
  for (int e = lane; e < n; e += kWarpSize) max = fmaxf(max, logits[e]);
  max = warp_max(max);
  for (int e = lane; e < n; e += kWarpSize) sum += expf(logits[e] - max);
  sum = warp_sum(sum);
  const bool by_score = a.bias != nullptr || a.rule.n_group > 1;
  for (int e = lane; e < n; e += kWarpSize) {
    const float v = logits[e];
    scores[e] = a.rule.score == ExpertScore::softmax   ? expf(v - max) / sum
                : a.rule.score == ExpertScore::sigmoid ? 1.0f / (1.0f + expf(-v))
                                                       : v;
    keys[e] = by_score ? scores[e] + (a.bias != nullptr ? a.bias[e] : 0.0f) : v;
    taken[e] = false;
  }
  __syncwarp();
  if (a.rule.n_group > 1) {
    if (lane == 0) drop_groups(a.rule, n, keys);
    __syncwarp();
  }
  for (int i = 0; i < a.n_used; ++i) {
    const int best = find_highest(keys, taken, n, lane);
    const float weight = a.rule.score == ExpertScore::sparse_mixer
                             ? sparse_weight(logits, taken, n, best, a.rule.jitter, lane)
                             : scores[best];
    __syncwarp();
    if (lane == 0) {
      taken[best] = true;
      experts[i] = best;
      weights[i] = weight;
    }
    __syncwarp();
  }
  if (lane != 0) return;
  if (a.rule.score == ExpertScore::softmax_of_chosen) {
    float most = weights[0], total = 0.0f;
    for (int i = 1; i < a.n_used; ++i) most = fmaxf(most, weights[i]);
    for (int i = 0; i < a.n_used; ++i) total += weights[i] = expf(weights[i] - most);
    for (int i = 0; i < a.n_used; ++i) weights[i] /= total;
  }
  float total = 1.0f;
  if (a.rule.normalized) {
    total = 0.0f;
    for (int i = 0; i < a.n_used; ++i) total += weights[i];
  }
  for (int i = 0; i < a.n_used; ++i) {
    weights[i] = weights[i] / total * a.rule.scale;
    if (a.factors != nullptr) weights[i] *= a.factors[experts[i]];
  }
}

// ---------------------------------------------------------------- few rows

constexpr int kExpertWarps = 4;  // per block, each with an output of its own

/// One matrix of every expert. Those of other types, which another launch multiplies, are null.
struct ExpertMatrices {
  const char* const* w;      // [n_expert], each [n_out, n_in]
  const float* const* bias;  // [n_expert], each [n_out] or nullptr
  int64_t row_bytes;
  int n_out, n_in;
};

// y[i, :] = w_e x[i / n_shared, :] + bias_e with e = chosen[i]; row i = blockIdx.x.
template <typename S>
__global__ void __launch_bounds__(kExpertWarps* kWarpSize)
    expert_product_kernel(const ExpertMatrices m, const int32_t* chosen, const float* x,
                          int n_shared, float* y) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int lane = threadIdx.x % kWarpSize;
  const int64_t row = blockIdx.x;
  const int o = static_cast<int>(blockIdx.y) * kExpertWarps + threadIdx.x / kWarpSize;
  const int expert = chosen[row];
  if (o >= m.n_out || m.w[expert] == nullptr) return;
  const char* w = m.w[expert] + o * m.row_bytes;
  const float* in = x + row / n_shared * m.n_in;
  const bool aligned = reinterpret_cast<uintptr_t>(w) % 16 == 0;
  float sum = 0.0f;
  for (int i = lane * kLoadedValues; i < m.n_in; i += kWarpSize * kLoadedValues) {
    float v[kLoadedValues];
    load_values<S>(w, i, m.n_in, aligned && i + kLoadedValues <= m.n_in, v);
#pragma unroll
    for (int k = 0; k < kLoadedValues; ++k) {
      if (i + k < m.n_in) sum += v[k] * in[i + k];
    }
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  if (m.bias[expert] != nullptr) sum += m.bias[expert][o];
  y[row * m.n_out + o] = sum;
}

// out[t, o] += factor * sum_i weights[t, i] * y[t, i, o], experts ascending; t = blockIdx.x.
__global__ void add_experts_kernel(const float* y, const int32_t* chosen, const float* weights,
                                   int n_used, int n_out, float factor, float* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int64_t t = blockIdx.x;
  const int o = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (o >= n_out) return;
  float sum = out[t * n_out + o];
  int last = -1;
  for (int k = 0; k < n_used; ++k) {
    int next = -1;  // the one of the lowest expert after `last`
    for (int i = 0; i < n_used; ++i) {
      const int e = chosen[t * n_used + i];
      if (e > last && (next < 0 || e < chosen[t * n_used + next])) next = i;
    }
    last = chosen[t * n_used + next];
    sum += factor * weights[t * n_used + next] * y[(t * n_used + next) * n_out + o];
  }
  out[t * n_out + o] = sum;
}

using Matrix = Tensor Expert::*;

/// y = the products of `matrix` with rows of x, n_shared neighbouring ones with the same.
void multiply(Context& ctx, std::span<const Expert> experts, Matrix matrix, Matrix bias,
              const Tensor& chosen, const Tensor& x, int64_t n_shared, const Tensor& y) {
  std::vector<DType> types;
  for (const Expert& e : experts) {
    const DType type = (e.*matrix).dtype;
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  std::vector<const void*> biases;
  for (const Expert& e : experts) biases.push_back(ctx.weights().on_device(e.*bias).data);
  const auto* put_biases =
      reinterpret_cast<const float* const*>(ctx.put(std::span<const void* const>(biases)));
  const Tensor& like = experts[0].*matrix;
  for (const DType type : types) {
    std::vector<const void*> weights;
    for (const Expert& e : experts) {
      const Tensor& w = e.*matrix;
      weights.push_back(w.dtype == type ? ctx.weights().on_device(w).data : nullptr);
    }
    const ExpertMatrices m{
        .w = reinterpret_cast<const char* const*>(ctx.put(std::span<const void* const>(weights))),
        .bias = put_biases,
        .row_bytes = row_bytes(type, like.shape[1]),
        .n_out = static_cast<int>(like.shape[0]),
        .n_in = static_cast<int>(like.shape[1])};
    const Grid grid{dim3(chosen.numel(), div_up(m.n_out, kExpertWarps)),
                    dim3(kExpertWarps * kWarpSize)};
    visit_weight_type(type, [&](auto t) {
      start_early(ctx, grid, expert_product_kernel<typename Format<t.dtype>::Source>, m,
                  static_cast<const int32_t*>(chosen.data), static_cast<const float*>(x.data),
                  static_cast<int>(n_shared), static_cast<float*>(y.data));
    });
  }
}

void activate_rows(Context& ctx, const ExpertProducts& p, int64_t n) {
  const ExpertMemory& m = p.memory;
  const Tensor up = m.up.slice(0, n), act = m.act.slice(0, n);
  if (p.experts[0].gate) {
    const Tensor gate = m.gate.slice(0, n);
    if (p.limits) {
      clamp(ctx, gate, -std::numeric_limits<float>::infinity(), p.limits.gate);
      clamp(ctx, up, -p.limits.up, p.limits.up);
    }
    activate(ctx, p.activation, gate, up, act);
  } else {
    activate(ctx, p.activation, up, {}, act);
  }
}

/// Tokens [begin, end), at most as many as memory has rows for their experts.
void run_few(Context& ctx, const ExpertProducts& p, int64_t begin, int64_t end) {
  const int64_t n_used = p.weights.shape[1], n = (end - begin) * n_used, n_embd = p.out.shape[1];
  const ExpertMemory& m = p.memory;
  const Tensor chosen = p.chosen.slice(begin, end), x = p.x.slice(begin, end);
  if (p.experts[0].gate) {
    multiply(ctx, p.experts, &Expert::gate, &Expert::gate_bias, chosen, x, n_used, m.gate);
  }
  multiply(ctx, p.experts, &Expert::up, &Expert::up_bias, chosen, x, n_used, m.up);
  activate_rows(ctx, p, n);
  multiply(ctx, p.experts, &Expert::down, &Expert::down_bias, chosen, m.act, 1, m.out);
  constexpr int kThreads = 128;
  start_early(ctx, {dim3(end - begin, div_up(n_embd, kThreads)), dim3(kThreads)},
              add_experts_kernel, static_cast<const float*>(m.out.data),
              static_cast<const int32_t*>(chosen.data), p.weights.at<const float>(begin),
              static_cast<int>(n_used), static_cast<int>(n_embd), p.factor, p.out.at<float>(begin));
}

bool all_resident(Context& ctx, std::span<const Expert> experts) {
  return std::all_of(experts.begin(), experts.end(), [&](const Expert& e) {
    const Tensor* const all[] = {&e.gate, &e.up, &e.down, &e.gate_bias, &e.up_bias, &e.down_bias};
    return std::all_of(std::begin(all), std::end(all),
                       [&](const Tensor* t) { return !*t || ctx.weights().is_resident(*t); });
  });
}

// ---------------------------------------------------------------- many rows

/// The tokens that chose an expert, ascending, and what its output counts for them.
struct ExpertTokens {
  std::vector<int32_t> tokens;
  std::vector<float> factors;
};

std::vector<ExpertTokens> sort_tokens(Context& ctx, const ExpertProducts& p) {
  std::vector<int32_t> chosen(p.chosen.numel());
  std::vector<float> weights(p.weights.numel());
  const auto download = [&](void* to, const void* from, size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, ctx.stream()),
          "cudaMemcpyAsync");
  };
  download(chosen.data(), p.chosen.data, chosen.size() * sizeof(int32_t));
  download(weights.data(), p.weights.data, weights.size() * sizeof(float));
  ctx.synchronize();
  std::vector<ExpertTokens> sorted(p.experts.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    ExpertTokens& expert = sorted[chosen[i]];
    expert.tokens.push_back(static_cast<int32_t>(i / p.weights.shape[1]));
    expert.factors.push_back(p.factor * weights[i]);
  }
  return sorted;
}

/// The rows of x that belong to these tokens, in p.memory; or x itself if they are all.
Tensor gather(Context& ctx, const ExpertProducts& p, std::span<const int32_t> tokens) {
  const int64_t n_all = p.x.shape[0], n_embd = p.x.shape[1];
  const auto n = static_cast<int32_t>(tokens.size());
  if (n == n_all) return p.x;
  const Tensor to = p.memory.x.slice(0, n);
  const Tensor rows(const_cast<int32_t*>(ctx.put(tokens)), DType::i32, {1, n});
  void* const at = to.data;
  gather_rows(ctx, p.x.reshaped({1, n_all, n_embd}), rows, {&n, 1}, {&at, 1});
  return to;
}

/// One product of an expert. A packed matrix takes the workspace's memory.
void multiply(Context& ctx, const ExpertProducts& p, const Tensor& x, const Tensor& w,
              const Tensor& bias, const Tensor& out) {
  if (p.workspace == nullptr) return project(ctx, x, std::array{Projection{w, bias, out}});
  PackedWeight packed;
  packed.storage = std::move(p.workspace->memory);
  pack(ctx, w, packed);
  project_packed(ctx, x, packed, bias, out, false);
  p.workspace->memory = packed.storage.owns() ? std::move(packed.storage) : Buffer();
}

void run_many(Context& ctx, const ExpertProducts& p, const Expert& expert,
              std::span<const int32_t> tokens, std::span<const float> factors) {
  const int64_t n = std::ssize(tokens);
  const ExpertMemory& m = p.memory;
  const Tensor x = gather(ctx, p, tokens);
  if (expert.gate) multiply(ctx, p, x, expert.gate, expert.gate_bias, m.gate.slice(0, n));
  multiply(ctx, p, x, expert.up, expert.up_bias, m.up.slice(0, n));
  activate_rows(ctx, p, n);
  multiply(ctx, p, m.act.slice(0, n), expert.down, expert.down_bias, m.out.slice(0, n));
  add_rows(ctx, p.out, m.out.slice(0, n), tokens, factors);
}

}  // namespace

void route(Context& ctx, const ExpertChoice& c) {
  const auto weight = [&](const Tensor& w) {
    return w ? static_cast<const float*>(ctx.weights().on_device(w).data) : nullptr;
  };
  const RouteArguments a{
      .logits = static_cast<const float*>(c.logits.data),
      .bias = weight(c.bias),
      .factors = weight(c.factors),
      .n_expert = static_cast<int>(c.logits.shape[1]),
      .n_used = static_cast<int>(c.weights.shape[1]),
      .rule = c.rule,
      .experts = static_cast<int32_t*>(c.experts.data),
      .weights = static_cast<float*>(c.weights.data)};
  start_early(ctx, {dim3(c.logits.shape[0]), dim3(kWarpSize)}, route_kernel, a);
}

void project_experts(Context& ctx, const ExpertProducts& p) {
  const int64_t m = p.memory.x.shape[0], n = p.x.shape[0];
  if (p.workspace == nullptr && all_resident(ctx, p.experts)) {
    const int64_t n_tokens = m / p.weights.shape[1];  // at a time
    for (int64_t begin = 0; begin < n; begin += n_tokens) {
      run_few(ctx, p, begin, std::min(begin + n_tokens, n));
    }
    return;
  }
  const std::vector<ExpertTokens> sorted = sort_tokens(ctx, p);
  for (size_t e = 0; e < sorted.size(); ++e) {
    const std::span<const int32_t> tokens = sorted[e].tokens;
    const std::span<const float> factors = sorted[e].factors;
    for (int64_t begin = 0; begin < std::ssize(tokens); begin += m) {
      const int64_t count = std::min(m, std::ssize(tokens) - begin);
      run_many(ctx, p, p.experts[e], tokens.subspan(begin, count), factors.subspan(begin, count));
    }
  }
}

}  // namespace snapkv::cuda
