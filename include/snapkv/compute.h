// SPDX-License-Identifier: MIT
// Where and in which precision a model runs.
#pragma once

namespace snapkv {

/// Precision of prefill's matrix products. bf16 rounds activations (and wider weights) to bf16 and
/// accumulates in f32; `automatic` takes bf16 where the processor multiplies it natively. With f32
/// nothing is rounded below f32 but what the file and the KV cache type round.
enum class Compute { automatic, f32, bf16 };

/// `reference` runs the plain loops that every test compares with: exact and very slow.
enum class Device { automatic, cpu, reference };

}  // namespace snapkv
