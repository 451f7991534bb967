// SPDX-License-Identifier: MIT
// Attention of decode on a CUDA device against ref/: types, shapes, ragged heads, splits, extreme
// scores.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

/// Sums of f32 products in another order than ref's f64; operands in two parts of 11 bits (f16) or
/// 8 bits (bf16, and q8_0's products).
Tolerance tolerance(DType kv) {
  return kv == DType::f32 || kv == DType::f16 ? Tolerance{1e-5, 5e-5} : Tolerance{5e-5, 3e-4};
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

struct Shape {
  int64_t n_group, head_dim;
  std::vector<std::vector<int32_t>> n_kv;  // [n_seq][n_head_kv]
};

std::string to_string(const Shape& s, DType kv) {
  return std::string(name(kv)) + " group " + std::to_string(s.n_group) + " head_dim " +
         std::to_string(s.head_dim) + " rows " + std::to_string(s.n_kv[0][0]);
}

struct Inputs {
  TestTensor q;
  std::vector<TestTensor> k, v;  // [n_seq * n_head_kv]
};

Inputs make_inputs(const Shape& s, DType kv, uint64_t seed, float q_scale = 1.0f) {
  Inputs in;
  const auto n_seq = static_cast<int64_t>(s.n_kv.size());
  const auto n_head_kv = static_cast<int64_t>(s.n_kv[0].size());
  in.q = random_tensor({n_seq, n_head_kv * s.n_group, s.head_dim}, seed, DType::f32, q_scale);
  for (const auto& sequence : s.n_kv) {
    for (int32_t n : sequence) {
      in.k.push_back(random_tensor({n, s.head_dim}, ++seed, kv));
      in.v.push_back(random_tensor({n, s.head_dim}, ++seed, kv));
    }
  }
  return in;
}

class CudaAttentionDecode : public CudaTest {
 protected:
  static DecodeAttention arguments(const Tensor& q, std::span<const HeadRows> heads, DType kv,
                                   const Tensor& out) {
    return {q, heads, kv, 1.0f / std::sqrt(static_cast<float>(q.shape[2])), out};
  }
  TestTensor expected(const Inputs& in, DType kv) {
    std::vector<HeadRows> heads;
    for (size_t i = 0; i < in.k.size(); ++i) {
      heads.push_back(
          {in.k[i].data(), in.v[i].data(), static_cast<int32_t>(in.k[i].view().shape[0])});
    }
    TestTensor out(in.q.shape());
    ops::attention_decode(reference(), arguments(in.q, heads, kv, out));
    return out;
  }
  /// Each head's rows begin `shift` bytes into memory of their own size, which nothing follows.
  TestTensor actual(const Inputs& in, DType kv, size_t shift = 0) {
    std::vector<Buffer> memory;
    const auto upload = [&](const TestTensor& t) {
      const auto bytes = static_cast<size_t>(t.bytes());
      memory.push_back(cuda().allocate(shift + bytes, "test rows"));
      char* rows = static_cast<char*>(memory.back().data()) + shift;
      cuda().upload(rows, t.data(), bytes);
      return rows;
    };
    std::vector<HeadRows> heads;
    for (size_t i = 0; i < in.k.size(); ++i) {
      heads.push_back(
          {upload(in.k[i]), upload(in.v[i]), static_cast<int32_t>(in.k[i].view().shape[0])});
    }
    const DeviceTensor q = device(in.q), out = device(TestTensor(in.q.shape()));
    ops::attention_decode(cuda(), arguments(q, heads, kv, out));
    return out.host();
  }
  void expect_matches_reference(const Shape& s, DType kv, uint64_t seed, size_t shift = 0) {
    const Inputs in = make_inputs(s, kv, seed);
    EXPECT_TRUE(all_close(actual(in, kv, shift), expected(in, kv), tolerance(kv)))
        << to_string(s, kv) << " shift " << shift;
  }
};

TEST_F(CudaAttentionDecode, MatchesReferenceForEveryLength) {
  for (DType kv : kTypes) {
    both_orders([&] {
      expect_matches_reference({4, 64, {{1, 2}, {255, 256}, {257, 1000}, {16, 65}}}, kv, 100);
    });
  }
}

TEST_F(CudaAttentionDecode, MatchesReferenceForEveryGroup) {
  uint64_t seed = 200;
  for (DType kv : kTypes) {
    for (int64_t n_group : {1, 2, 3, 7, 8, 9, 16}) {
      expect_matches_reference({n_group, 32, {{37, 1}}}, kv, seed += 10);
    }
  }
}

TEST_F(CudaAttentionDecode, MatchesReferenceForMoreQueriesThanABlockTakes) {
  uint64_t seed = 300;
  for (DType kv : kTypes) expect_matches_reference({21, 32, {{70, 3}}}, kv, seed += 10);
}

TEST_F(CudaAttentionDecode, MatchesReferenceForEveryHeadDim) {
  uint64_t seed = 400;
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {8, 40, 80, 96, 128, 192, 256}) {
      expect_matches_reference({3, head_dim, {{37}}}, kv, seed += 10);
    }
  }
  for (int64_t head_dim : {32, 96, 128, 160, 256}) {
    expect_matches_reference({3, head_dim, {{37}}}, DType::q8_0, seed += 10);
  }
  for (DType kv : {DType::f16, DType::q8_0}) {
    expect_matches_reference({12, 256, {{37}}}, kv, seed += 10);
  }
}

TEST_F(CudaAttentionDecode, MatchesReferenceWithoutTensorCores) {
  uint64_t seed = 450;
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (int64_t head_dim : {1, 7, 33, 130, 264}) {
      expect_matches_reference({5, head_dim, {{70, 5}}}, kv, seed += 10);
    }
  }
  expect_matches_reference({3, 288, {{70}}}, DType::q8_0, seed += 10);
  expect_matches_reference({16, 2048, {{20}}}, DType::f32, seed += 10);  // too much for one block
}

// Heads of a cache begin where the rows of the one before end.
TEST_F(CudaAttentionDecode, ReadsRowsAtAnyAddress) {
  uint64_t seed = 500;
  for (size_t shift : {2, 8, 14})
    expect_matches_reference({2, 64, {{37}}}, DType::q8_0, ++seed, shift);
  expect_matches_reference({2, 64, {{37}}}, DType::f16, ++seed, 2);
  expect_matches_reference({2, 64, {{37}}}, DType::f32, ++seed, 4);
}

TEST_F(CudaAttentionDecode, MatchesReferenceAcrossManySplits) {
  for (DType kv : kTypes) {
    const Shape s{2, 32, {{3000, 1, 700}}};  // the longest has many, the others end in some
    expect_matches_reference(s, kv, 600);
  }
}

TEST_F(CudaAttentionDecode, SurvivesExtremeScores) {
  for (DType kv : kTypes) {
    const Inputs in = make_inputs({2, 64, {{300, 3}}}, kv, 700, 1000.0f);
    // a score of 4000 in f32 has an error of 2e-4, in two parts of 8 bits one of 3e-2
    const bool exact = kv == DType::f32 || kv == DType::f16;
    EXPECT_TRUE(all_close(actual(in, kv), expected(in, kv),
                          exact ? Tolerance{2e-3, 2e-3} : Tolerance{5e-2, 5e-2}))
        << name(kv);
  }
}

TEST_F(CudaAttentionDecode, TinyQueriesAndValuesKeepTheirDigits) {
  for (DType kv : {DType::f16, DType::bf16}) {
    Inputs in = make_inputs({2, 64, {{100}}}, kv, 800, 1e-6f);
    in.v[0] = random_tensor({100, 64}, 801, kv, 1e-3f);
    const TestTensor e = expected(in, kv);
    EXPECT_LT(relative_error(actual(in, kv), e), 1e-4) << name(kv);
  }
}

TEST_F(CudaAttentionDecode, EqualScoresGiveTheMean) {
  for (DType kv : kTypes) {
    Inputs in = make_inputs({1, 32, {{500}}}, kv, 900);
    in.q = TestTensor(in.q.shape());
    in.v[0] = TestTensor({500, 32}, std::vector<float>(500 * 32, 127.0f / 128), kv);
    for (float x : actual(in, kv).values()) ASSERT_NEAR(x, 127.0 / 128, 1e-6) << name(kv);
  }
}

TEST_F(CudaAttentionDecode, NaNStaysInItsHead) {
  for (DType kv : {DType::f32, DType::f16, DType::bf16}) {
    Inputs in = make_inputs({2, 64, {{200, 200}}}, kv, 1000);
    std::vector<float> k = in.k[0].values();
    k[150 * 64 + 3] = NAN;
    in.k[0] = TestTensor({200, 64}, k, kv);
    const std::vector<float> out = actual(in, kv).values();
    EXPECT_TRUE(std::all_of(out.begin(), out.begin() + 128, [](float x) { return std::isnan(x); }));
    EXPECT_TRUE(std::all_of(out.begin() + 128, out.end(), [](float x) { return !std::isnan(x); }));
  }
}

TEST_F(CudaAttentionDecode, OrderOfThreadsDoesNotChangeABit) {
  const Inputs in = make_inputs({4, 64, {{900, 300}}}, DType::f16, 1100);
  const std::vector<float> once = actual(in, DType::f16).values();
  both_orders([&] { EXPECT_EQ(actual(in, DType::f16).values(), once); });
}

}  // namespace
}  // namespace snapkv::test
