// SPDX-License-Identifier: MIT
// Decode steps on a CUDA device: the ops that begin_step and end_step record and replay must give
// the same bits as outside a step.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

constexpr int64_t kHeadDim = 32, kGroup = 2;

/// The ops of one layer of a decode step, without products of weights: norm, rotation, attention
/// over a cache, activation. Its tensors stay in place.
class Layer {
 public:
  Layer(Backend& backend, int64_t n_seq, int64_t n_head_kv, int64_t capacity)
      : backend_(backend),
        n_seq_(n_seq),
        n_head_kv_(n_head_kv),
        n_head_(n_head_kv * kGroup),
        x_(make({n_seq, n_head_ * kHeadDim}, 1)),
        weight_(make({n_head_ * kHeadDim}, 2)),
        q_(make({n_seq, n_head_, kHeadDim}, 3)),
        attended_(make({n_seq, n_head_, kHeadDim}, 4)),
        out_(make({n_seq, n_head_ * kHeadDim}, 5)),
        k_(make({n_seq * n_head_kv, capacity, kHeadDim}, 6, DType::f16)),
        v_(make({n_seq * n_head_kv, capacity, kHeadDim}, 7, DType::f16)) {
    for (int64_t i = 0; i < kHeadDim / 2; ++i) {
      inv_freq_.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / kHeadDim));
    }
  }

  /// Runs the layer at position `pos` of every sequence; the heads have n_kv rows or fewer.
  void run(int32_t pos, int32_t n_kv) const {
    const std::vector<int32_t> positions(static_cast<size_t>(n_seq_), pos);
    std::vector<HeadRows> heads;
    for (int64_t h = 0; h < n_seq_ * n_head_kv_; ++h) {
      heads.push_back({k_.view().at<void>(h), v_.view().at<void>(h),
                       std::max(1, n_kv - static_cast<int32_t>(h) * 40)});
    }
    ops::rms_norm(backend_, x_, weight_, 1e-5f, q_.view().reshaped({n_seq_, n_head_ * kHeadDim}));
    ops::rope(backend_, q_, positions, {inv_freq_, RopeLayout::neox});
    ops::attention_decode(backend_, {q_, heads, DType::f16, 0.125f, attended_});
    const Tensor flat = attended_.view().reshaped({n_seq_, n_head_ * kHeadDim});
    ops::activate(backend_, Activation::silu, flat, x_, out_);
  }
  std::vector<float> result() const { return out_.host().values(); }

 private:
  DeviceTensor make(const std::vector<int64_t>& shape, uint64_t seed, DType dtype = DType::f32) {
    return DeviceTensor(backend_, random_tensor(shape, seed, dtype));
  }

  Backend& backend_;
  int64_t n_seq_, n_head_kv_, n_head_;
  DeviceTensor x_, weight_, q_, attended_, out_, k_, v_;
  std::vector<double> inv_freq_;
};

class CudaStep : public CudaTest {
 protected:
  std::vector<float> step(const Layer& layer, uint64_t shape, int32_t pos, int32_t n_kv) {
    cuda().begin_step(shape);
    layer.run(pos, n_kv);
    cuda().end_step(true);
    return layer.result();
  }
  static std::vector<float> plain(const Layer& layer, int32_t pos, int32_t n_kv) {
    layer.run(pos, n_kv);
    return layer.result();
  }
};

TEST_F(CudaStep, RepeatsWithOtherPositionsAndRows) {
  const Layer layer(cuda(), 2, 2, 512), other(cuda(), 2, 2, 512);
  for (int32_t i = 0; i < 6; ++i) {                        // plain, recorded, then replayed
    const int32_t pos = 300 + 7 * i, n_kv = 257 + 51 * i;  // up to 512
    EXPECT_EQ(step(layer, 1, pos, n_kv), plain(other, pos, n_kv)) << i;
  }
}

TEST_F(CudaStep, ShapesTakeTurns) {
  const Layer one(cuda(), 1, 2, 256), two(cuda(), 3, 1, 512), other_one(cuda(), 1, 2, 256),
      other_two(cuda(), 3, 1, 512);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(step(one, 1, i, 100 + i), plain(other_one, i, 100 + i)) << i;
    EXPECT_EQ(step(two, 2, i, 300 + i), plain(other_two, i, 300 + i)) << i;
  }
  // The first layer again with more rows: another shape at the same addresses.
  const Layer grown(cuda(), 1, 2, 512), other_grown(cuda(), 1, 2, 512);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(step(grown, 3, i, 254 + i / 3), plain(other_grown, i, 254 + i / 3)) << i;
    EXPECT_EQ(step(grown, 4, i, 400 + i), plain(other_grown, i, 400 + i)) << i;
  }
}

TEST_F(CudaStep, ForgetsWhatUsedScratchMemoryThatMoved) {
  const Layer layer(cuda(), 2, 2, 512), other(cuda(), 2, 2, 512);
  for (int32_t i = 0; i < 3; ++i) step(layer, 1, i, 300 + i);
  // Between two steps, an op needs more scratch memory than any before: k of long rows.
  const DeviceTensor scores = device(TestTensor({48, 33'000}));
  const DeviceTensor rows = device(TestTensor({48, 1}, DType::i32));
  std::vector<int32_t> n(48, 1);
  n[0] = 33'000;
  ops::top_k(cuda(), scores, n, std::vector<int32_t>(48, 1), 0, rows);
  // This takes the place of the released memory, where steps must no longer write.
  const TestTensor ones({1 << 18}, std::vector<float>(1 << 18, 1.0f));
  const DeviceTensor successor = device(ones);
  for (int32_t i = 3; i < 7; ++i) {
    EXPECT_EQ(step(layer, 1, i, 300 + i), plain(other, i, 300 + i)) << i;
  }
  EXPECT_EQ(successor.host().values(), ones.values());
}

TEST_F(CudaStep, ProductsRepeat) {
  for (const DType type : {DType::bf16, DType::q8_0, DType::q4_k}) {
    for (const int64_t n : {1, 6}) {
      const TestTensor weight = random_tensor({20, 512}, 1, type), b = random_tensor({20}, 2);
      const DeviceTensor w = device(weight), bias = device(b), out = device(TestTensor({n, 20}));
      const DeviceTensor x = device(TestTensor({n, 512}));
      for (uint64_t i = 0; i < 4; ++i) {
        const TestTensor input = random_tensor({n, 512}, i), expected({n, 20});
        ops::project(reference(), input,
                     std::array{Projection{.w = weight, .bias = b, .out = expected}});
        cuda().upload(x.data(), input.data(), input.bytes());
        cuda().begin_step(n << 8 | static_cast<int64_t>(type));
        ops::project(cuda(), x, std::array{Projection{.w = w, .bias = bias, .out = out}});
        cuda().end_step();
        EXPECT_LT(relative_error(out.host(), expected), 0.01)
            << name(type) << " n " << n << " step " << i;
      }
    }
  }
}

// Each decode step stores a row one further than the step before.
TEST_F(CudaStep, StoresRowAfterRow) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    const TestTensor expected({2, 4, 64}, dtype);
    const DeviceTensor heads = device(expected), pos = device(TestTensor({4}, DType::i32));
    const DeviceTensor src = device(TestTensor({1, 2, 64}));
    const auto row = [&](const Tensor& t, int64_t h, int64_t i) {
      return t.at<char>(h) + i * row_bytes(dtype, 64);
    };
    for (int32_t i = 0; i < 4; ++i) {
      const TestTensor values = random_tensor({1, 2, 64}, i);
      ops::store_rows(reference(), values, dtype,
                      std::array<void*, 2>{row(expected, 0, i), row(expected, 1, i)});
      cuda().upload(src.data(), values.data(), values.bytes());
      cuda().begin_step(static_cast<uint64_t>(dtype));
      ops::store_rows(cuda(), src, dtype, std::array<void*, 2>{row(heads, 0, i), row(heads, 1, i)});
      ops::store_positions(cuda(), std::array{1000 + i},
                           std::array{static_cast<int32_t*>(pos.data()) + i});
      cuda().end_step();
    }
    EXPECT_EQ(heads.host().values(), expected.values()) << name(dtype);
    EXPECT_EQ(pos.host().values(), (std::vector<float>{1000, 1001, 1002, 1003}));
  }
}

}  // namespace
}  // namespace snapkv::test
