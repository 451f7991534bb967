// SPDX-License-Identifier: MIT
// CpuTarget: the instruction sets that this process's kernels and libraries may use: all that the
// processor has, or fewer if set_cpu_target() (snapkv/compute.h) or SNAPKV_CPU_TARGET says so.
// Every choice between kernels is made here; no other code examines the processor.
#pragma once

#include <string>

namespace snapkv::cpu {

/// Each includes those before it, except avx_vnni, which some processors with AVX-512 lack. Other
/// architectures than x86-64 have only `baseline`.
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

/// The best target that may be used. The first call fixes it for the process, from
/// SNAPKV_CPU_TARGET unless set_cpu_target() was called; code that uses oneDNN or Highway must call
/// this first. Throws Error{kUsage} if the variable names a target that the processor lacks.
CpuTarget cpu_target();
bool has(CpuTarget target);

/// For people: "avx512-bf16", or "avx2 of avx512-bf16" if restricted; on other architectures than
/// x86-64, Highway's name of the best instruction set.
std::string cpu_target_description();

}  // namespace snapkv::cpu
