// SPDX-License-Identifier: MIT
// Op moments: per head sum_t y y^T and sum_t y with y = x - shift (backend/ops.def). A block of
// kTokens tokens is copied to [kTokens, padded d]; then tiles of kRows x 2 vectors of the upper
// triangle are summed over the block in registers, in f32, and blocks are added up in f64. Threads
// share the heads.
#include <omp.h>

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/highway_targets.h"
#include "backend/cpu/target/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rows/moments.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows = 4;

/// sums[i, j] += sum_t y[t, i] * y[t, j] for i < d and j >= i, and for some j below i. y [n,
/// stride] with zeros from d on, sums [d, stride].
void add_products(const float* HWY_RESTRICT y, int64_t n, int64_t d, int64_t stride,
                  double* HWY_RESTRICT sums) {
  const F32 tag;
  const int64_t n_lanes = hn::Lanes(tag);
  HWY_ALIGN float tile[kRows * 2 * hn::MaxLanes(F32())];
  for (int64_t i = 0; i < d; i += kRows) {
    for (int64_t j = i / (2 * n_lanes) * (2 * n_lanes); j < d; j += 2 * n_lanes) {
      VF a0 = hn::Zero(tag), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      for (int64_t t = 0; t < n; ++t) {
        const float* row = y + t * stride;
        const VF a = hn::LoadU(tag, row + j), b = hn::LoadU(tag, row + j + n_lanes);
        const VF y0 = hn::Set(tag, row[i]), y1 = hn::Set(tag, row[i + 1]);
        const VF y2 = hn::Set(tag, row[i + 2]), y3 = hn::Set(tag, row[i + 3]);
        a0 = hn::MulAdd(y0, a, a0), b0 = hn::MulAdd(y0, b, b0);
        a1 = hn::MulAdd(y1, a, a1), b1 = hn::MulAdd(y1, b, b1);
        a2 = hn::MulAdd(y2, a, a2), b2 = hn::MulAdd(y2, b, b2);
        a3 = hn::MulAdd(y3, a, a3), b3 = hn::MulAdd(y3, b, b3);
      }
      hn::Store(a0, tag, tile), hn::Store(b0, tag, tile + n_lanes);
      hn::Store(a1, tag, tile + 2 * n_lanes), hn::Store(b1, tag, tile + 3 * n_lanes);
      hn::Store(a2, tag, tile + 4 * n_lanes), hn::Store(b2, tag, tile + 5 * n_lanes);
      hn::Store(a3, tag, tile + 6 * n_lanes), hn::Store(b3, tag, tile + 7 * n_lanes);
      for (int64_t r = 0; r < std::min(kRows, d - i); ++r) {
        for (int64_t k = 0; k < 2 * n_lanes; ++k) {
          sums[(i + r) * stride + j + k] += tile[r * 2 * n_lanes + k];
        }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(add_products);

namespace {

constexpr int64_t kTokens = 256;
constexpr int64_t kStrideUnit = 32;  // two vectors of any target

/// Computes one head. `sums` [d + 1, stride] and `y` [kTokens, stride] must be zero.
template <typename AddProducts>
void head_moments(const Tensor& x, const float* shift, int64_t h, AddProducts add, int64_t stride,
                  double* sums, float* y) {
  const int64_t n = x.shape[0], d = x.shape[2];
  for (int64_t begin = 0; begin < n; begin += kTokens) {
    const int64_t n_block = std::min(kTokens, n - begin);
    for (int64_t t = 0; t < n_block; ++t) {
      const float* row = x.at<const float>(begin + t, h);
      for (int64_t c = 0; c < d; ++c) {
        y[t * stride + c] = row[c] - shift[c];
        sums[d * stride + c] += y[t * stride + c];
      }
    }
    add(y, n_block, d, stride, sums);
  }
}

int64_t stride_of(int64_t d) { return (d + kStrideUnit - 1) / kStrideUnit * kStrideUnit; }

/// The memory of one thread.
struct Room {
  double* sums;  // [d + 1, stride]
  float* y;      // [kTokens, stride]
};

Room cut_room(int64_t d, ScratchCutter& cutter) {
  Room room{};
  room.sums = cutter.take<double>((d + 1) * stride_of(d));
  room.y = cutter.take<float>(kTokens * stride_of(d));
  return room;
}

size_t room_bytes(int64_t d) {
  ScratchCutter measure(nullptr);
  cut_room(d, measure);
  return measure.used();
}

}  // namespace

size_t moments_workspace(const CpuContext& ctx, const Tensor& x, const Tensor&, const Tensor&) {
  return room_bytes(x.shape[2]) * team_size(ctx, x.shape[1] > 1);
}

void moments(const CpuContext& ctx, const Tensor& x, const Tensor& shift, const Tensor& out) {
  const int64_t n_head = x.shape[1], d = x.shape[2];
  const int64_t stride = stride_of(d);
  const int n_threads = team_size(ctx, n_head > 1);
  char* memory = scratch(moments_workspace(ctx, x, shift, out));
  const auto add = HWY_DYNAMIC_DISPATCH(add_products);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t h = 0; h < n_head; ++h) {
    ScratchCutter cutter(memory + omp_get_thread_num() * room_bytes(d));
    const auto [sums, y] = cut_room(d, cutter);
    std::fill_n(sums, (d + 1) * stride, 0.0);
    std::fill_n(y, kTokens * stride, 0.0f);
    head_moments(x, shift.at<const float>(h), h, add, stride, sums, y);
    for (int64_t i = 0; i <= d; ++i) {
      for (int64_t j = 0; j < d; ++j) {
        const double sum = i < d && j < i ? sums[j * stride + i] : sums[i * stride + j];
        out.at<float>(h, i)[j] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
