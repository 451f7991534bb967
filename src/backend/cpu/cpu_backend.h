// SPDX-License-Identifier: MIT
// The CPU backend: oneDNN for large products, SIMD kernels with runtime dispatch for the rest,
// OpenMP threads. This header keeps all of theirs out of its users.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/cpu_context.h"

namespace snapkv::cpu {

/// A backend with kernels that the processor would not choose; tests run all of them.
std::unique_ptr<Backend> make_backend(const CpuContext& ctx);

}  // namespace snapkv::cpu
