// SPDX-License-Identifier: MIT
// The CPU backend: oneDNN for large products, SIMD kernels with runtime dispatch for the rest,
// OpenMP threads. This header keeps all of theirs out of its users.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/cpu_context.h"
#include "snapkv/compute.h"

namespace snapkv::cpu {

/// n_threads 0: cpu_threads().
std::unique_ptr<Backend> make_backend(int n_threads, Compute compute);
/// As snapkv::make_to_measure(), for Device::cpu.
std::unique_ptr<Backend> make_to_measure(const DeviceTraits& traits);
/// A backend with kernels that the processor would not choose; tests run all of them.
std::unique_ptr<Backend> make_backend(const CpuContext& ctx);

}  // namespace snapkv::cpu
