// SPDX-License-Identifier: MIT
// Kernels of the cpu backend that op_test.cpp does not reach: kernels that this processor would not
// choose, and arguments that ops never pass.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/products/few_rows/gemv_interleaved.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/ops.h"
#include "format/block_types.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

/// A number of columns, rounded up to whole blocks of the type.
int64_t columns(DType type, int64_t n_in) {
  return (n_in + block_size(type) - 1) / block_size(type) * block_size(type);
}

// Sums of n_in products of normal(0, 1) values have a magnitude of sqrt(n_in). f32 sums in another
// order than the reference's f64 sums differ by about that times a few 1e-7.
Tolerance f32_tolerance(int64_t n_in) {
  return {.abs = 2e-6 * std::sqrt(static_cast<double>(n_in)) + 1e-6, .rel = 2e-6};
}

// Rows also come from files. With VNNI, scales that rows of finite values never have take another
// path than the others.
TEST(DecodeSplit, TakesAnyScaleOfQ8) {
  const int n_rows = 70, n_group = 5;
  for (const int head_dim : {64, 128, 256}) {
    SCOPED_TRACE(head_dim);
    const TestTensor k = random_tensor({n_rows, head_dim}, 1, DType::q8_0);
    const TestTensor v = random_tensor({n_rows, head_dim}, 2, DType::q8_0);
    const TestTensor q = random_tensor({1, n_group, head_dim}, 3);
    const auto attend = [&](const TestTensor& values) {
      TestTensor out({1, n_group, head_dim});
      const std::array heads = {HeadRows{k.data(), values.data(), n_rows}};
      const cpu::CpuContext ctx{.n_threads = 2};
      cpu::attention_decode(ctx, {q, heads, DType::q8_0, 0.125f, out, {}});
      return out.values();
    };
    const std::vector<float> expected = attend(v);

    TestTensor negative = v;
    BlockQ8_0& block = negative.as<BlockQ8_0>()[3 * head_dim / kBlockSize];
    block.d.bits ^= 0x8000;
    for (int8_t& level : block.qs) level = static_cast<int8_t>(-level);
    EXPECT_TRUE(all_close(attend(negative), expected, {.abs = 1e-4, .rel = 4e-4}));

    TestTensor infinite = v;
    infinite.as<BlockQ8_0>()[0].d.bits = 0x7c00;
    EXPECT_FALSE(std::isfinite(attend(infinite)[0]));
  }
}

// The kernels themselves accept rows at any distance.
TEST(StridedRows, OfProjections) {
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

// The middle third of each row, as after a fused projection.
TEST(StridedRows, OfStoredRows) {
  const TestTensor wide = random_tensor({6, 2, 3 * 64}, 2);
  Tensor src = wide;
  src.data = wide.as() + 64;
  src.shape[2] = 64;
  TestTensor dense({6, 2, 64});
  for (int64_t i = 0; i < 12; ++i) {
    std::memcpy(dense.as() + i * 64, src.at<float>(i / 2, i % 2), 64 * sizeof(float));
  }
  const TestTensor actual({2, 6, 64}, DType::f16), expected({2, 6, 64}, DType::f16);
  const auto heads = [](const TestTensor& t) {
    return std::array{t.view().at<void>(0), t.view().at<void>(1)};
  };
  cpu::store_rows({.n_threads = 2}, src, DType::f16, heads(actual));
  cpu::store_rows({.n_threads = 2}, dense, DType::f16, heads(expected));
  EXPECT_EQ(actual.values(), expected.values());
}

// ---------------------------------------------------------------- kernel variants

std::vector<const cpu::GemvKernel*> int8_kernels() {
  std::vector<const cpu::GemvKernel*> kernels = {&cpu::gemv_int8_portable()};
#if defined(__x86_64__)
  if (cpu::has(cpu::CpuTarget::avx2)) {
    kernels.insert(kernels.end(), {&cpu::gemv_int8_avx2(), &cpu::gemv_int8_avx2_nibbles(),
                                   &cpu::gemv_int8_avx2_k(), &cpu::gemv_interleaved_avx2()});
  }
  if (cpu::has(cpu::CpuTarget::avx_vnni)) {
    kernels.insert(kernels.end(),
                   {&cpu::gemv_int8_avx_vnni(), &cpu::gemv_int8_avx_vnni_nibbles(),
                    &cpu::gemv_int8_avx_vnni_k(), &cpu::gemv_interleaved_avx_vnni()});
  }
  if (cpu::has(cpu::CpuTarget::avx512_vnni)) {
    kernels.insert(kernels.end(), {&cpu::gemv_int8_vnni(), &cpu::gemv_interleaved_vnni()});
  }
#endif
  return kernels;
}

/// Whether the kernel has the type; not every kernel has all.
bool has(const cpu::GemvKernel& kernel, DType type) { return kernel.function(type) != nullptr; }

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

/// Activations rounded to 8 bits, with one scale for each 32 values.
std::vector<float> rounded_blocks(std::vector<float> x) {
  for (size_t b = 0; b < x.size(); b += kBlockSize) {
    float max = 0;
    for (size_t i = b; i < b + kBlockSize; ++i) max = std::max(max, std::abs(x[i]));
    const float inverse = max > 0 ? 127.0f / max : 0.0f;
    for (size_t i = b; i < b + kBlockSize; ++i) {
      x[i] = std::nearbyint(x[i] * inverse) * (max / 127.0f);
    }
  }
  return x;
}

/// The same with scales that are multiples of 1 / 63 of the largest value among 256.
std::vector<float> rounded_units(std::vector<float> x) {
  for (size_t u = 0; u < x.size(); u += kSuperblockSize) {
    const auto max_of = [&](size_t begin, size_t end) {
      float max = 0;
      for (size_t i = begin; i < end; ++i) max = std::max(max, std::abs(x[i]));
      return max;
    };
    const float max = max_of(u, u + kSuperblockSize);
    if (max == 0) continue;
    for (size_t b = u; b < u + kSuperblockSize; b += kBlockSize) {
      const float m = std::max(1.0f, std::ceil(max_of(b, b + kBlockSize) / max * 63));
      const float inverse = 127.0f * 63 / max / m;
      for (size_t i = b; i < b + kBlockSize; ++i) {
        x[i] = std::nearbyint(x[i] * inverse) * (m * (max / (127.0f * 63)));
      }
    }
  }
  return x;
}

/// The results that the kernel must compute: activations rounded as above, sums in f64.
std::vector<float> int8_reference(const cpu::GemvKernel& kernel, const TestTensor& x,
                                  const TestTensor& w) {
  const int64_t n = x.view().shape[0], n_in = x.view().shape[1], n_out = w.view().shape[0];
  const bool by_unit = std::string_view(kernel.name).find("superblocks") != std::string_view::npos;
  const std::vector<float> rounded =
      by_unit ? rounded_units(x.values()) : rounded_blocks(x.values());
  const std::vector<float> weights = w.values();
  std::vector<float> out;
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t o = 0; o < n_out; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < n_in; ++i) {
        sum += static_cast<double>(rounded[t * n_in + i]) * weights[o * n_in + i];
      }
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

TEST(Int8Kernels, MultiplyRoundedActivationsExactly) {
  for (const cpu::GemvKernel* kernel : int8_kernels()) {
    for (const DType type : block_types()) {
      if (!has(*kernel, type)) continue;
      for (const int64_t n_values : {32, 64, 224, 256, 288, 1024, 1152}) {
        const int64_t n_in = columns(type, n_values);
        for (int64_t n = 1; n <= cpu::kGemvMaxRows; ++n) {
          const TestTensor x = random_tensor({n, n_in}, 1);
          const TestTensor w = random_tensor({5, n_in}, 2, type);
          EXPECT_TRUE(all_close(run_kernel(*kernel, x, w), int8_reference(*kernel, x, w),
                                f32_tolerance(n_in)))
              << kernel->name << " " << name(type) << " n_in " << n_in << " n " << n;
        }
      }
    }
  }
}

// All bits set and all bits clear: the largest levels, scales and minima, with activations of
// +-127.
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
        if (type == DType::q6_k) {  // 0xff makes scales of -1; then the largest, of either sign
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
      if (!has(*kernel, type)) continue;
      EXPECT_TRUE(
          all_close(run_kernel(*kernel, x, w), int8_reference(*kernel, x, w), {.rel = 1e-6}))
          << kernel->name << " " << name(type);
    }
  }
}

// The largest levels of either sign (-128 occurs in files of other quantizers): sums of the largest
// magnitudes must not saturate.
TEST(Int8Kernels, TakeExtremeValues) {
  constexpr uint8_t kPatterns[] = {0x00, 0xff, 0x0f, 0xf0, 0x88, 0x80, 0x7f};
  const int64_t n_in = 512;
  TestTensor x({2, n_in});
  for (int64_t i = 0; i < n_in; ++i) {
    x.as()[i] = 127.0f;
    x.as()[n_in + i] = i % 2 == 0 ? -127.0f : 127.0f;
  }
  for (const DType type : block_types()) {
    if (block_size(type) != kBlockSize) continue;
    const TestTensor w({std::ssize(kPatterns), n_in}, type);
    for (int64_t r = 0; r < std::ssize(kPatterns); ++r) {
      char* row = w.view().at<char>(r);
      std::memset(row, kPatterns[r], w.view().stride[0]);
      for (int64_t b = 0; b < n_in / kBlockSize; ++b) {  // every block begins with its scale
        const f16_t one = to_f16(1.0f);
        std::memcpy(row + b * block_bytes(type), &one, sizeof(one));
      }
    }
    for (const cpu::GemvKernel* kernel : int8_kernels()) {
      if (!has(*kernel, type)) continue;
      EXPECT_TRUE(
          all_close(run_kernel(*kernel, x, w), int8_reference(*kernel, x, w), {.rel = 1e-6}))
          << kernel->name << " " << name(type);
    }
  }
}

// Files of other quantizers have bytes that ours never writes.
TEST(Int8Kernels, TakeAnyBytesOfCodebooks) {
  const int64_t n_in = 1024;
  const TestTensor x = random_tensor({4, n_in}, 1);
  for (const DType type : block_types()) {
    if (!has_codebook(type)) continue;
    const TestTensor w({5, n_in}, type);
    std::minstd_rand random(7);
    for (int64_t r = 0; r < 5; ++r) {
      char* row = w.view().at<char>(r);
      for (int64_t i = 0; i < w.view().stride[0]; ++i) row[i] = static_cast<char>(random() >> 8);
      for (int64_t b = 0; b < n_in / kSuperblockSize; ++b) {
        visit_weight_type(type, [&](auto t) {
          char* block = row + b * block_bytes(t.dtype);
          if constexpr (t.dtype == DType::iq1_m) {  // the highest four bits of four words
            auto& scales = reinterpret_cast<BlockIQ1_M*>(block)->scales;
            for (uint16_t& word : scales) word &= 0xfff;
            scales[3] |= 0x2000;
          } else if constexpr (kHasF16Scale<t.dtype>) {
            const f16_t d = to_f16(0.001f);
            std::memcpy(block + kScaleAt<t.dtype>, &d, sizeof(d));
          }
        });
      }
    }
    for (const cpu::GemvKernel* kernel : int8_kernels()) {
      if (!has(*kernel, type)) continue;
      EXPECT_TRUE(all_close(run_kernel(*kernel, x, w), int8_reference(*kernel, x, w),
                            {.abs = 5e-5, .rel = 2e-6}))
          << kernel->name << " " << name(type);
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
      if (!has(*kernel, type)) continue;
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

TEST(Int8Kernels, PortableOnEveryInstructionSet) {
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    for (const DType type : block_types()) {
      if (!has(cpu::gemv_int8_portable(), type)) continue;
      const int64_t n_in = columns(type, 288);
      const TestTensor x = random_tensor({3, n_in}, 1), w = random_tensor({9, n_in}, 2, type);
      EXPECT_TRUE(all_close(run_kernel(cpu::gemv_int8_portable(), x, w),
                            int8_reference(cpu::gemv_int8_portable(), x, w), f32_tolerance(n_in)))
          << hwy::TargetName(target) << " " << name(type);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace snapkv::test
