// SPDX-License-Identifier: MIT
// Rows of the KV cache: storing, moving and converting them, and their positions. Every byte is
// read and written once, consecutive lanes at consecutive addresses. The limit is the memory or,
// for the few rows of a decode step, the launch.
#include <algorithm>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/dequantize_codebooks.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/ptx.cuh"
#include "base/check.h"

namespace snapkv::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;  // per head; they loop over the rest

/// A grid with one head per y and at most n_items per head.
Grid head_grid(int64_t n_items, size_t n_head) {
  const int64_t threads = std::min<int64_t>(kThreads, div_up(n_items, kWarpSize) * kWarpSize);
  return {dim3(std::min(div_up(n_items, threads), kMaxBlocks), n_head), dim3(threads)};
}

/// a / b and a % b; a is nearly always below 2^32.
__device__ __forceinline__ int64_t divide(int64_t a, int64_t b, int64_t& rest) {
  int64_t quotient;
  if (a >> 32 == 0) {
    quotient = static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  } else {
    quotient = a / b;
  }
  rest = a - quotient * b;
  return quotient;
}

// ---------------------------------------------------------------- conversion

constexpr int kValues = 4;  // values that a thread converts at a time

// The device's own conversions lose a NaN's sign and payload; these behave like base/half.h.
__device__ __forceinline__ bool is_nan(float v) { return v != v; }
__device__ __forceinline__ float value_of(float v) { return v; }
__device__ __forceinline__ float value_of(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float value_of(__half v) {
  const uint32_t bits = __half_as_ushort(v);
  if ((bits & 0x7fffu) <= 0x7c00u) return __half2float(v);
  return __uint_as_float((bits & 0x8000u) << 16 | 0x7f800000u | (bits & 0x3ffu) << 13);
}
template <typename T>
__device__ __forceinline__ T rounded(float v);
template <>
__device__ __forceinline__ float rounded<float>(float v) {
  return v;
}
template <>
__device__ __forceinline__ __nv_bfloat16 rounded<__nv_bfloat16>(float v) {
  if (!is_nan(v)) return __float2bfloat16_rn(v);
  return __ushort_as_bfloat16(static_cast<unsigned short>(__float_as_uint(v) >> 16 | 0x40u));
}
template <>
__device__ __forceinline__ __half rounded<__half>(float v) {
  if (!is_nan(v)) return __float2half_rn(v);
  return __ushort_as_half(
      static_cast<unsigned short>((__float_as_uint(v) >> 16 & 0x8000u) | 0x7e00u));
}

// A type of rows: the bytes of n values, the alignment that allows moving 4 of them at once, and
// such moves. `vector`: all 4 exist and are aligned; otherwise only n_values of them are moved.
template <typename T>
struct Rows {
  static constexpr uintptr_t kAlignment = kValues * sizeof(T);
  static __host__ __device__ constexpr int64_t bytes(int64_t n) { return n * int64_t{sizeof(T)}; }

  struct alignas(kAlignment) Vector {
    T values[kValues];
  };
  static __device__ __forceinline__ void load(const char* row, int64_t i, int n_values, bool vector,
                                              float (&v)[kValues]) {
    const T* at = reinterpret_cast<const T*>(row) + i;
    if (vector) {
      const Vector loaded = *reinterpret_cast<const Vector*>(at);
#pragma unroll
      for (int k = 0; k < kValues; ++k) v[k] = value_of(loaded.values[k]);
    } else {
#pragma unroll
      for (int k = 0; k < kValues; ++k) v[k] = k < n_values ? value_of(at[k]) : 0.0f;
    }
  }
  static __device__ __forceinline__ void store(char* row, int64_t i, int n_values, bool vector,
                                               const float (&v)[kValues]) {
    T* at = reinterpret_cast<T*>(row) + i;
    if (vector) {
      Vector stored;
#pragma unroll
      for (int k = 0; k < kValues; ++k) stored.values[k] = rounded<T>(v[k]);
      *reinterpret_cast<Vector*>(at) = stored;
    } else {
#pragma unroll
      for (int k = 0; k < kValues; ++k) {
        if (k < n_values) at[k] = rounded<T>(v[k]);
      }
    }
  }
};

using Q8_0 = Format<DType::q8_0>;
template <>
struct Rows<Q8_0> {
  static constexpr uintptr_t kAlignment = 1;  // blocks need no alignment
  static __host__ __device__ constexpr int64_t bytes(int64_t n) {
    return n / kBlockSize * Q8_0::kBlockBytes;
  }

  static __device__ __forceinline__ void load(const char* row, int64_t i, int n_values, bool,
                                              float (&v)[kValues]) {
    if (n_values == 0) return;
    const char* block = row + bytes(i);
    uint32_t levels[1];
    Q8_0::levels<PairReader>(block, static_cast<int>(i % kBlockSize), levels);
    const float d = Q8_0::scale_min(block, 0).x;
#pragma unroll
    for (int k = 0; k < kValues; ++k) v[k] = d * level_at(levels[0], k);
  }
  /// Must be called by all lanes of a warp; 8 of them share a block.
  static __device__ __forceinline__ void store(char* row, int64_t i, int n_values, bool,
                                               const float (&v)[kValues]) {
    uint32_t largest = 0;  // bits of |x|, ordered like |x|; greatest if not finite
#pragma unroll
    for (int k = 0; k < kValues; ++k) largest = max(largest, __float_as_uint(v[k]) & 0x7fffffffu);
    for (int bit = 1; bit < kBlockSize / kValues; bit *= 2) {
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, bit));
    }
    if (n_values == 0) return;
    const bool finite = largest < 0x7f800000u;
    const float d = __fdiv_rn(__uint_as_float(largest), 127.0f);
    const __half stored = rounded<__half>(finite ? d : __uint_as_float(0x7fc00000u));
    const float inverse = finite && __half2float(stored) > 0.0f ? __fdiv_rn(1.0f, d) : 0.0f;
    uint32_t levels = 0;
#pragma unroll
    for (int k = 0; k < kValues; ++k) {
      const int level = inverse > 0.0f ? __float2int_rn(__fmul_rn(v[k], inverse)) : 0;
      levels |= (static_cast<uint32_t>(level) & 0xffu) << (8 * k);
    }
    const int first = static_cast<int>(i % kBlockSize);
    char* block = row + bytes(i);
    auto* to = reinterpret_cast<uint16_t*>(block + 2 + first);
    to[0] = static_cast<uint16_t>(levels);
    to[1] = static_cast<uint16_t>(levels >> 16);
    if (first == 0) *reinterpret_cast<__half*>(block) = stored;
  }
};

struct Conversion {
  const char* const* heads;  // each head's rows; or null, and they begin at
  const char* src;           // src + h * head_bytes
  int64_t head_bytes, src_row_bytes;
  const int32_t* rows;  // [.., row_columns], or null: rows 0, 1, ...
  int64_t row_columns;
  const int32_t* n;  // per head; or null: n_all
  int64_t n_all;
  char* const* dst;
  int64_t d;  // values per row
};

// dst[h][i, :] = src[h][rows[h, i], :], h = blockIdx.y; all lanes of a warp loop equally often.
template <typename Src, typename Dst>
__global__ void __launch_bounds__(kThreads) convert_kernel(const Conversion c) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int64_t h = blockIdx.y;
  const char* src = c.heads != nullptr ? c.heads[h] : c.src + h * c.head_bytes;
  char* dst = c.dst[h];
  const int64_t per_row = (c.d + kValues - 1) / kValues;
  const int64_t n_items = (c.n != nullptr ? c.n[h] : c.n_all) * per_row;
  const int64_t dst_row_bytes = Rows<Dst>::bytes(c.d);
  const bool whole = c.d % kValues == 0;
  const bool load_vectors =
      whole && (reinterpret_cast<uintptr_t>(src) | static_cast<uintptr_t>(c.src_row_bytes)) %
                       Rows<Src>::kAlignment ==
                   0;
  const bool store_vectors = whole && reinterpret_cast<uintptr_t>(dst) % Rows<Dst>::kAlignment == 0;
  const int lane = threadIdx.x % kWarpSize;
  for (int64_t begin = int64_t{blockIdx.x} * blockDim.x + threadIdx.x - lane; begin < n_items;
       begin += int64_t{gridDim.x} * blockDim.x) {
    const int64_t item = begin + lane;
    int64_t i = 0, t = 0;
    int n_values = 0;
    float v[kValues] = {};
    if (item < n_items) {
      t = divide(item, per_row, i);
      i *= kValues;
      n_values = static_cast<int>(min(c.d - i, int64_t{kValues}));
      const int64_t row = c.rows != nullptr ? c.rows[h * c.row_columns + t] : t;
      Rows<Src>::load(src + row * c.src_row_bytes, i, n_values, load_vectors, v);
    }
    Rows<Dst>::store(dst + t * dst_row_bytes, i, n_values, store_vectors && n_values > 0, v);
  }
}

/// Calls f with a null pointer to the Source of a cache type's Format.
template <typename F>
void visit_cache_type(DType dtype, F&& f) {
  visit_dtype<DType::f32, DType::f16, DType::bf16, DType::q8_0>(
      dtype, [&](auto type) { f(static_cast<typename Format<type.dtype>::Source*>(nullptr)); });
}

template <typename Src>
void run_conversion(Context& ctx, const Grid& grid, DType dst_dtype, const Conversion& c) {
  visit_cache_type(
      dst_dtype, [&]<typename Dst>(Dst*) { start_early(ctx, grid, convert_kernel<Src, Dst>, c); });
}

char* const* put_pointers(Context& ctx, std::span<void* const> pointers) {
  return reinterpret_cast<char* const*>(ctx.put(pointers));
}

// ---------------------------------------------------------------- positions

__global__ void __launch_bounds__(kThreads)
    store_positions_kernel(const int32_t* pos, int64_t n, int32_t* const* dst, int64_t first) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) dst[blockIdx.y][first + i] = pos[i];
}

// ---------------------------------------------------------------- gather

// dst[h][i, :] = src[h, rows[h, i], :], h = blockIdx.y; a row is per_row values of T.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const char* src, int64_t head_bytes, int64_t row_bytes, const int32_t* rows,
                  int64_t row_columns, const int32_t* n, int64_t per_row, char* const* dst) {
  constexpr int kLoads = 4;  // in flight
  const int64_t h = blockIdx.y, n_items = n[h] * per_row;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  T* to = reinterpret_cast<T*>(dst[h]);
  for (int64_t begin = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; begin < n_items;
       begin += kLoads * step) {
    T values[kLoads] = {};
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t item = begin + u * step;
      if (item < n_items) {
        int64_t i;
        const int64_t t = divide(item, per_row, i);
        const char* row = src + h * head_bytes + rows[h * row_columns + t] * row_bytes;
        values[u] = reinterpret_cast<const T*>(row)[i];
      }
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int64_t item = begin + u * step;
      if (item < n_items) to[item] = values[u];
    }
  }
}

template <typename T>
void run_gather(Context& ctx, const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                int64_t bytes, std::span<void* const> dst) {
  const int64_t per_row = bytes / int64_t{sizeof(T)};
  const int64_t n_items = *std::max_element(n.begin(), n.end()) * per_row;
  if (n_items == 0) return;
  launch(ctx, head_grid(div_up(n_items, 4), n.size()), gather_kernel<T>,
         static_cast<const char*>(src.data), src.stride[0], src.stride[1],
         static_cast<const int32_t*>(rows.data), rows.shape[1], ctx.put(n), per_row,
         put_pointers(ctx, dst));
}

}  // namespace

void store_rows(Context& ctx, const Tensor& src, DType dtype, std::span<void* const> dst) {
  const int64_t n = src.shape[0], n_head_kv = src.shape[1], d = src.shape[2];
  const int64_t head_bytes = d * int64_t{sizeof(float)};
  const Conversion c{.heads = nullptr,
                     .src = static_cast<const char*>(src.data),
                     .head_bytes = head_bytes,
                     .src_row_bytes = n_head_kv * head_bytes,
                     .rows = nullptr,
                     .row_columns = 0,
                     .n = nullptr,
                     .n_all = n,
                     .dst = put_pointers(ctx, dst),
                     .d = d};
  run_conversion<float>(ctx, head_grid(n * div_up(d, kValues), dst.size()), dtype, c);
}

void store_positions(Context& ctx, std::span<const int32_t> pos, std::span<int32_t* const> dst) {
  constexpr size_t kMaxPositions = 1 << 18;  // per launch, since put() is for small arrays
  int32_t* const* heads = ctx.put(dst);
  for (size_t first = 0; first < pos.size(); first += kMaxPositions) {
    const auto part = pos.subspan(first, std::min(kMaxPositions, pos.size() - first));
    const int64_t n = std::ssize(part);
    start_early(ctx, head_grid(n, dst.size()), store_positions_kernel, ctx.put(part), n, heads,
                static_cast<int64_t>(first));
  }
}

void gather_rows(Context& ctx, const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                 std::span<void* const> dst) {
  const int64_t bytes = row_bytes(src.dtype, src.shape[2]);
  // The widest access that all addresses and strides allow.
  auto address = reinterpret_cast<uintptr_t>(src.data) | static_cast<uintptr_t>(bytes) |
                 static_cast<uintptr_t>(src.stride[0]) | static_cast<uintptr_t>(src.stride[1]);
  for (size_t h = 0; h < n.size(); ++h) {
    if (n[h] > 0) address |= reinterpret_cast<uintptr_t>(dst[h]);
  }
  address % 16 == 0  ? run_gather<uint4>(ctx, src, rows, n, bytes, dst)
  : address % 8 == 0 ? run_gather<uint2>(ctx, src, rows, n, bytes, dst)
  : address % 4 == 0 ? run_gather<uint32_t>(ctx, src, rows, n, bytes, dst)
                     : run_gather<uint16_t>(ctx, src, rows, n, bytes, dst);
}

void convert_rows(Context& ctx, const RowConversion& c) {
  const int64_t n_items = *std::max_element(c.n.begin(), c.n.end()) * div_up(c.head_dim, kValues);
  if (n_items == 0) return;
  const Conversion conversion{.heads = reinterpret_cast<const char* const*>(ctx.put(c.src)),
                              .src = nullptr,
                              .head_bytes = 0,
                              .src_row_bytes = row_bytes(c.src_dtype, c.head_dim),
                              .rows = c.rows ? static_cast<const int32_t*>(c.rows.data) : nullptr,
                              .row_columns = c.rows ? c.rows.shape[1] : 0,
                              .n = ctx.put(c.n),
                              .n_all = 0,
                              .dst = put_pointers(ctx, c.dst),
                              .d = c.head_dim};
  const Grid grid = head_grid(n_items, c.n.size());
  visit_cache_type(c.src_dtype, [&]<typename Src>(Src*) {
    run_conversion<Src>(ctx, grid, c.dst_dtype, conversion);
  });
}

}  // namespace snapkv::cuda
