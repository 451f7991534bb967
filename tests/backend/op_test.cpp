// SPDX-License-Identifier: MIT
// Every op on every backend against ref: the cases of op_cases.h.
//
//   cpu       f32, on every instruction set that the kernels are compiled for and the processor
//             supports; 1 and 7 threads must give the same bits as 2
//   cpu_bf16  bf16, emulated on every instruction set, and native if the processor has it
//   cpu_bytes packed products with activations rounded to 8 bits, by every means that the processor
//             has
//   cuda      f32 and bf16, on the device in a build with CUDA, otherwise on the host
//             (tests/support/cuda_on_host), there with the threads of a block in both orders
//   partial   f32, on a device that has none of the ops: the reference computes them, through
//             copies
//
// Large cases run only on the best instruction set and on a real CUDA device.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/cpu_target.h"
#include "base/error.h"
#include "tests/backend/op_cases.h"
#include "tests/support/toy_backend.h"
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
#include "tests/support/cuda_on_host/host_device.h"
#include "tests/support/cuda_on_host/register_on_host.h"
#endif

namespace snapkv::test {
namespace {

#ifdef SNAPKV_CUDA_ON_HOST_TESTS
constexpr bool kEmulated = true;
void reverse_threads(bool reverse) { cuda_on_host::reverse_threads(reverse); }
#else
constexpr bool kEmulated = false;
void reverse_threads(bool) {}
#endif

testing::AssertionResult same_bits(const Results& a, const Results& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].data(), b[i].data(), a[i].bytes()) != 0) {
      return testing::AssertionFailure()
             << "result " << i
             << ": other bits; as values: " << all_close(a[i], b[i], {}).message();
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult within(const Results& actual, const Results& expected, const Bound& b) {
  if (b.bits) return same_bits(actual, expected);
  if (actual.size() != expected.size()) return testing::AssertionFailure() << "number of results";
  for (size_t i = 0; i < actual.size(); ++i) {
    if (b.norm > 0) {
      const double error = relative_error(actual[i], expected[i]);
      if (error <= b.norm) continue;
      return testing::AssertionFailure()
             << "result " << i << ": relative error " << error << ", allowed " << b.norm;
    }
    const auto close = all_close(actual[i].values(), expected[i].values(), b.each);
    if (!close) return close;
  }
  return testing::AssertionSuccess();
}

enum class Kind { cpu, cpu_bf16, cpu_bytes, cuda, partial };
const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"cpu", "cpu_bf16", "cpu_bytes", "cuda", "partial"};
  return kNames[static_cast<int>(kind)];
}
void PrintTo(Kind kind, std::ostream* out) { *out << name_of(kind); }

class OpTest : public testing::TestWithParam<std::tuple<OpRow, Kind>> {
 protected:
  const OpCases cases_ = std::get<0>(GetParam()).cases();

  /// The expected results; they are kept, since several backends are compared with them.
  const Results& expected(const OpCase& c, DType compute) {
    const auto [at, is_new] = expected_.try_emplace({&c, compute});
    if (is_new) at->second = c.run({*ref_, compute});
    return at->second;
  }

  /// The results of one backend, for comparison with another; empty for cases that did not run.
  using AllResults = std::vector<Results>;

  AllResults check(Backend& backend, const std::string& what, bool large) {
    const Place place{backend, backend.compute_dtype()};
    AllResults all;
    for (const OpCase& c : cases_) {
      Results& actual = all.emplace_back();
      if (!c.runs_on(place) || (c.large && !large)) continue;
      SCOPED_TRACE(c.name + " on " + what);
      actual = c.run(place);
      EXPECT_TRUE(within(actual, expected(c, place.compute), c.bound(place)));
      if (!c.same) continue;
      EXPECT_TRUE(same_bits(c.same(place), actual)) << "the other run";
    }
    return all;
  }

  /// Expects `backend` to give these bits in all cases.
  void expect_equal(Backend& backend, const AllResults& all, const std::string& what) {
    const Place place{backend, backend.compute_dtype()};
    ASSERT_EQ(all.size(), cases_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].empty()) continue;
      SCOPED_TRACE(cases_[i].name + " with " + what);
      EXPECT_TRUE(same_bits(cases_[i].run(place), all[i]));
    }
  }

  /// Calls f(name, whether it is the best) for each of Highway's instruction sets, the best one
  /// last.
  template <typename F>
  static void on_every_target(F f) {
    const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;  // their bits: the best is lowest
    for (int64_t rest = all; rest != 0;) {
      const int64_t target = std::bit_floor(static_cast<uint64_t>(rest));
      rest ^= target;
      hwy::SetSupportedTargetsForTest(target);
      f(hwy::TargetName(target), rest == 0);
    }
    hwy::SetSupportedTargetsForTest(0);
  }

  void check_cpu() {
    const auto two = make_cpu(2);
    AllResults best;
    on_every_target([&](const char* target, bool is_best) { best = check(*two, target, is_best); });
    for (const int n : {1, 7}) expect_equal(*make_cpu(n), best, fmt::format("{} threads", n));
  }

  void check_cpu_bf16() {
    const auto cases = std::get<0>(GetParam()).cases;
    if ((cases == pack_cases || cases == project_packed_cases || cases == project_experts_cases) &&
        !cpu::multiplies_bf16()) {
      GTEST_SKIP() << "this processor multiplies no bf16";
    }
    const auto make = [](int n_threads, bool native) {
      return cpu::make_backend(cpu::CpuContext{n_threads, DType::bf16, native});
    };
    const auto two = make(2, false);
    AllResults emulated;
    on_every_target(
        [&](const char* target, bool is_best) { emulated = check(*two, target, is_best); });
    for (const int n : {1, 7}) {
      expect_equal(*make(n, false), emulated, fmt::format("{} threads", n));
    }
    if (!cpu::has(cpu::CpuTarget::avx512_bf16)) return;
    const auto two_native = make(2, true);
    const AllResults native = check(*two_native, "native bf16", true);
    for (const int n : {1, 7}) {
      expect_equal(*make(n, true), native, fmt::format("{} threads, native bf16", n));
    }
    // The roundings are the same; only the order of sums differs, which now and then rounds a
    // probability the other way.
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (cases_[i].bound({*two_native, DType::bf16}).norm == 0) continue;
      SCOPED_TRACE(cases_[i].name + " native and emulated");
      EXPECT_TRUE(within(native[i], emulated[i], Bound::of_norm(1e-3)));
    }
  }

  void check_cpu_bytes() {
    struct Products {
      cpu::CpuTarget target;
      cpu::ByteProducts kind;
      const char* name;
    };
    const Products kProducts[] = {
        {cpu::CpuTarget::avx2, cpu::ByteProducts::avx2, "AVX2"},
        {cpu::CpuTarget::avx_vnni, cpu::ByteProducts::avx_vnni, "AVX-VNNI"},
        {cpu::CpuTarget::avx512_vnni, cpu::ByteProducts::avx512_vnni, "AVX-512 VNNI"}};
    if (!cpu::has(cpu::CpuTarget::avx2)) GTEST_SKIP() << "this processor has none of them";
    for (const Products& products : kProducts) {
      if (!cpu::has(products.target)) continue;
      for (const DType compute : {DType::f32, DType::bf16}) {
        if (compute == DType::bf16 && products.kind != cpu::ByteProducts::avx512_vnni) continue;
        if (compute == DType::bf16 && !cpu::multiplies_bf16()) continue;  // needed by other weights
        const auto make = [&](int n_threads) {
          return cpu::make_backend(cpu::CpuContext{
              n_threads, compute, cpu::has(cpu::CpuTarget::avx512_bf16), true, products.kind});
        };
        const AllResults two = check(*make(2), products.name, true);
        expect_equal(*make(3), two, fmt::format("{}, 3 threads", products.name));
      }
    }
  }

  void check_partial() {
    ToyBackend toy(/*has_norm=*/false);
    check(toy, "the reference, through copies", false);
  }

  void check_cuda() {
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
    register_on_host();
#endif
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      std::unique_ptr<Backend> backend;
      try {
        backend = Backend::make({.device = "cuda", .compute = compute});
      } catch (const Error& e) {
        if (kEmulated) throw;
        GTEST_SKIP() << "NOT TESTED: " << e.what();
      }
      const AllResults forward = check(*backend, "cuda", !kEmulated);
      // the kernels of both types are one template, so that one shows what depends on the order
      if (!kEmulated || compute == Compute::bf16) continue;
      reverse_threads(true);
      expect_equal(*backend, forward, "the threads of a block in reverse");
      reverse_threads(false);
    }
  }

 private:
  const std::unique_ptr<Backend> ref_ = make_ref();
  std::map<std::pair<const OpCase*, DType>, Results> expected_;
};

TEST_P(OpTest, GivesWhatRefGives) {
  switch (std::get<1>(GetParam())) {
    case Kind::cpu:
      return check_cpu();
    case Kind::cpu_bf16:
      return check_cpu_bf16();
    case Kind::cpu_bytes:
      return check_cpu_bytes();
    case Kind::cuda:
      return check_cuda();
    case Kind::partial:
      return check_partial();
  }
}

std::string name_of_test(const testing::TestParamInfo<std::tuple<OpRow, Kind>>& p) {
  return std::string(std::get<0>(p.param).op) + "_" + name_of(std::get<1>(p.param));
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest,
                         testing::Combine(testing::ValuesIn(kOps),
                                          testing::Values(Kind::cpu, Kind::cpu_bf16, Kind::cuda,
                                                          Kind::partial)),
                         name_of_test);
INSTANTIATE_TEST_SUITE_P(PackedOps, OpTest,
                         testing::Combine(testing::Values(OpRow{"pack", pack_cases},
                                                          OpRow{"project_packed",
                                                                project_packed_cases}),
                                          testing::Values(Kind::cpu_bytes)),
                         name_of_test);

}  // namespace
}  // namespace snapkv::test
