// SPDX-License-Identifier: MIT
// oneDNN, and what its versions 2 and 3 name differently. Also included by bench/int8_peak.cpp.
#pragma once

#include <dnnl.hpp>

namespace snapkv::cpu {

/// The library's product out = x w (+ bias, unless null).
inline dnnl::matmul::primitive_desc onednn_product(const dnnl::engine& engine,
                                                   const dnnl::memory::desc& x,
                                                   const dnnl::memory::desc& w,
                                                   const dnnl::memory::desc* bias,
                                                   const dnnl::memory::desc& out,
                                                   const dnnl::primitive_attr& attr = {}) {
#if DNNL_VERSION_MAJOR >= 3
  if (bias == nullptr) return {engine, x, w, out, attr};
  return {engine, x, w, *bias, out, attr};
#else
  const auto desc = bias == nullptr ? dnnl::matmul::desc(x, w, out)  //
                                    : dnnl::matmul::desc(x, w, *bias, out);
  return {desc, attr, engine};
#endif
}

/// All instructions that the processor has, as a limit.
#if DNNL_VERSION_MAJOR >= 3
inline constexpr dnnl::cpu_isa kOnednnUnlimited = dnnl::cpu_isa::isa_default;
#else
inline constexpr dnnl::cpu_isa kOnednnUnlimited = dnnl::cpu_isa::all;
#endif

}  // namespace snapkv::cpu
