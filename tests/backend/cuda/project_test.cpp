// SPDX-License-Identifier: MIT
// project() on a CUDA device against ref/: every weight type and number of columns.
#include <array>
#include <cmath>
#include <limits>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

bool is_plain(DType t) { return block_size(t) == 1; }

// As tests/backend/linear_test.cpp: order of f32 sums, of values of magnitude sqrt(n_in).
Tolerance f32_tolerance(int64_t n_in) {
  return {.abs = 2e-6 * std::sqrt(static_cast<double>(n_in)) + 1e-6, .rel = 2e-6};
}

/// A projection and all that it needs, on the host.
struct Case {
  TestTensor w, bias, out;
  bool has_bias = false, accumulate = false;
  Tensor bias_or_none(const Tensor& b) const { return has_bias ? b : Tensor(); }
  Projection projection() const {
    return {.w = w, .bias = bias_or_none(bias), .out = out, .accumulate = accumulate};
  }
};

Case make_case(DType type, int64_t n, int64_t n_out, int64_t n_in, bool bias, bool accumulate,
               uint64_t seed = 1) {
  return {.w = random_tensor({n_out, n_in}, seed, type),
          .bias = random_tensor({n_out}, seed + 1),
          .out = random_tensor({n, n_out}, seed + 2),
          .has_bias = bias,
          .accumulate = accumulate};
}

class CudaProject : public CudaTest {
 protected:
  /// The outputs of one call with all cases.
  std::vector<TestTensor> run(Backend& backend, const TestTensor& x,
                              const std::vector<Case>& cases) {
    std::vector<DeviceTensor> w, bias, out;
    std::vector<Projection> projections;
    for (const Case& c : cases) {
      w.emplace_back(backend, c.w);
      bias.emplace_back(backend, c.bias);
      out.emplace_back(backend, c.out);
      projections.push_back({.w = w.back(),
                             .bias = c.bias_or_none(bias.back()),
                             .out = out.back(),
                             .accumulate = c.accumulate});
    }
    ops::project(backend, DeviceTensor(backend, x), projections);
    std::vector<TestTensor> results;
    for (const DeviceTensor& o : out) results.push_back(o.host());
    return results;
  }
  std::vector<TestTensor> expected(const TestTensor& x, const std::vector<Case>& cases) {
    std::vector<TestTensor> results;
    for (Case c : cases) {
      ops::project(reference(), x, std::array{c.projection()});
      results.push_back(c.out);
    }
    return results;
  }
  /// `tolerance` of the relative error, or 0: f32_tolerance.
  void check(Backend& backend, const TestTensor& x, const std::vector<Case>& cases,
             double tolerance, const std::string& what) {
    const std::vector<TestTensor> right = expected(x, cases);
    both_orders([&] {
      const std::vector<TestTensor> actual = run(backend, x, cases);
      for (size_t i = 0; i < right.size(); ++i) {
        if (tolerance == 0) {
          EXPECT_TRUE(all_close(actual[i], right[i], f32_tolerance(x.view().shape[1])))
              << what << " projection " << i;
        } else {
          EXPECT_LT(relative_error(actual[i], right[i]), tolerance) << what << " projection " << i;
        }
      }
    });
  }
};

std::string describe(DType type, int64_t n, int64_t n_out, int64_t n_in) {
  return std::string(name(type)) + " n " + std::to_string(n) + " [" + std::to_string(n_out) + ", " +
         std::to_string(n_in) + "]";
}

class CudaProjectType : public CudaProject, public testing::WithParamInterface<DType> {};

// Every number of columns that has a kernel of its own, and one more and one less.
TEST_P(CudaProjectType, EqualsReferenceInF32) {
  const DType type = GetParam();
  const auto backend = make(Compute::f32);
  for (const int64_t n : {1, 2, 3, 4, 5, 9, 40}) {
    for (const auto& [n_out, n_in] : {std::pair{1, 256}, {7, 512}, {21, 1280}}) {
      const TestTensor x = random_tensor({n, n_in}, 7);
      check(*backend, x, {make_case(type, n, n_out, n_in, n % 2 == 0, n % 3 == 0)}, 0,
            describe(type, n, n_out, n_in));
    }
  }
}

// Plain types round nothing. Of 8 bits a value's error is d / sqrt(12), d = max / 127 with a
// maximum of about 2.1 sigma: 0.5%; one part in 100 for the scatter of few outputs.
TEST_P(CudaProjectType, RoundsActivationsOnlyAsStatedInBf16) {
  const DType type = GetParam();
  for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 40}) {
    for (const auto& [n_out, n_in] : {std::pair{5, 256}, {37, 1536}}) {
      const TestTensor x = random_tensor({n, n_in}, 8);
      check(cuda(), x, {make_case(type, n, n_out, n_in, n % 2 == 1, n % 3 != 0)},
            is_plain(type) ? 0 : 0.01, describe(type, n, n_out, n_in));
    }
  }
}

// Matrices of many rows have kernels of their own.
TEST_P(CudaProjectType, ManyRows) {
  const DType type = GetParam();
  const TestTensor x = random_tensor({1, 512}, 9);
  check(cuda(), x, {make_case(type, 1, 131, 512, true, true)}, is_plain(type) ? 0 : 0.01,
        describe(type, 1, 131, 512));
}

// Rows of more steps than are under way at once, the last one not whole.
TEST_P(CudaProjectType, LongRows) {
  const DType type = GetParam();
  for (const int64_t n : {1, 2, 6}) {
    const TestTensor x = random_tensor({n, 11008}, 10);
    check(cuda(), x, {make_case(type, n, 5, 11008, false, false)}, is_plain(type) ? 0 : 0.012,
          describe(type, n, 5, 11008));
  }
}

// What the 8-bit kernels multiply, exactly: activations that rounding leaves as they are.
TEST_P(CudaProjectType, MultipliesWholeActivationsExactly) {
  const DType type = GetParam();
  for (const int64_t n : {1, 2, 3, 7, 13}) {
    TestTensor x({n, 1024});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.as()[i] = i % 32 == i / 32 % 32 ? 127.0f : static_cast<float>(i * 37 % 255 - 127);
      x.as()[i] *= 1.0f / 64;  // d a power of two
    }
    check(cuda(), x, {make_case(type, n, 6, 1024, false, false)}, 0, describe(type, n, 6, 1024));
  }
}

// Rows that begin where no 16-byte access can: views into a larger matrix of device memory.
TEST_P(CudaProjectType, TakesWeightsAtAnyAddress) {
  const DType type = GetParam();
  const int64_t n_in = is_plain(type) ? 257 : block_size(type) == kBlockSize ? 288 : 768;
  const int64_t offset = type == DType::f32 ? 4 : 2;  // bytes
  const TestTensor w = random_tensor({9, n_in}, 1, type);
  TestTensor memory({w.bytes() / 2 + 2}, DType::bf16);
  std::memcpy(memory.as<char>() + offset, w.data(), static_cast<size_t>(w.bytes()));
  const DeviceTensor there = device(memory);
  for (const int64_t n : {1, 3, 9}) {
    const TestTensor x = random_tensor({n, n_in}, 2);
    Tensor view = w;
    view.data = static_cast<char*>(there.data()) + offset;
    const DeviceTensor out = device(TestTensor({n, 9}));
    ops::project(cuda(), device(x), std::array{Projection{.w = view, .bias = {}, .out = out}});
    TestTensor right({n, 9});
    ops::project(reference(), x, std::array{Projection{.w = w, .bias = {}, .out = right}});
    EXPECT_LT(relative_error(out.host(), right), is_plain(type) ? 1e-6 : 0.01)
        << name(type) << " n " << n;
  }
}

// No bit depends on how many other rows there are, while the kernels are of one kind.
TEST_P(CudaProjectType, RowsDoNotDependOnBatch) {
  const DType type = GetParam();
  const int64_t n_in = 2304;
  for (const int64_t n : {2, 4, 11}) {
    if (type == DType::bf16 && n > 4) continue;
    const TestTensor x = random_tensor({n, n_in}, 3);
    const Case all = make_case(type, n, 6, n_in, true, false);
    const std::vector<float> batch = run(cuda(), x, {all})[0].values();
    for (const int64_t t : {int64_t{0}, n - 1}) {
      TestTensor row({1, n_in});
      std::memcpy(row.data(), x.as() + t * n_in, static_cast<size_t>(row.bytes()));
      const Case one{.w = all.w, .bias = all.bias, .out = TestTensor({1, 6}), .has_bias = true};
      EXPECT_EQ(run(cuda(), row, {one})[0].values(),
                std::vector<float>(batch.begin() + t * 6, batch.begin() + t * 6 + 6))
          << name(type) << " row " << t << " of " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaProjectType, testing::ValuesIn(kWeightTypes),
                         [](const auto& p) { return std::string(name(p.param)); });

// Plain types may have any number of columns.
TEST_F(CudaProject, TakesOddColumnsOfPlainTypes) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t n_in : {1, 15, 40, 100, 255}) {
      for (const int64_t n : {1, 3, 6}) {
        check(cuda(), random_tensor({n, n_in}, 1), {make_case(type, n, 11, n_in, true, true)}, 0,
              describe(type, n, 11, n_in));
      }
    }
  }
}

// One call with several matrices, of one type and of several, equals one call for each.
TEST_F(CudaProject, SeveralProjectionsShareACall) {
  for (const int64_t n : {1, 3, 6}) {
    const TestTensor x = random_tensor({n, 512}, 1);
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 6 + kWeightTypes.size(); ++i) {
      const DType type = i < 6 ? DType::q8_0 : kWeightTypes[i - 6];
      cases.push_back(make_case(type, n, 3 + 5 * static_cast<int64_t>(i % 4), 512, i % 2 == 0,
                                i % 3 == 0, 10 * i));
    }
    const std::vector<TestTensor> together = run(cuda(), x, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(together[i].values(), run(cuda(), x, {cases[i]})[0].values()) << i << " n " << n;
    }
  }
}

// What a decode step records must hold for its next inputs.
TEST_F(CudaProject, RepeatsInSteps) {
  for (const DType type : {DType::bf16, DType::q8_0, DType::q4_k}) {
    for (const int64_t n : {1, 6}) {
      Case c = make_case(type, n, 20, 512, true, false);
      const DeviceTensor w = device(c.w), bias = device(c.bias), out = device(c.out);
      const DeviceTensor x = device(TestTensor({n, 512}));
      for (uint64_t step = 0; step < 4; ++step) {
        const TestTensor input = random_tensor({n, 512}, step);
        cuda().upload(x.data(), input.data(), static_cast<size_t>(input.bytes()));
        cuda().begin_step(static_cast<uint64_t>(n) << 8 | static_cast<uint64_t>(type));
        ops::project(cuda(), x, std::array{Projection{.w = w, .bias = bias, .out = out}});
        cuda().end_step();
        EXPECT_LT(relative_error(out.host(), expected(input, {c})[0]), 0.01)
            << name(type) << " n " << n << " step " << step;
      }
    }
  }
}

TEST_F(CudaProject, NanAndInfinityShow) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = HUGE_VALF;
  for (const DType type : {DType::bf16, DType::f16, DType::q8_0, DType::q4_k, DType::q6_k}) {
    for (const int64_t n : {3, 6}) {
      TestTensor x({n, 512});
      x.as()[512 + 300] = nan;
      x.as()[2 * 512 + 300] = inf;
      Case c = make_case(type, n, 4, 512, false, false);
      const std::vector<float> out = run(cuda(), x, {c})[0].values();
      for (size_t o = 0; o < 4; ++o) {
        EXPECT_EQ(out[o], 0.0f);
        EXPECT_TRUE(std::isnan(out[4 + o])) << name(type) << " n " << n;
        EXPECT_FALSE(std::isfinite(out[8 + o])) << name(type) << " n " << n;
      }
    }
  }
}

// The tensor cores multiply activations whole: none of their 24 bits gets lost.
TEST_F(CudaProject, TensorCoresRoundNoActivation) {
  const int64_t n = 8, n_in = 256;
  TestTensor x({n, n_in}), w({8, n_in}, DType::bf16);
  for (int64_t t = 0; t < n; ++t)
    x.as()[t * n_in + 31 * t] = 1.0f + static_cast<float>(t) * 0x1p-23f;
  for (int64_t i = 0; i < w.numel(); ++i) w.as<bf16_t>()[i] = to_bf16(1.0f);
  const std::vector<float> out =
      run(cuda(), x, {{.w = w, .bias = TestTensor({8}), .out = TestTensor({n, 8})}})[0].values();
  for (int64_t i = 0; i < n * 8; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], x.as()[i / 8 * n_in + 31 * (i / 8)]);
  }
}

}  // namespace
}  // namespace snapkv::test
