// SPDX-License-Identifier: MIT
// pack(), project_packed(): every weight type against ref, any number of threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <cstring>
#include <tuple>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/gemv.h"
#include "backend/cpu/pack.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

constexpr std::array kWeightTypes = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                     DType::q4_0, DType::q4_k, DType::q5_k, DType::q6_k};

// The library adds all products of a sum one after the other: each of n_in partial sums of
// magnitude sqrt(i) is rounded by up to 2^-24, a random walk of 0.25e-7 * n_in; five times that.
Tolerance library_tolerance(int64_t n_in) {
  return {.abs = 1.5e-7 * static_cast<double>(n_in) + 1e-6, .rel = 2e-6};
}

struct Shape {
  int64_t n, n_out, n_in;
};

bool runs(Compute compute) { return compute != Compute::bf16 || cpu::multiplies_bf16(); }

TestTensor packed_product(Backend& backend, const TestTensor& x, const PackedWeight& packed,
                          const TestTensor& bias, const TestTensor& start, bool accumulate) {
  TestTensor out = start;
  ops::project_packed(backend, x, packed, bias.numel() > 0 ? bias.view() : Tensor(), out,
                      accumulate);
  return out;
}

class PackedTest : public testing::TestWithParam<std::tuple<DType, Compute>> {};

// The bf16 product is compared with the reference's on operands rounded to bf16: what remains is
// f32 summation order (and, with bf16 output, its rounding by 2^-9).
TEST_P(PackedTest, EqualsReference) {
  const auto [type, compute] = GetParam();
  if (!runs(compute)) GTEST_SKIP() << "this processor multiplies no bf16";
  const DType compute_type = compute == Compute::bf16 ? DType::bf16 : DType::f32;
  const auto ref = make_ref(), cpu = make_cpu(2, compute);
  PackedWeight packed, packed_ref;  // reused: shrinking and growing
  for (const auto& [n_out, n_values] :
       {std::pair{130, 544}, {7, 64}, {1, 32}, {64, 256}, {193, 1056}, {48, 96}}) {
    const int64_t n_in = (n_values + block_size(type) - 1) / block_size(type) * block_size(type);
    const TestTensor w = random_tensor({n_out, n_in}, 2, type);
    ops::pack(*cpu, w, packed);
    ops::pack(*ref, w.to(compute_type), packed_ref);
    const TestTensor bias = random_tensor({n_out}, 3);
    for (const int64_t n : {0, 1, 2, 7, 33, 100}) {
      const TestTensor x = random_tensor({n, n_in}, 1, compute_type), x_ref = x.to(DType::f32);
      for (const bool accumulate : {false, true}) {
        const TestTensor start = random_tensor({n, n_out}, 4);
        const TestTensor& b = accumulate ? TestTensor() : bias;
        EXPECT_TRUE(all_close(packed_product(*cpu, x, packed, b, start, accumulate),
                              packed_product(*ref, x_ref, packed_ref, b, start, accumulate),
                              library_tolerance(n_in)))
            << name(type) << " n " << n << " n_out " << n_out << " n_in " << n_in;
      }
      if (compute == Compute::bf16) {
        const TestTensor start({n, n_out}, DType::bf16), start_ref({n, n_out});
        EXPECT_TRUE(all_close(packed_product(*cpu, x, packed, {}, start, false).to(DType::f32),
                              packed_product(*ref, x_ref, packed_ref, {}, start_ref, false),
                              {.abs = library_tolerance(n_in).abs, .rel = 0x1p-8}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackedTest,
                         testing::Combine(testing::ValuesIn(kWeightTypes),
                                          testing::Values(Compute::f32, Compute::bf16)),
                         [](const auto& p) {
                           return std::string(name(std::get<0>(p.param))) +
                                  (std::get<1>(p.param) == Compute::f32 ? "_f32" : "_bf16");
                         });

TEST(Packed, TakesOddColumnsOfPlainTypes) {
  const auto ref = make_ref(), cpu = make_cpu(2, Compute::f32);
  for (const int64_t n_in : {1, 15, 33, 300}) {
    const TestTensor w = random_tensor({70, n_in}, 2, DType::f16), x = random_tensor({9, n_in}, 1);
    PackedWeight packed, packed_ref;
    ops::pack(*cpu, w, packed);
    ops::pack(*ref, w, packed_ref);
    EXPECT_TRUE(all_close(packed_product(*cpu, x, packed, {}, TestTensor({9, 70}), false),
                          packed_product(*ref, x, packed_ref, {}, TestTensor({9, 70}), false),
                          library_tolerance(n_in)))
        << n_in;
  }
}

// Both variants write the same bytes (up to the rounding of subnormals), padding included.
TEST(Packed, VariantsAgree) {
#if defined(__x86_64__)
  if (!cpu::has_avx512_bf16()) GTEST_SKIP() << "this processor runs one variant only";
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const DType type : kWeightTypes) {
      for (const auto& [n_out, n_in] :
           {std::pair{1, 32}, {64, 64}, {93, 288}, {130, 96}, {75, 768}}) {
        if (n_in % block_size(type) != 0) continue;
        const cpu::CpuContext ctx{.n_threads = 2, .compute = compute};
        const TestTensor w = random_tensor({n_out, n_in}, 1, type);
        const size_t bytes = cpu::packed_bytes(compute, n_out, n_in);
        const Buffer expected = Buffer::host(bytes, "test"), actual = Buffer::host(bytes, "test");
        std::memset(actual.data(), 0x55, bytes);
        std::memset(expected.data(), 0xaa, bytes);
        cpu::pack_panels_portable(ctx, w, expected.data());
        cpu::pack_panels_avx512(ctx, w, actual.data());
        EXPECT_EQ(std::memcmp(actual.data(), expected.data(), bytes), 0)
            << name(type) << " to " << name(compute) << " " << n_out << " x " << n_in;
      }
    }
  }
#else
  GTEST_SKIP() << "this processor runs one variant only";
#endif
}

// Neither the packed bytes nor the products may depend on the number of threads: small products
// with long sums are those that a library might split along the sum.
TEST(Packed, DoesNotDependOnThreads) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    for (const auto& [n, n_out, n_in] :
         {Shape{1, 64, 8192}, Shape{4, 64, 8192}, Shape{64, 64, 8192}, Shape{33, 512, 2048},
          Shape{100, 200, 544}}) {
      const TestTensor w = random_tensor({n_out, n_in}, 2, DType::q8_0);
      const TestTensor x =
          random_tensor({n, n_in}, 1, compute == Compute::f32 ? DType::f32 : DType::bf16);
      std::vector<float> expected;
      for (const int n_threads : {1, 2, 3, 8}) {
        const auto cpu = make_cpu(n_threads, compute);
        PackedWeight packed;
        ops::pack(*cpu, w, packed);
        const auto out =
            packed_product(*cpu, x, packed, {}, TestTensor({n, n_out}), false).values();
        if (expected.empty()) expected = out;
        EXPECT_EQ(out, expected) << n << " x " << n_out << " x " << n_in << " threads "
                                 << n_threads;
      }
    }
  }
}

// A matrix packed again into the same object replaces the first, and a smaller one needs no new
// memory.
TEST(Packed, ReusesItsMemory) {
  const auto cpu = make_cpu(2, Compute::f32);
  PackedWeight packed;
  ops::pack(*cpu, random_tensor({128, 256}, 1), packed);
  const void* memory = packed.storage.data();
  ops::pack(*cpu, random_tensor({64, 256}, 2), packed);
  EXPECT_EQ(packed.storage.data(), memory);
  EXPECT_EQ(packed.n_out, 64);
}

// The setting of the calling thread belongs to the program, whose own regions would change with it.
TEST(OpenMpSetting, StaysTheCallers) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const auto cpu = make_cpu(2);
  EXPECT_EQ(omp_get_max_threads(), 3);
  PackedWeight packed;
  ops::pack(*cpu, random_tensor({130, 544}, 2), packed);
  EXPECT_EQ(omp_get_max_threads(), 3);
  TestTensor out = random_tensor({100, 130}, 3);
  ops::project_packed(*cpu, random_tensor({100, 544}, 1), packed, {}, out, false);
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace snapkv::test
