// SPDX-License-Identifier: MIT
// project(): every weight type and kernel variant against ref.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <limits>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_target.h"
#include "backend/cpu/gemv.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"
#include "tests/support/processor.h"

namespace snapkv::test {
namespace {

/// A number of columns as given, or in whole superblocks.
int64_t columns(DType type, int64_t n_in) {
  return (n_in + block_size(type) - 1) / block_size(type) * block_size(type);
}

// Sums of n_in products of normal(0, 1) values have a magnitude of sqrt(n_in); f32 sums in another
// order than the reference's f64 differ by about that times a few 1e-7.
Tolerance f32_tolerance(int64_t n_in) {
  return {.abs = 2e-6 * std::sqrt(static_cast<double>(n_in)) + 1e-6, .rel = 2e-6};
}

/// ||actual - expected|| / ||expected|| that rounding activations may cost. 8 bits: d / sqrt(12)
/// with d = max / 127 and a maximum of about 2.1 sigma in 32 values gives 0.5%. bf16: 8 significant
/// bits, 2^-8 / sqrt(3) / 1.4 = 0.17%, the weights being bf16 already. Few outputs scatter around
/// that.
double rounding_tolerance(DType weight) {
  if (block_size(weight) > 1) return 0.01;
  return weight == DType::bf16 ? 0.006 : 1e-5;
}

TestTensor project_with(Backend& backend, const TestTensor& x, const TestTensor& w,
                        const TestTensor& bias, const TestTensor& start, bool accumulate) {
  TestTensor out = start;
  const Tensor bias_view = bias.numel() > 0 ? bias.view() : Tensor();
  ops::project(
      backend, x,
      std::array{Projection{.w = w, .bias = bias_view, .out = out, .accumulate = accumulate}});
  return out;
}

class ProjectTest : public testing::TestWithParam<DType> {};

TEST_P(ProjectTest, EqualsReferenceInF32) {
  const DType type = GetParam();
  const auto ref = make_ref(), cpu = make_cpu(2, Compute::f32);
  for (const int64_t n : {0, 1, 2, 3, 7, 8, 33}) {
    for (const auto& [n_out, n_values] :
         {std::pair{1, 32}, {7, 64}, {67, 288}, {130, 544}, {5, 1024}}) {
      const int64_t n_in = columns(type, n_values);
      const TestTensor x = random_tensor({n, n_in}, 1), w = random_tensor({n_out, n_in}, 2, type);
      const TestTensor bias = random_tensor({n_out}, 3), start = random_tensor({n, n_out}, 4);
      for (const bool with_bias : {false, true}) {
        for (const bool accumulate : {false, true}) {
          const TestTensor& b = with_bias ? bias : TestTensor();
          EXPECT_TRUE(all_close(project_with(*cpu, x, w, b, start, accumulate),
                                project_with(*ref, x, w, b, start, accumulate),
                                f32_tolerance(n_in)))
              << name(type) << " n " << n << " n_out " << n_out << " n_in " << n_in << " bias "
              << with_bias << " accumulate " << accumulate;
        }
      }
    }
  }
}

TEST_P(ProjectTest, RoundsActivationsOnlyAsStatedInBf16) {
  if (!runs(Compute::bf16)) GTEST_SKIP() << "this processor multiplies no bf16";
  const DType type = GetParam();
  const auto ref = make_ref(), cpu = make_cpu(2, Compute::bf16);
  for (const int64_t n : {1, 3, 8, 33}) {
    for (const auto& [n_out, n_values] : {std::pair{67, 288}, {130, 512}, {9, 4096}}) {
      const int64_t n_in = columns(type, n_values);
      const TestTensor x = random_tensor({n, n_in}, 1), w = random_tensor({n_out, n_in}, 2, type);
      const TestTensor bias = random_tensor({n_out}, 3), start = random_tensor({n, n_out}, 4);
      EXPECT_LT(relative_error(project_with(*cpu, x, w, bias, start, true),
                               project_with(*ref, x, w, bias, start, true)),
                rounding_tolerance(type))
          << name(type) << " n " << n << " n_out " << n_out << " n_in " << n_in;
    }
  }
}

// No bit may depend on how many threads or other rows there are.
TEST_P(ProjectTest, RowsDoNotDependOnThreadsOrBatch) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    const auto one = make_cpu(1, compute), two = make_cpu(2, compute), five = make_cpu(5, compute);
    const int64_t n = 13, n_out = 201, n_in = columns(GetParam(), 2080);
    const TestTensor x = random_tensor({n, n_in}, 1);
    const TestTensor w = random_tensor({n_out, n_in}, 2, GetParam());
    const TestTensor start({n, n_out});
    const TestTensor expected = project_with(*one, x, w, {}, start, false);
    EXPECT_EQ(project_with(*two, x, w, {}, start, false).values(), expected.values());
    EXPECT_EQ(project_with(*five, x, w, {}, start, false).values(), expected.values());
    for (int64_t t = 0; t < n; ++t) {
      TestTensor row({1, n_out});
      ops::project(*two, x.view().slice(t, t + 1),
                   std::array{Projection{.w = w, .bias = {}, .out = row}});
      EXPECT_EQ(row.values(), to_f32_values(expected.as() + t * n_out, DType::f32, n_out));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProjectTest, testing::ValuesIn(kWeightTypes),
                         [](const auto& p) { return std::string(name(p.param)); });

// Plain types may have any number of columns.
TEST(Project, TakesOddColumnsOfPlainTypes) {
  const auto ref = make_ref();
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    const auto cpu = make_cpu(2, compute);
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      for (const int64_t n_in : {1, 15, 31, 33, 255, 300}) {
        const TestTensor x = random_tensor({3, n_in}, 1), w = random_tensor({11, n_in}, 2, type);
        const TestTensor start({3, 11});
        EXPECT_LT(relative_error(project_with(*cpu, x, w, {}, start, false),
                                 project_with(*ref, x, w, {}, start, false)),
                  rounding_tolerance(type))
            << name(type) << " n_in " << n_in;
      }
    }
  }
}

// One call with several matrices of different types equals one call for each.
TEST(Project, SeveralProjectionsShareACall) {
  const auto cpu = make_cpu(2, runs(Compute::bf16) ? Compute::bf16 : Compute::f32);
  const int64_t n = 4, n_in = 512;
  const TestTensor x = random_tensor({n, n_in}, 1);
  std::vector<TestTensor> weights, out;
  std::vector<Projection> projections;
  for (size_t i = 0; i < kWeightTypes.size(); ++i) {
    const int64_t n_out = 40 + 33 * static_cast<int64_t>(i);
    weights.push_back(random_tensor({n_out, n_in}, 5 + i, kWeightTypes[i]));
    out.emplace_back(std::vector<int64_t>{n, n_out});
    projections.push_back({.w = weights[i], .bias = {}, .out = out[i]});
  }
  ops::project(*cpu, x, projections);
  for (size_t i = 0; i < weights.size(); ++i) {
    const TestTensor alone =
        project_with(*cpu, x, weights[i], {}, TestTensor(out[i].shape()), false);
    EXPECT_EQ(out[i].values(), alone.values()) << name(kWeightTypes[i]);
  }
}

// The kernels themselves take rows at any distance.
TEST(Project, TakesStridedRows) {
  const int64_t n = 5, n_in = 256, n_out = 10;
  const TestTensor wide = random_tensor({n, 2 * n_in}, 1), w = random_tensor({n_out, n_in}, 2);
  Tensor x = wide.view();
  x.shape[1] = n_in;
  TestTensor dense({n, n_in});
  for (int64_t t = 0; t < n; ++t) std::memcpy(dense.as() + t * n_in, x.at<float>(t), n_in * 4);
  for (const DType type : kWeightTypes) {
    const TestTensor weight = w.to(type);
    for (const DType compute : {DType::f32, DType::bf16}) {
      const cpu::CpuContext ctx{.n_threads = 2, .compute = compute};
      TestTensor strided_out({n, 3 * n_out}), expected({n, n_out});
      Tensor out = strided_out.view();
      out.shape[1] = n_out;
      cpu::project(ctx, x, std::array{Projection{.w = weight, .bias = {}, .out = out}});
      cpu::project(ctx, dense, std::array{Projection{.w = weight, .bias = {}, .out = expected}});
      for (int64_t t = 0; t < n; ++t) {
        EXPECT_EQ(to_f32_values(out.at<float>(t), DType::f32, n_out),
                  to_f32_values(expected.as() + t * n_out, DType::f32, n_out));
        EXPECT_EQ(out.at<float>(t)[n_out], 0.0f) << "wrote beyond the row";
      }
    }
  }
}

// ---------------------------------------------------------------- kernel variants

std::vector<const cpu::GemvKernel*> int8_kernels() {
  std::vector<const cpu::GemvKernel*> kernels = {&cpu::gemv_int8_portable()};
#if defined(__x86_64__)
  if (cpu::has(cpu::CpuTarget::avx2)) kernels.push_back(&cpu::gemv_int8_avx2());
  if (cpu::has(cpu::CpuTarget::avx512_vnni)) kernels.push_back(&cpu::gemv_int8_vnni());
#endif
  return kernels;
}

std::vector<float> run_kernel(const cpu::GemvKernel& kernel, const TestTensor& x,
                              const TestTensor& w) {
  const int64_t n = x.view().shape[0], n_in = x.view().shape[1], n_out = w.view().shape[0];
  cpu::GemvCall call{.w = w.as<char>(),
                     .w_stride = w.view().stride[0],
                     .n_rows = n_out,
                     .n_in = n_in,
                     .x = x.as<char>(),
                     .x_stride = x.view().stride[0],
                     .n = static_cast<int>(n)};
  const int64_t n_units = (n_in + cpu::kGemvUnit - 1) / cpu::kGemvUnit;
  const size_t stride = static_cast<size_t>(n_units) * kernel.unit_bytes;
  const Buffer prepared = Buffer::host(static_cast<size_t>(n) * stride + 1, "test");
  if (kernel.unit_bytes > 0) {
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t u = 0; u < n_units; ++u) {
        const int64_t begin = u * cpu::kGemvUnit;
        char* unit = static_cast<char*>(prepared.data()) + static_cast<size_t>(t) * stride +
                     static_cast<size_t>(u) * kernel.unit_bytes;
        kernel.prepare(x.as() + t * n_in + begin, std::min(cpu::kGemvUnit, n_in - begin), unit);
      }
    }
    call.x = static_cast<const char*>(prepared.data());
    call.x_stride = static_cast<int64_t>(stride);
  }
  std::vector<float> sums(static_cast<size_t>(n * n_out));
  call.sums = sums.data();
  call.sums_stride = n_out;
  kernel.function(w.view().dtype)(call);
  return sums;
}

/// What the 8-bit kernels must compute: activations rounded as stated, sums in f64.
std::vector<float> int8_reference(const TestTensor& x, const TestTensor& w) {
  const int64_t n = x.view().shape[0], n_in = x.view().shape[1], n_out = w.view().shape[0];
  std::vector<float> rounded = x.values();
  for (size_t b = 0; b < rounded.size(); b += kBlockSize) {
    float max = 0;
    for (size_t i = b; i < b + kBlockSize; ++i) max = std::max(max, std::abs(rounded[i]));
    const float inverse = max > 0 ? 127.0f / max : 0.0f;
    for (size_t i = b; i < b + kBlockSize; ++i) {
      rounded[i] = std::nearbyint(rounded[i] * inverse) * (max / 127.0f);
    }
  }
  const std::vector<float> weights = w.values();
  std::vector<float> out;
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t o = 0; o < n_out; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < n_in; ++i) {
        sum += static_cast<double>(rounded[static_cast<size_t>(t * n_in + i)]) *
               weights[static_cast<size_t>(o * n_in + i)];
      }
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

TEST(Int8Kernels, MultiplyRoundedActivationsExactly) {
  for (const cpu::GemvKernel* kernel : int8_kernels()) {
    for (const DType type : block_types()) {
      for (const int64_t n_values : {32, 64, 224, 256, 288, 1024, 1152}) {
        const int64_t n_in = columns(type, n_values);
        for (int64_t n = 1; n <= cpu::kGemvMaxRows; ++n) {
          const TestTensor x = random_tensor({n, n_in}, 1);
          const TestTensor w = random_tensor({5, n_in}, 2, type);
          EXPECT_TRUE(
              all_close(run_kernel(*kernel, x, w), int8_reference(x, w), f32_tolerance(n_in)))
              << kernel->name << " " << name(type) << " n_in " << n_in << " n " << n;
        }
      }
    }
  }
}

// All bits set and all clear: the largest levels, scales and minima; activations at +-127.
TEST(Int8Kernels, TakeExtremeSuperblocks) {
  const int64_t n_in = 512;
  TestTensor x({2, n_in});
  for (int64_t i = 0; i < n_in; ++i) {
    x.as()[i] = 127.0f;
    x.as()[n_in + i] = i / 16 % 2 == 0 ? -127.0f : 127.0f;
  }
  for (const DType type : {DType::q4_k, DType::q5_k, DType::q6_k}) {
    const TestTensor w({4, n_in}, type);
    for (int64_t r = 0; r < 4; ++r) {
      char* row = w.view().at<char>(r);
      std::memset(row, r % 2 == 0 ? 0xff : 0, static_cast<size_t>(w.view().stride[0]));
      for (int64_t b = 0; b < n_in / kSuperblockSize; ++b) {
        char* block = row + b * block_bytes(type);
        if (type == DType::q6_k) {  // scales of -1 with 0xff; then the largest, of either sign
          auto* q6 = reinterpret_cast<BlockQ6_K*>(block);
          q6->d = to_f16(1.0f);
          if (r > 1) std::memset(q6->scales, r == 2 ? 0x80 : 0x7f, sizeof(q6->scales));
        } else {
          auto* scales = reinterpret_cast<PartScales*>(block);
          scales->d = to_f16(1.0f);
          scales->dmin = to_f16(r < 2 ? 0.5f : -0.5f);
          if (r == 3) std::memset(scales->bytes, 0xff, sizeof(scales->bytes));
        }
      }
    }
    for (const cpu::GemvKernel* kernel : int8_kernels()) {
      EXPECT_TRUE(all_close(run_kernel(*kernel, x, w), int8_reference(x, w), {.rel = 1e-6}))
          << kernel->name << " " << name(type);
    }
  }
}

// -128 occurs in files of other quantizers; sums at the largest magnitudes must not saturate.
TEST(Int8Kernels, TakeExtremeValues) {
  const int64_t n_in = 512;
  TestTensor x({2, n_in}), q8({4, n_in}, DType::q8_0), q4({4, n_in}, DType::q4_0);
  for (int64_t i = 0; i < n_in; ++i) {
    x.as()[i] = 127.0f;
    x.as()[n_in + i] = i % 2 == 0 ? -127.0f : 127.0f;
  }
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t b = 0; b < n_in / kBlockSize; ++b) {
      BlockQ8_0& block8 = q8.as<BlockQ8_0>()[r * n_in / kBlockSize + b];
      BlockQ4_0& block4 = q4.as<BlockQ4_0>()[r * n_in / kBlockSize + b];
      block8.d = block4.d = to_f16(1.0f);
      for (int i = 0; i < kBlockSize; ++i) {
        const std::array<int, 4> values = {-128, 127, i % 2 == 0 ? -128 : 127, 0};
        block8.qs[i] = static_cast<int8_t>(values[static_cast<size_t>(r)]);
      }
      for (uint8_t& nibbles : block4.qs) {
        const std::array<int, 4> values = {0x00, 0xff, 0x0f, 0x88};
        nibbles = static_cast<uint8_t>(values[static_cast<size_t>(r)]);
      }
    }
  }
  for (const cpu::GemvKernel* kernel : int8_kernels()) {
    for (const TestTensor* w : {&q8, &q4}) {
      EXPECT_TRUE(all_close(run_kernel(*kernel, x, *w), int8_reference(x, *w), {.rel = 1e-6}))
          << kernel->name;
    }
  }
}

TEST(Int8Kernels, ZerosStayZeroAndNanShows) {
  const int64_t n_in = 512;
  TestTensor x({3, n_in});
  x.as()[n_in + 300] = std::numeric_limits<float>::quiet_NaN();
  x.as()[2 * n_in + 300] = std::numeric_limits<float>::infinity();
  for (const cpu::GemvKernel* kernel : int8_kernels()) {
    for (const DType type : block_types()) {
      const std::vector<float> sums = run_kernel(*kernel, x, random_tensor({1, n_in}, 2, type));
      EXPECT_EQ(sums[0], 0.0f) << kernel->name;
      EXPECT_TRUE(std::isnan(sums[1])) << kernel->name << " gave " << sums[1];
      EXPECT_FALSE(std::isfinite(sums[2])) << kernel->name << " gave " << sums[2];
    }
  }
}

TEST(Bf16Kernel, MultipliesRoundedActivationsExactly) {
  const cpu::GemvKernel* kernel = cpu::gemv_bf16();
  if (kernel == nullptr) GTEST_SKIP() << "this processor has no bf16 products";
  for (const int64_t n_in : {1, 31, 32, 100, 256, 300, 1024}) {
    for (int64_t n = 1; n <= cpu::kGemvMaxRows; ++n) {
      const TestTensor x = random_tensor({n, n_in}, 1),
                       w = random_tensor({5, n_in}, 2, DType::bf16);
      TestTensor expected({n, 5});
      ops::project(*make_ref(), x.to(DType::bf16).to(DType::f32),
                   std::array{Projection{.w = w, .bias = {}, .out = expected}});
      EXPECT_TRUE(all_close(run_kernel(*kernel, x, w), expected.values(), f32_tolerance(n_in)))
          << "n_in " << n_in << " n " << n;
    }
  }
}

// Every Highway target that this machine runs.
TEST(Project, EveryTargetEqualsReference) {
  const auto ref = make_ref(), cpu = make_cpu(2, Compute::f32);
  const int64_t all = hwy::SupportedTargets();
  for (int64_t rest = all; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    for (const DType type : kWeightTypes) {
      const int64_t n_in = columns(type, 288);
      const TestTensor x = random_tensor({3, n_in}, 1), w = random_tensor({9, n_in}, 2, type);
      const TestTensor start({3, 9});
      EXPECT_TRUE(all_close(project_with(*cpu, x, w, {}, start, false),
                            project_with(*ref, x, w, {}, start, false), f32_tolerance(n_in)))
          << hwy::TargetName(target) << " " << name(type);
      if (block_size(type) > 1) {
        EXPECT_TRUE(all_close(run_kernel(cpu::gemv_int8_portable(), x, w), int8_reference(x, w),
                              f32_tolerance(n_in)))
            << hwy::TargetName(target) << " " << name(type);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace snapkv::test
