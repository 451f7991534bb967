// SPDX-License-Identifier: MIT
// Pooling and top_k on a CUDA device against ref/.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

class CudaSelect : public CudaTest {
 protected:
  std::vector<float> run_top_k(Backend& backend, const Tensor& scores,
                               const std::vector<int32_t>& n, const std::vector<int32_t>& k,
                               int n_tail) {
    const int32_t most = *std::max_element(k.begin(), k.end());
    const TestTensor rows({static_cast<int64_t>(n.size()), most + n_tail + 1}, DType::i32);
    if (!backend.is_device()) {
      ops::top_k(backend, scores, n, k, n_tail, rows);
      return rows.values();
    }
    const DeviceTensor on_device(backend, rows);
    ops::top_k(backend, scores, n, k, n_tail, on_device);
    return on_device.host().values();
  }
  void expect_matches_reference(const TestTensor& scores, const std::vector<int32_t>& n,
                                const std::vector<int32_t>& k, int n_tail) {
    EXPECT_EQ(run_top_k(cuda(), device(scores), n, k, n_tail),
              run_top_k(reference(), scores, n, k, n_tail))
        << "n " << n[0] << " k " << k[0] << " tail " << n_tail;
  }
};

// Ties, both zeros, infinities, NaN of both signs and everything between.
TestTensor difficult_scores(int64_t n_heads, int64_t n_columns, uint64_t seed) {
  TestTensor scores = random_tensor({n_heads, n_columns}, seed);
  const float special[] = {0.0f, -0.0f, NAN, -NAN, INFINITY, -INFINITY, 1e-42f, -1e-42f};
  for (int64_t i = 0; i < scores.numel(); ++i) {
    float& s = scores.as<float>()[i];
    if (i % 3 == 0) s = std::round(s);
    if (i * 7919 % 11 == 0) s = special[i / 11 % 8];
  }
  return scores;
}

TEST_F(CudaSelect, Pool) {
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    for (int kernel_size : {1, 7, 63, 129}) {
      for (std::vector<int32_t> n : {std::vector<int32_t>{0, 1}, {2, 64}, {1500, 257}}) {
        const int32_t longest = *std::max_element(n.begin(), n.end());
        const TestTensor scores = random_tensor({2, longest + 3}, 1), zeros({2, longest + 1});
        TestTensor expected = zeros;
        ops::pool(reference(), scores, n, kernel_size, pooling, expected);
        const DeviceTensor out = device(zeros);
        ops::pool(cuda(), device(scores), n, kernel_size, pooling, out);
        // max copies; avg sums up to 129 values of size 1 in f32
        const Tolerance tolerance = pooling == Pooling::max ? Tolerance{} : Tolerance{1e-6, 1e-5};
        EXPECT_TRUE(all_close(out.host(), expected, tolerance)) << kernel_size << " " << longest;
      }
    }
  }
}

TEST_F(CudaSelect, PoolOfNaN) {
  const TestTensor scores({1, 4}, {NAN, NAN, NAN, -3.0f}), zeros({1, 4});
  const std::vector<int32_t> n = {4};
  for (Pooling pooling : {Pooling::max, Pooling::avg}) {
    TestTensor expected = zeros;
    ops::pool(reference(), scores, n, 3, pooling, expected);
    const DeviceTensor out = device(zeros);
    ops::pool(cuda(), device(scores), n, 3, pooling, out);
    EXPECT_TRUE(all_close(out.host(), expected, {}));
  }
}

TEST_F(CudaSelect, TopK) {
  for (int32_t n : {1, 2, 33, 1025, 5000}) {
    const TestTensor scores = difficult_scores(3, n + 2, static_cast<uint64_t>(n));
    const int32_t half = (n + 1) / 2;
    for (int32_t k : {0, 1, n / 2, n}) {
      expect_matches_reference(scores, {n, n, half}, {k, k / 2, std::min(k, half)}, k % 5);
    }
  }
}

TEST_F(CudaSelect, TopKOfLongRows) {
  constexpr int32_t kRow = 100'000;
  const TestTensor scores = difficult_scores(2, kRow + 1, 2);
  both_orders([&] { expect_matches_reference(scores, {kRow, 32'769}, {1000, 20'000}, 32); });
  expect_matches_reference(scores, {kRow, 10}, {kRow, 0}, 3);
  expect_matches_reference(scores, {kRow, 0}, {99'999, 0}, 0);
}

TEST_F(CudaSelect, TopKOfEqualScores) {
  for (int32_t n : {3000, 70'000}) {  // one block, and several
    const TestTensor scores({1, n}, std::vector<float>(static_cast<size_t>(n), 0.25f));
    const std::vector<float> rows = run_top_k(cuda(), device(scores), {n}, {n / 3}, 2);
    for (int32_t i = 0; i < n / 3; ++i) ASSERT_EQ(rows[static_cast<size_t>(i)], i);
    EXPECT_EQ(rows[static_cast<size_t>(n / 3)], n);
  }
  const TestTensor zeros({1, 5}, {0.0f, -0.0f, 0.0f, -0.0f, 0.0f});
  EXPECT_EQ(run_top_k(cuda(), device(zeros), {5}, {2}, 1), (std::vector<float>{0, 1, 5, 0}));
}

// Scores that differ in one digit of their keys only.
TEST_F(CudaSelect, TopKOfNearScores) {
  for (uint32_t shift : {0, 10, 21}) {
    TestTensor scores({1, 900});
    for (uint32_t i = 0; i < 900; ++i) {
      const uint32_t bits = 0x10000000u + (i * 7 % 300 << shift);
      std::memcpy(scores.as<float>() + i, &bits, sizeof(bits));
    }
    for (int32_t k : {1, 2, 450, 899}) expect_matches_reference(scores, {900}, {k}, 0);
  }
}

TEST_F(CudaSelect, NothingToDo) {
  const DeviceTensor scores = device(TestTensor({1, 4}));
  EXPECT_EQ(run_top_k(cuda(), scores, {0}, {0}, 3), (std::vector<float>{0, 1, 2, 0}));
  EXPECT_EQ(run_top_k(cuda(), scores, {4}, {0}, 0), (std::vector<float>{0}));
}

}  // namespace
}  // namespace snapkv::test
