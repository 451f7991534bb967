// SPDX-License-Identifier: MIT
// Row by row: norms, rotation, activation, bias and other sums and products.
#include <algorithm>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/weight_store.h"

namespace snapkv::cuda {
namespace {

// ---------------------------------------------------------------- rms_norm

constexpr int kNormThreads = 256;

constexpr int kNormLoads = 4;  // in flight per thread
constexpr int64_t kNormStep = 4 * kNormThreads;

/// Loads each thread's share of values `begin` to begin + kNormLoads * kNormStep of a row, as far
/// as they exist. d is a multiple of 4, the row 16-byte aligned.
__device__ __forceinline__ void load_vectors(const float* row, int64_t begin, int64_t d,
                                             float4 (&to)[kNormLoads]) {
#pragma unroll
  for (int u = 0; u < kNormLoads; ++u) {
    const int64_t i = begin + u * kNormStep + 4 * threadIdx.x;
    to[u] = i < d ? *reinterpret_cast<const float4*>(row + i) : float4{};
  }
}

/// The sum over all threads of a block of kNormThreads; every thread receives it.
__device__ __forceinline__ float block_sum(float v, float* sums) {
  v = warp_sum(v);
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  __syncthreads();  // earlier sums have been read
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  return warp_sum(lane < kNormThreads / kWarpSize ? sums[lane] : 0.0f);
}

template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

// One block per row: d is a multiple of 4, all tensors are 16-byte aligned. The first values stay
// in registers, and their weights are there before x is.
template <typename Out>
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_kernel(const float* x, const float* weight, int64_t n_weights, float eps, int64_t d,
                    Out* out) {
  __shared__ float sums[kNormThreads / kWarpSize];
  constexpr int64_t kFirst = kNormLoads * kNormStep;
  weight += blockIdx.x % n_weights * d;
  ptx::let_next_kernel_start();
  float4 first_x[kNormLoads], first_w[kNormLoads], v[kNormLoads], w[kNormLoads];
  load_vectors(weight, 0, d, first_w);
  ptx::wait_for_earlier_kernels();

  const float* row = x + blockIdx.x * d;
  Out* to = out + blockIdx.x * d;
  float sum = 0.0f;
  const auto add_squares = [&](const float4(&values)[kNormLoads]) {
#pragma unroll
    for (int u = 0; u < kNormLoads; ++u) {
      const float4& a = values[u];
      sum += (a.x * a.x + a.y * a.y) + (a.z * a.z + a.w * a.w);
    }
  };
  load_vectors(row, 0, d, first_x);
  add_squares(first_x);
  for (int64_t begin = kFirst; begin < d; begin += kFirst) {
    load_vectors(row, begin, d, v);
    add_squares(v);
  }
  const float factor = 1.0f / sqrtf(block_sum(sum, sums) / static_cast<float>(d) + eps);

  const auto store = [&](int64_t begin, const float4(&values)[kNormLoads],
                         const float4(&weights)[kNormLoads]) {
#pragma unroll
    for (int u = 0; u < kNormLoads; ++u) {
      const int64_t i = begin + u * kNormStep + 4 * threadIdx.x;
      const float4 &a = values[u], &b = weights[u];
      if (i >= d) continue;
      *reinterpret_cast<Four<Out>*>(to + i) = {
          {from_float<Out>(a.x * factor * b.x), from_float<Out>(a.y * factor * b.y),
           from_float<Out>(a.z * factor * b.z), from_float<Out>(a.w * factor * b.w)}};
    }
  };
  store(0, first_x, first_w);
  for (int64_t begin = kFirst; begin < d; begin += kFirst) {
    load_vectors(row, begin, d, v);
    load_vectors(weight, begin, d, w);
    store(begin, v, w);
  }
}

// The same for any d and addresses.
template <typename Out>
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_any_kernel(const float* x, const float* weight, int64_t n_weights, float eps,
                        int64_t d, Out* out) {
  __shared__ float sums[kNormThreads / kWarpSize];
  weight += blockIdx.x % n_weights * d;
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const float* row = x + blockIdx.x * d;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) sum += row[i] * row[i];
  const float factor = 1.0f / sqrtf(block_sum(sum, sums) / static_cast<float>(d) + eps);
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) {
    out[blockIdx.x * d + i] = from_float<Out>(row[i] * factor * weight[i]);
  }
}

// ---------------------------------------------------------------- layer_norm

// One block per row. The variance is computed from the differences from the mean.
template <typename Out>
__global__ void layer_norm_kernel(const float* x, const float* weight, int64_t n_weights,
                                  const float* bias, int64_t n_biases, float eps, int64_t d,
                                  Out* out) {
  __shared__ float sums[kNormThreads / kWarpSize];
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const float* row = x + blockIdx.x * d;
  const float* w = weight + blockIdx.x % n_weights * d;
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) sum += row[i];
  const float mean = block_sum(sum, sums) / static_cast<float>(d);
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) {
    squares += (row[i] - mean) * (row[i] - mean);
  }
  const float factor = 1.0f / sqrtf(block_sum(squares, sums) / static_cast<float>(d) + eps);
  for (int64_t i = threadIdx.x; i < d; i += kNormThreads) {
    const float b = bias != nullptr ? bias[blockIdx.x % n_biases * d + i] : 0.0f;
    out[blockIdx.x * d + i] = from_float<Out>((row[i] - mean) * factor * w[i] + b);
  }
}

// ---------------------------------------------------------------- rope

constexpr int kRopeThreads = 128;

// A block computes the angles of token blockIdx.x once, in f64, and then rotates n_block_heads
// heads, from blockIdx.y * n_block_heads on.
__global__ void rope_kernel(float* x, const int32_t* pos, const double* inv_freq, int n_pairs,
                            int n_head, int n_block_heads, int head_dim, bool neox,
                            float magnitude) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  float* sines = reinterpret_cast<float*>(dynamic_shared());
  float* cosines = sines + n_pairs;
  for (int i = threadIdx.x; i < n_pairs; i += kRopeThreads) {
    const double angle = static_cast<double>(pos[blockIdx.x]) * inv_freq[i];
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    sines[i] = magnitude * static_cast<float>(sine);
    cosines[i] = magnitude * static_cast<float>(cosine);
  }
  __syncthreads();
  const int first_head = blockIdx.y * n_block_heads;
  float* heads = x + (int64_t{blockIdx.x} * n_head + first_head) * head_dim;
  const int n = min(n_block_heads, n_head - first_head) * n_pairs;
  for (int k = threadIdx.x; k < n; k += kRopeThreads) {
    const int i = k % n_pairs;
    float* head = heads + k / n_pairs * head_dim;
    float& a = head[neox ? i : 2 * i];
    float& b = head[neox ? i + n_pairs : 2 * i + 1];
    const float a0 = a, b0 = b;
    a = a0 * cosines[i] - b0 * sines[i];
    b = a0 * sines[i] + b0 * cosines[i];
  }
}

/// Heads of one block: all, unless there are so few tokens that their blocks would not fill the
/// device; then as many as keep every thread at work.
int rope_block_heads(const Context& ctx, int64_t n_tokens, int64_t n_head, int64_t n_pairs) {
  if (n_tokens >= 2 * ctx.n_multiprocessors()) return static_cast<int>(n_head);
  const int64_t busy = kRopeThreads / std::max<int64_t>(n_pairs, 1);
  return static_cast<int>(std::clamp<int64_t>(busy, 1, n_head));
}

// ---------------------------------------------------------------- element by element

constexpr int64_t kElementThreads = 256;

Grid element_grid(int64_t n) {
  const int64_t blocks = div_up(n, kElementThreads);
  return {dim3(std::min<int64_t>(blocks, 65536)), dim3(kElementThreads)};
}

// Every activation that has no line of its own, but the sigmoid itself, is x sigmoid(s), see
// cpu/rowwise.cpp.
template <Activation activation>
__device__ __forceinline__ float activated(float x) {
  if constexpr (activation == Activation::relu_squared) return x < 0.0f ? 0.0f : x * x;
  if constexpr (activation == Activation::relu) return x < 0.0f ? 0.0f : x;
  if constexpr (activation == Activation::softplus) {
    return (x < 0.0f ? 0.0f : x) + log1pf(expf(-fabsf(x)));
  }
  if constexpr (activation == Activation::gelu) return 0.5f * x * erfcf(-0.70710678f * x);
  if constexpr (activation == Activation::tanh) return tanhf(x);
  if constexpr (activation == Activation::identity) return x;
  float s = x;
  if constexpr (activation == Activation::gelu_tanh) {
    s = 1.5957691216f * x * (1.0f + 0.044715f * x * x);
  }
  if constexpr (activation == Activation::clamped_swiglu) {
    x = x > kClampedLimit ? kClampedLimit : x;  // NaN stays
    s = kClampedAlpha * x;
  }
  return (activation == Activation::sigmoid ? 1.0f : x) / (1.0f + expf(-s));
}

// What f(x) is multiplied with.
template <Activation activation>
__device__ __forceinline__ float factor_of(float y) {
  if constexpr (activation == Activation::clamped_swiglu) {
    y = y > kClampedLimit ? kClampedLimit : y;
    return (y < -kClampedLimit ? -kClampedLimit : y) + 1.0f;
  }
  return y;
}

template <Activation activation, typename In, typename Out>
__global__ void activate_kernel(const In* x, const In* factor, int64_t n, Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    float v = activated<activation>(to_float(x[i]));
    if (factor != nullptr) v *= factor_of<activation>(to_float(factor[i]));
    out[i] = from_float<Out>(v);
  }
}

template <typename Out>
__global__ void xielu_kernel(const float* x, float alpha_p, float alpha_n, float beta, float eps,
                             int64_t n, Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    const float v = x[i];
    const float curve = v > 0.0f ? alpha_p * (v * v) : alpha_n * (expm1f(v < eps ? v : eps) - v);
    out[i] = from_float<Out>(curve + beta * v);
  }
}

// Columns [begin, begin + n_part) of rows of n_cols; n is what all rows have of them.
template <typename In, typename Out>
__global__ void split_kernel(const In* x, int64_t begin, int64_t n_part, int64_t n_cols, int64_t n,
                             Out* part) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    part[i] = from_float<Out>(to_float(x[i / n_part * n_cols + begin + i % n_part]));
  }
}

// The inverse.
template <typename In, typename Out>
__global__ void join_kernel(const In* part, int64_t begin, int64_t n_part, int64_t n_cols,
                            int64_t n, Out* out) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    out[i / n_part * n_cols + begin + i % n_part] = from_float<Out>(to_float(part[i]));
  }
}

__global__ void add_kernel(float* x, const float* y, float factor, int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    x[i] += factor * y[i];
  }
}

// Value i of y, which has n, belongs to row rows[i / n_cols] of x.
__global__ void add_rows_kernel(float* x, const float* y, const int32_t* rows, const float* factors,
                                int64_t n, int64_t n_cols) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    const int64_t t = i / n_cols;
    x[rows[t] * n_cols + i % n_cols] += factors[t] * y[i];
  }
}

// Rows of n_cols values have a factor each, or all have factors[0].
__global__ void scale_kernel(float* x, const float* factors, bool one_factor, int64_t n,
                             int64_t n_cols) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    x[i] *= factors[one_factor ? 0 : i / n_cols];
  }
}

__global__ void softcap_kernel(float* x, float cap, int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    x[i] = cap * tanhf(x[i] / cap);
  }
}

__global__ void clamp_kernel(float* x, float low, float high, int64_t n) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    const float v = x[i];
    x[i] = v > high ? high : v < low ? low : v;
  }
}

template <typename T>
__global__ void add_bias_kernel(T* x, const float* bias, int64_t n, int64_t n_cols) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  for (int64_t i = blockIdx.x * kElementThreads + threadIdx.x; i < n;
       i += gridDim.x * kElementThreads) {
    x[i] = from_float<T>(to_float(x[i]) + bias[i % n_cols]);
  }
}

template <typename Out>
void run_rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, float eps,
                  const Tensor& out) {
  const auto* in = static_cast<const float*>(x.data);
  const auto* w = static_cast<const float*>(ctx.weights().on_device(weight).data);
  const bool vectors =
      x.shape[1] % 4 == 0 && aligned_16(in) && aligned_16(w) && aligned_16(out.data);
  start_early(ctx, {dim3(x.shape[0]), dim3(kNormThreads)},
              vectors ? rms_norm_kernel<Out> : rms_norm_any_kernel<Out>, in, w,
              weight.numel() / x.shape[1], eps, x.shape[1], static_cast<Out*>(out.data));
}

template <Activation activation, typename In, typename Out>
void run_activate(Context& ctx, const Tensor& x, const Tensor& factor, const Tensor& out) {
  const int64_t n = x.numel();
  start_early(ctx, element_grid(n), activate_kernel<activation, In, Out>,
              static_cast<const In*>(x.data), static_cast<const In*>(factor.data), n,
              static_cast<Out*>(out.data));
}

template <Activation activation>
void activate_types(Context& ctx, const Tensor& x, const Tensor& factor, const Tensor& out) {
  using bf16 = __nv_bfloat16;
  if (x.dtype == DType::f32) {
    out.dtype == DType::f32 ? run_activate<activation, float, float>(ctx, x, factor, out)
                            : run_activate<activation, float, bf16>(ctx, x, factor, out);
  } else {
    out.dtype == DType::f32 ? run_activate<activation, bf16, float>(ctx, x, factor, out)
                            : run_activate<activation, bf16, bf16>(ctx, x, factor, out);
  }
}

}  // namespace

void rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  out.dtype == DType::bf16 ? run_rms_norm<__nv_bfloat16>(ctx, x, weight, eps, out)
                           : run_rms_norm<float>(ctx, x, weight, eps, out);
}

void layer_norm(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                const Tensor& out) {
  const Grid grid{dim3(x.shape[0]), dim3(kNormThreads)};
  const int64_t d = x.shape[1], n_weights = weight.numel() / d;
  const auto* in = static_cast<const float*>(x.data);
  const auto* w = static_cast<const float*>(ctx.weights().on_device(weight).data);
  const float* b = bias ? static_cast<const float*>(ctx.weights().on_device(bias).data) : nullptr;
  const int64_t n_biases = bias ? bias.numel() / d : 1;
  if (out.dtype == DType::bf16) {
    start_early(ctx, grid, layer_norm_kernel<__nv_bfloat16>, in, w, n_weights, b, n_biases, eps, d,
                static_cast<__nv_bfloat16*>(out.data));
  } else {
    start_early(ctx, grid, layer_norm_kernel<float>, in, w, n_weights, b, n_biases, eps, d,
                static_cast<float*>(out.data));
  }
}

void add(Context& ctx, const Tensor& x, const Tensor& y, float factor) {
  start_early(ctx, element_grid(x.numel()), add_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(y.data), factor, x.numel());
}

void add_rows(Context& ctx, const Tensor& x, const Tensor& y, std::span<const int32_t> rows,
              std::span<const float> factors) {
  start_early(ctx, element_grid(y.numel()), add_rows_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(y.data), ctx.put(rows), ctx.put(factors), y.numel(),
              x.shape[1]);
}

void scale(Context& ctx, const Tensor& x, std::span<const float> factors) {
  start_early(ctx, element_grid(x.numel()), scale_kernel, static_cast<float*>(x.data),
              ctx.put(factors), factors.size() == 1, x.numel(), x.numel() / x.shape[0]);
}

void scale_rows(Context& ctx, const Tensor& x, const Tensor& factors) {
  start_early(ctx, element_grid(x.numel()), scale_kernel, static_cast<float*>(x.data),
              static_cast<const float*>(factors.data), false, x.numel(), x.shape[1]);
}

void softcap(Context& ctx, const Tensor& x, float cap) {
  start_early(ctx, element_grid(x.numel()), softcap_kernel, static_cast<float*>(x.data), cap,
              x.numel());
}

void clamp(Context& ctx, const Tensor& x, float low, float high) {
  start_early(ctx, element_grid(x.numel()), clamp_kernel, static_cast<float*>(x.data), low, high,
              x.numel());
}

void rope(Context& ctx, const Tensor& x, std::span<const int32_t> pos,
          const RopeFrequencies& frequencies) {
  const auto n_pairs = static_cast<int>(frequencies.inv_freq.size());
  const int n_block_heads = rope_block_heads(ctx, x.shape[0], x.shape[1], n_pairs);
  const Grid grid{dim3(x.shape[0], div_up(x.shape[1], n_block_heads)), dim3(kRopeThreads),
                  2 * frequencies.inv_freq.size() * sizeof(float)};
  start_early(ctx, grid, rope_kernel, static_cast<float*>(x.data), ctx.put(pos),
              ctx.put(frequencies.inv_freq), n_pairs, static_cast<int>(x.shape[1]), n_block_heads,
              static_cast<int>(x.shape[2]), frequencies.layout == RopeLayout::neox,
              frequencies.magnitude);
}

namespace {

/// f(In(), Out()) for these types, each f32 or bf16.
template <typename F>
void visit_types(DType in, DType out, F f) {
  const auto with_in = [&](auto x) { out == DType::bf16 ? f(x, __nv_bfloat16()) : f(x, float()); };
  in == DType::bf16 ? with_in(__nv_bfloat16()) : with_in(float());
}

}  // namespace

void split(Context& ctx, const Tensor& x, std::span<const Tensor> parts) {
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    const int64_t n = part.numel();
    if (n > 0) {
      visit_types(x.dtype, part.dtype, [&](auto in, auto out) {
        using In = decltype(in);
        using Out = decltype(out);
        start_early(ctx, element_grid(n), split_kernel<In, Out>, static_cast<const In*>(x.data),
                    begin, part.shape[1], x.shape[1], n, static_cast<Out*>(part.data));
      });
    }
    begin += part.shape[1];
  }
}

void join(Context& ctx, std::span<const Tensor> parts, const Tensor& out) {
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    const int64_t n = part.numel();
    if (n > 0) {
      visit_types(part.dtype, out.dtype, [&](auto from, auto to) {
        using In = decltype(from);
        using Out = decltype(to);
        start_early(ctx, element_grid(n), join_kernel<In, Out>, static_cast<const In*>(part.data),
                    begin, part.shape[1], out.shape[1], n, static_cast<Out*>(out.data));
      });
    }
    begin += part.shape[1];
  }
}

void activate(Context& ctx, Activation activation, const Tensor& x, const Tensor& factor,
              const Tensor& out) {
  switch (activation) {
    case Activation::silu:
      return activate_types<Activation::silu>(ctx, x, factor, out);
    case Activation::gelu_tanh:
      return activate_types<Activation::gelu_tanh>(ctx, x, factor, out);
    case Activation::gelu:
      return activate_types<Activation::gelu>(ctx, x, factor, out);
    case Activation::clamped_swiglu:
      return activate_types<Activation::clamped_swiglu>(ctx, x, factor, out);
    case Activation::sigmoid:
      return activate_types<Activation::sigmoid>(ctx, x, factor, out);
    case Activation::relu_squared:
      return activate_types<Activation::relu_squared>(ctx, x, factor, out);
    case Activation::relu:
      return activate_types<Activation::relu>(ctx, x, factor, out);
    case Activation::softplus:
      return activate_types<Activation::softplus>(ctx, x, factor, out);
    case Activation::tanh:
      return activate_types<Activation::tanh>(ctx, x, factor, out);
    case Activation::identity:
      return activate_types<Activation::identity>(ctx, x, factor, out);
  }
}

void xielu(Context& ctx, const Tensor& x, float alpha_p, float alpha_n, float beta, float eps,
           const Tensor& out) {
  const int64_t n = x.numel();
  const auto* in = static_cast<const float*>(x.data);
  if (out.dtype == DType::bf16) {
    start_early(ctx, element_grid(n), xielu_kernel<__nv_bfloat16>, in, alpha_p, alpha_n, beta, eps,
                n, static_cast<__nv_bfloat16*>(out.data));
  } else {
    start_early(ctx, element_grid(n), xielu_kernel<float>, in, alpha_p, alpha_n, beta, eps, n,
                static_cast<float*>(out.data));
  }
}

void add_bias(Context& ctx, const Tensor& x, const Tensor& bias) {
  const int64_t n = x.numel();
  const auto* b = static_cast<const float*>(bias.data);
  if (x.dtype == DType::bf16) {
    start_early(ctx, element_grid(n), add_bias_kernel<__nv_bfloat16>,
                static_cast<__nv_bfloat16*>(x.data), b, n, x.shape[1]);
  } else {
    start_early(ctx, element_grid(n), add_bias_kernel<float>, static_cast<float*>(x.data), b, n,
                x.shape[1]);
  }
}

}  // namespace snapkv::cuda
