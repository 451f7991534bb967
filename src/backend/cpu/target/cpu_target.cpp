// SPDX-License-Identifier: MIT
#include "backend/cpu/target/cpu_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/targets.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <span>
#include <string_view>

#include "backend/cpu/onednn.h"
#include "base/error.h"
#include "snapkv/compute.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace snapkv::cpu {
namespace {

constexpr const char* kAutomatic = "auto";
constexpr const char* kVariable = "SNAPKV_CPU_TARGET";

/// The properties of one CpuTarget.
struct Row {
  const char* name;
  int64_t highway;        // the best of Highway's targets that it includes
  dnnl::cpu_isa onednn;   // oneDNN's, likewise
  bool (*present)();      // given that the processor has the one before
  bool optional = false;  // later ones may be present without it
};

#if defined(__x86_64__)

#if defined(HWY_AVX3_ZEN4)
constexpr int64_t kHighwayBf16 = HWY_AVX3_ZEN4;
#else
constexpr int64_t kHighwayBf16 = HWY_AVX3_DL;
#endif

/// (Every processor with AVX2 has F16C, which Clang's builtin does not know.)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

/// Whether there are tiles with their bf16 and 8-bit products, and a system that saves their
/// registers. Uses cpuid, since Clang 14 does not know the names.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSavesRegisters = 1u << 27, kAmx = 1u << 22 | 1u << 24 | 1u << 25;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSavesRegisters) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmx) != kAmx) return false;
  constexpr unsigned kTiles = 1u << 17 | 1u << 18;
  unsigned saved = 0, high = 0;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  return (saved & kTiles) == kTiles;
}

/// Uses cpuid, since Clang 14 does not know the name.
bool has_avx_vnni() {
  static const bool result = [] {  // cpuid is slow in a virtual machine
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || a < 1) return false;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
  }();
  return result;
}

constexpr Row kTable[] = {
    {"sse4", HWY_SSE4, dnnl::cpu_isa::sse41, [] { return __builtin_cpu_supports("sse4.2") != 0; }},
    {"avx2", HWY_AVX2, dnnl::cpu_isa::avx2, has_avx2},
    {"avx-vnni", HWY_AVX2, dnnl::cpu_isa::avx2_vnni, has_avx_vnni, true},
    {"avx512", HWY_AVX3, dnnl::cpu_isa::avx512_core, has_avx512},
    {"avx512-vnni", HWY_AVX3_DL, dnnl::cpu_isa::avx512_core_vnni,
     [] { return __builtin_cpu_supports("avx512vnni") != 0; }},
    {"avx512-bf16", kHighwayBf16, dnnl::cpu_isa::avx512_core_bf16,
     [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
    {"amx", 1, kOnednnUnlimited, has_amx}};
constexpr std::span<const Row> kRows = kTable;  // [target - 1]

#else
constexpr std::span<const Row> kRows;
#endif

/// The best target that the processor has.
CpuTarget detected() {
  static const CpuTarget best = [] {
    int found = 0;
    for (int n = 0; n < std::ssize(kRows); ++n) {
      if (kRows[n].present()) {
        found = n + 1;
      } else if (!kRows[n].optional) {
        break;
      }
    }
    return static_cast<CpuTarget>(found);
  }();
  return best;
}

/// Whether the processor has `target`, which is at most detected().
bool is_present(CpuTarget target) {
  if (target == CpuTarget::baseline) return true;
  const Row& row = kRows[static_cast<int>(target) - 1];
  return !row.optional || row.present();
}

std::string_view name_of(CpuTarget target) {
  return target == CpuTarget::baseline ? "baseline" : kRows[static_cast<int>(target) - 1].name;
}

/// `source`: where the name comes from, for messages.
CpuTarget parse(std::string_view name, std::string_view source) {
  if (name == kAutomatic) return detected();
  for (int i = 0; i < std::ssize(kRows); ++i) {
    const auto target = static_cast<CpuTarget>(i + 1);
    if (name == kRows[i].name && target <= detected() && is_present(target)) return target;
  }
  fail(ErrorCode::kUsage, "{} is '{}'; it must be one of those that this processor has: {}", source,
       name, fmt::join(cpu_targets(), ", "));
}

void restrict_libraries(CpuTarget target) {
  const Row& row = kRows[static_cast<int>(target) - 1];
  if (dnnl::set_max_cpu_isa(row.onednn) != dnnl::status::success) {
    fail(ErrorCode::kUsage,
         "instructions can't be restricted to {}: oneDNN has been used in this process already",
         row.name);
  }
  hwy::DisableTargets(row.highway - 1);  // Highway's better targets are lower bits
}

constexpr int kOpen = -1;
std::atomic<int> settled = kOpen;  // a CpuTarget
std::mutex settling;

/// Call with `settling` locked.
void settle(std::string_view name, std::string_view source) {
  const CpuTarget target = parse(name, source);
  if (name != kAutomatic) restrict_libraries(target);
  settled = static_cast<int>(target);
}

}  // namespace

CpuTarget cpu_target() {
  if (settled == kOpen) {
    const std::lock_guard lock(settling);
    const char* variable = std::getenv(kVariable);
    const bool given = variable != nullptr && *variable != '\0';
    if (settled == kOpen) settle(given ? variable : kAutomatic, kVariable);
  }
  return static_cast<CpuTarget>(settled.load());
}

bool has(CpuTarget target) { return target <= cpu_target() && is_present(target); }

std::string cpu_target_description() {
  const CpuTarget target = cpu_target();
  if (kRows.empty()) {
    const int64_t all = hwy::SupportedTargets();
    return hwy::TargetName(all & -all);  // Highway's better targets are lower bits
  }
  if (target == detected()) return std::string(name_of(target));
  return fmt::format("{} of {}", name_of(target), name_of(detected()));
}

}  // namespace snapkv::cpu

namespace snapkv {

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names = {cpu::kAutomatic};
  for (int i = 0; i < static_cast<int>(cpu::detected()); ++i) {
    if (cpu::is_present(static_cast<cpu::CpuTarget>(i + 1))) names.emplace_back(cpu::kRows[i].name);
  }
  return names;
}

void set_cpu_target(std::string_view name) {
  const std::lock_guard lock(cpu::settling);
  const cpu::CpuTarget target = cpu::parse(name, "the CPU target");
  if (cpu::settled == cpu::kOpen) return cpu::settle(name, "the CPU target");
  if (cpu::settled == static_cast<int>(target)) return;
  fail(ErrorCode::kUsage,
       "the CPU target can't become {}: it is {} since the first model was loaded or the first "
       "call of set_cpu_target()",
       name, cpu::name_of(static_cast<cpu::CpuTarget>(cpu::settled.load())));
}

}  // namespace snapkv
