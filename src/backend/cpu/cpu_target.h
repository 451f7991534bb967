// SPDX-License-Identifier: MIT
// CpuTarget: the instruction sets that this process's kernels and libraries may use. That is what
// the processor has, or less where set_cpu_target() (snapkv/compute.h) or SNAPKV_CPU_TARGET says
// so. Every choice between kernels asks here, and nothing else asks the processor.
#pragma once

#include <string>

namespace snapkv::cpu {

/// Each contains those before it, but for avx_vnni, which not every processor with AVX-512 has.
/// Elsewhere than on x86-64 there is `baseline` alone.
enum class CpuTarget {
  baseline,     // what the compiler assumes
  sse4,         // SSE4.2
  avx2,         // with FMA and F16C
  avx_vnni,     // 8-bit dot products of 256 bits: Intel since Alder Lake, AMD since Zen 5
  avx512,       // F, BW, CD, DQ and VL: Intel since Skylake-X, AMD since Zen 4
  avx512_vnni,  // 8-bit dot products: Intel since Cascade Lake
  avx512_bf16,  // bf16 dot products: Intel since Sapphire Rapids, AMD since Zen 4
  amx,          // bf16 and 8-bit tiles: Intel since Sapphire Rapids
};

/// The best that may be used. The first call settles it for the process, by SNAPKV_CPU_TARGET if
/// nobody has called set_cpu_target(); whatever uses oneDNN or Highway calls this first. Throws
/// Error{kUsage} when the variable names what the processor lacks.
CpuTarget cpu_target();
bool has(CpuTarget target);

/// For people: "avx512-bf16", "avx2 of avx512-bf16" where it is restricted; elsewhere than on
/// x86-64 Highway's name of the best instruction set.
std::string cpu_target_description();

}  // namespace snapkv::cpu
