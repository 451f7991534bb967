// SPDX-License-Identifier: MIT
// pack() and project_packed() on the cpu: variants, threads, tiles, memory, OpenMP.
// (op_cases_linear.cpp compares them with ref.)
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/many_rows/product_tiling.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/weights/pack.h"
#include "backend/kernels.h"
#include "backend/ops.h"
#include "backend/registry.h"
#include "snapkv/log.h"
#include "tests/backend/op_test_util.h"
#include "tests/support/processor.h"

namespace snapkv::test {
namespace {

struct Shape {
  int64_t n, n_out, n_in;
};

TestTensor packed_product(Backend& backend, const TestTensor& x, const PackedWeight& packed,
                          const TestTensor& bias, const TestTensor& start, bool accumulate) {
  TestTensor out = start;
  ops::project_packed(backend, x, packed, bias.numel() > 0 ? bias.view() : Tensor(), out,
                      accumulate);
  return out;
}

// Both variants must write the same bytes (up to the rounding of subnormals), including padding.
TEST(Packed, VariantsAgree) {
#if defined(__x86_64__)
  if (!cpu::has(cpu::CpuTarget::avx512_bf16)) GTEST_SKIP() << "one variant only runs here";
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const DType type : kWeightTypes) {
      if (!cpu::packs_avx512(type)) continue;
      for (const auto& [n_out, n_in] :
           {std::pair{1, 32}, {64, 64}, {93, 288}, {130, 96}, {75, 768}}) {
        if (n_in % block_size(type) != 0) continue;
        const TestTensor w = random_tensor({n_out, n_in}, 1, type);
        const size_t bytes = cpu::packed_bytes(compute, n_out, n_in);
        const Buffer expected = Buffer::host(bytes, "test"), actual = Buffer::host(bytes, "test");
        const Buffer tile = Buffer::host(cpu::pack_panel_scratch(compute), "test");
        const cpu::PackedShape shape{compute, n_out, n_in, true};
        for (const cpu::PackTo to : {cpu::PackTo::memory, cpu::PackTo::caches}) {
          std::memset(actual.data(), 0x55, bytes);
          std::memset(expected.data(), 0xaa, bytes);
          for (int64_t p = 0; p < shape.n_panels(); ++p) {
            const auto at = [&](const Buffer& b) {
              return static_cast<char*>(b.data()) + p * shape.panel_bytes();
            };
            cpu::pack_panel_portable(compute, w, p, static_cast<char*>(tile.data()), at(expected));
            cpu::pack_panel_avx512(compute, w, p, to, at(actual));
          }
          EXPECT_EQ(std::memcmp(actual.data(), expected.data(), bytes), 0)
              << name(type) << " to " << name(compute) << " " << n_out << " x " << n_in;
        }
      }
    }
  }
#else
  GTEST_SKIP() << "this processor runs one variant only";
#endif
}

TEST(Packed, BytesDoNotDependOnThreads) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    for (const DType type : kWeightTypes) {
      const auto pack = [&](int n_threads) {
        const auto cpu = make_cpu(n_threads, compute);
        PackedWeight packed;
        ops::pack(*cpu, random_tensor({203, 768}, 2, type), packed);
        // In every layout, at least this much contains values.
        const char* begin = static_cast<const char*>(packed.storage.data());
        return std::vector<char>(begin, begin + 203 * row_bytes(cpu->compute_dtype(), 768));
      };
      const std::vector<char> expected = pack(1);
      for (const int n_threads : {2, 3, 7}) EXPECT_TRUE(pack(n_threads) == expected) << name(type);
    }
  }
}

/// Uniform values in [-1, 1), for matrices so large that random_tensor() would take longer than the
/// test.
TestTensor quick_tensor(const std::vector<int64_t>& shape, uint32_t seed, DType dtype) {
  std::vector<float> values(shape[0] * shape[1]);
  for (float& v : values) {
    seed = seed * 1664525u + 1013904223u;  // the generator of Numerical Recipes
    v = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return TestTensor(shape, values, dtype);
}

struct ProductCase {
  Shape shape;
  Compute compute;
};

/// The weights of a product, its input, and the values that it is added to.
struct ProductInputs {
  ProductInputs(const Shape& s, Compute compute)
      : type(compute == Compute::f32 ? DType::f32 : DType::bf16),
        w(quick_tensor({s.n_out, s.n_in}, 2, DType::bf16)),
        x(quick_tensor({s.n, s.n_in}, 1, type)),
        bias(random_tensor({s.n_out}, 3)),
        zero({s.n, s.n_out}),
        start(quick_tensor({s.n, s.n_out}, 4, DType::f32)) {}
  DType type;
  TestTensor w, x, bias, zero, start;
};

class SharedProductTest : public testing::TestWithParam<ProductCase> {};

// A library that divides a product among threads may split its sums, especially if the output is
// small and the sums are long; but on some processor it may happen for any shape.
TEST_P(SharedProductTest, DoesNotDependOnThreads) {
  const Shape& shape = GetParam().shape;
  const Compute compute = GetParam().compute;
  if (!runs(compute)) GTEST_SKIP() << "this processor multiplies no bf16";
  const ProductInputs in(shape, compute);
  PackedWeight packed;
  ops::pack(*make_cpu(2, compute), in.w, packed);
  std::vector<float> plain, with_bias, added;
  for (const int n_threads : {1, 2, 3, 4, 7}) {
    const auto cpu = make_cpu(n_threads, compute);
    const auto p = packed_product(*cpu, in.x, packed, {}, in.zero, false).values();
    const auto b = packed_product(*cpu, in.x, packed, in.bias, in.zero, false).values();
    const auto a = packed_product(*cpu, in.x, packed, {}, in.start, true).values();
    if (n_threads == 1) {
      plain = p, with_bias = b, added = a;
      EXPECT_NE(plain, in.zero.values());
    }
    EXPECT_TRUE(p == plain && b == with_bias && a == added) << n_threads << " threads";
  }
}

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    for (const Shape& shape :
         {Shape{1, 64, 8192}, Shape{4, 64, 8192}, Shape{64, 64, 8192}, Shape{16, 16, 16384},
          Shape{33, 512, 2048}, Shape{100, 200, 544}, Shape{1, 2048, 8192}, Shape{512, 2048, 2048},
          Shape{300, 1000, 1537}, Shape{512, 576, 576}, Shape{257, 1536, 576}}) {
      cases.push_back({shape, compute});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SharedProductTest, testing::ValuesIn(product_cases()),
                         [](const auto& p) {
                           const Shape& s = p.param.shape;
                           return std::to_string(s.n) + "x" + std::to_string(s.n_out) + "x" +
                                  std::to_string(s.n_in) +
                                  (p.param.compute == Compute::f32 ? "_f32" : "_bf16");
                         });

// Weights that are packed right before their product must give the same bits, however threads share
// the packing, in as much memory as plans say.
TEST_P(SharedProductTest, PackedAtUseIsTheSame) {
  const Shape& shape = GetParam().shape;
  const Compute compute = GetParam().compute;
  if (!runs(compute)) GTEST_SKIP() << "this processor multiplies no bf16";
  const ProductInputs in(shape, compute);
  const auto products = [&](int n_threads, PackWorkspace* workspace) {
    const auto cpu = make_cpu(n_threads, compute);
    PackedWeight packed;
    packed.workspace = workspace;
    ops::pack(*cpu, in.w, packed);
    EXPECT_EQ(static_cast<bool>(packed.storage), workspace == nullptr);
    return std::array{packed_product(*cpu, in.x, packed, {}, in.zero, false).values(),
                      packed_product(*cpu, in.x, packed, in.bias, in.zero, false).values(),
                      packed_product(*cpu, in.x, packed, {}, in.start, true).values()};
  };
  const auto expected = products(2, nullptr);
  for (const int n_threads : {1, 2, 3, 7, 16}) {
    PackWorkspace workspace;
    EXPECT_TRUE(products(n_threads, &workspace) == expected) << n_threads << " threads";
    EXPECT_GT(workspace.pack_seconds, 0.0);
    const auto planned =
        find_backend("cpu").plan({.device = "cpu", .compute = in.type, .n_threads = n_threads});
    Kernels& kernels = *planned->kernels_to_ask();
    PackedWeight packed;
    packed.workspace = &workspace;
    EXPECT_EQ(kernels.lay_out(in.w, in.type, packed), 0u);
    EXPECT_LE(workspace.memory.bytes(), kernels.pack_memory(shape.n, packed));
  }
}

// oneDNN is asked only for shapes for which it has fast products. (It does not report when it falls
// back to plain loops, which are a thousand times slower; TileProduct warns.)
TEST(Packed, NeverTakesTheLibrarysReferenceProduct) {
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, std::string_view message) {
    if (level == LogLevel::kWarn) warnings.emplace_back(message);
  });
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    const DType type = compute == Compute::f32 ? DType::f32 : DType::bf16;
    const auto cpu = make_cpu(2, compute);
    warnings.clear();  // of the warning that bf16 is emulated
    for (const auto& [n, n_out, n_in] :
         {Shape{1, 1, 1}, Shape{1, 7, 15}, Shape{513, 65, 33}, Shape{70, 1000, 2049},
          Shape{70, 1000, 1600}, Shape{16, 64, 8192}}) {
      PackedWeight packed;
      ops::pack(*cpu, quick_tensor({n_out, n_in}, 2, type), packed);
      for (const bool accumulate : {false, true}) {
        packed_product(*cpu, quick_tensor({n, n_in}, 1, type), packed, {}, TestTensor({n, n_out}),
                       accumulate);
      }
      packed_product(*cpu, quick_tensor({n, n_in}, 1, type), packed, random_tensor({n_out}, 3),
                     TestTensor({n, n_out}, type), false);
    }
    EXPECT_EQ(warnings, std::vector<std::string>());
  }
  set_log_sink({});
}

// Every column and row is in exactly one tile, panels stay whole, and all but tiny outputs give
// work to many threads.
TEST(Tiling, CoversTheOutput) {
  for (const bool panels : {false, true}) {
    for (const int64_t n : {1, 2, 31, 32, 33, 64, 100, 257, 512, 513, 2048}) {
      for (const int64_t n_out : {1, 7, 64, 65, 200, 576, 1000, 2048, 11008}) {
        for (const int64_t n_in : {32, 576, 1536, 2048, 8192}) {
          SCOPED_TRACE(testing::Message() << n << " x " << n_out << " x " << n_in);
          const cpu::Tiling t = cpu::choose_tiling(n, n_out, n_in, panels);
          EXPECT_TRUE(t.cols % cpu::kPanelRows == 0 || t.n_cols == 1);
          EXPECT_LT((t.n_rows - 1) * t.rows, n);
          EXPECT_GE(t.n_rows * t.rows, n);
          EXPECT_LT((t.n_cols - 1) * t.cols, n_out);
          EXPECT_GE(t.n_cols * t.cols, n_out);
          if (n_out >= cpu::kWantedTiles * cpu::kPanelRows) {
            EXPECT_GE(t.n_rows * t.n_cols, cpu::kWantedTiles / 2);
          }
          if (n >= 2 * cpu::kMinTileRows) {
            EXPECT_GE(t.n_rows * t.n_cols, 2);
          }
        }
      }
    }
  }
}

// Packing another matrix into the same object replaces the first; a smaller one needs no new
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

// The calling thread's setting belongs to the program, whose own parallel regions would change with
// it.
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
