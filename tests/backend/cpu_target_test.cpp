// SPDX-License-Identifier: MIT
// set_cpu_target() and SNAPKV_CPU_TARGET. They settle the target for the whole process, so each
// case runs in its own process.
#include "backend/cpu/target/cpu_target.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <dnnl.hpp>
#include <functional>

#include "backend/backend.h"
#include "backend/cpu/products/byte_products.h"
#include "base/error.h"
#include "snapkv/compute.h"

namespace snapkv::test {
namespace {

using cpu::CpuTarget;

bool present(std::string_view name) {
  const auto names = cpu_targets();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The message of the usage error that f throws.
std::string usage_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() == ErrorCode::kUsage ? e.what() : "another code";
  }
  return "no error";
}

/// Runs f in a process of its own; f returns whether everything was as expected.
void expect_true_in_child(const std::function<bool()>& f) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(f() ? 0 : 1), testing::ExitedWithCode(0), "");
}

class CpuTargetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SNAPKV_CPU_TARGET") != nullptr) GTEST_SKIP() << "it is settled already";
  }
};

TEST_F(CpuTargetTest, ListsWhatTheProcessorHas) {
  const auto names = cpu_targets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "auto");
  const bool skips_one = cpu::cpu_target() > CpuTarget::avx_vnni && !present("avx-vnni");
  EXPECT_EQ(names.size() + skips_one, 1 + static_cast<size_t>(cpu::cpu_target()));
  EXPECT_EQ(cpu::has(CpuTarget::avx_vnni), present("avx-vnni"));
}

TEST_F(CpuTargetTest, RefusesWhatTheProcessorHasNot) {
  const std::string message = usage_error([] { set_cpu_target("avx1024"); });
  EXPECT_NE(message.find("'avx1024'"), std::string::npos) << message;
  EXPECT_NE(message.find("auto"), std::string::npos) << message;
  if (!present("amx")) {
    EXPECT_NE(usage_error([] { set_cpu_target("amx"); }).find("this processor has: auto"),
              std::string::npos);
  }
  expect_true_in_child([] {
    setenv("SNAPKV_CPU_TARGET", "avx1024", 1);
    return usage_error([] { Backend::make({}); }).find("SNAPKV_CPU_TARGET is 'avx1024'") == 0;
  });
}

TEST_F(CpuTargetTest, IsSettledOnce) {
  if (!present("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  expect_true_in_child([] {
    set_cpu_target("sse4");
    set_cpu_target("sse4");
    return usage_error([] { set_cpu_target("avx2"); }).find("it is sse4") != std::string::npos;
  });
  expect_true_in_child([] {  // the first backend also settles the target
    Backend::make({});
    set_cpu_target("auto");
    return usage_error([] { set_cpu_target("sse4"); }).find("can't become sse4") !=
           std::string::npos;
  });
  expect_true_in_child([] {  // for a program that has used oneDNN itself
    dnnl::get_effective_cpu_isa();
    return usage_error([] { set_cpu_target("sse4"); }).find("oneDNN has been used") !=
           std::string::npos;
  });
}

bool is_restricted_to_avx2() {
  const auto backend = Backend::make({.n_threads = 1});
#if defined(__x86_64__)
  if ((hwy::SupportedTargets() & (HWY_AVX2 - 1)) != 0) return false;
#endif
  return cpu::cpu_target() == CpuTarget::avx2 && !cpu::has(CpuTarget::avx512) &&
         dnnl::get_effective_cpu_isa() <= dnnl::cpu_isa::avx2 &&
         backend->compute_dtype() == DType::f32 && backend->rounds_activations() &&
         cpu::byte_products(Compute::automatic) == cpu::ByteProducts::avx2 &&
         backend->products(DType::q4_0).packed_in_bytes &&
         backend->description().find("cpu (avx2") == 0;
}

TEST_F(CpuTargetTest, RestrictsKernelsAndLibraries) {
  if (!present("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  expect_true_in_child([] {
    set_cpu_target("avx2");
    return is_restricted_to_avx2();
  });
  expect_true_in_child([] {
    setenv("SNAPKV_CPU_TARGET", "avx2", 1);
    return is_restricted_to_avx2();
  });
  expect_true_in_child([] {  // the call takes precedence
    setenv("SNAPKV_CPU_TARGET", "sse4", 1);
    set_cpu_target("avx2");
    return is_restricted_to_avx2();
  });
}

TEST_F(CpuTargetTest, AvxVnniHasNoAvx512) {
  if (!present("avx-vnni")) GTEST_SKIP() << "this processor has no AVX-VNNI";
  expect_true_in_child([] {
    set_cpu_target("avx-vnni");
    const auto backend = Backend::make({.n_threads = 1});
    return cpu::has(CpuTarget::avx_vnni) && !cpu::has(CpuTarget::avx512) &&
           backend->compute_dtype() == DType::f32 && backend->rounds_activations() &&
           cpu::byte_products(Compute::automatic) == cpu::ByteProducts::avx_vnni &&
           backend->description().find("cpu (avx-vnni") == 0;
  });
}

TEST_F(CpuTargetTest, F32RoundsNoActivations) {
  expect_true_in_child([] {
    const auto backend = Backend::make({.n_threads = 1, .compute = Compute::f32});
    return backend->compute_dtype() == DType::f32 && !backend->rounds_activations() &&
           cpu::byte_products(Compute::f32) == cpu::ByteProducts::none &&
           !backend->products(DType::q4_0).packed_in_bytes;
  });
}

TEST_F(CpuTargetTest, Avx512WithoutBf16ComputesInF32) {
  if (!present("avx512")) GTEST_SKIP() << "this processor has no AVX-512";
  expect_true_in_child([] {
    set_cpu_target("avx512");
    return Backend::make({.n_threads = 1})->compute_dtype() == DType::f32 &&
           !cpu::has(CpuTarget::avx512_vnni) &&
           dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core;
  });
}

}  // namespace
}  // namespace snapkv::test
