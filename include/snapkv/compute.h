// SPDX-License-Identifier: MIT
// Where and in which precision a model runs.
#pragma once

namespace snapkv {

/// Precision of prefill's matrix products. bf16 rounds activations (and wider weights) to bf16 and
/// accumulates in f32; `automatic` takes bf16 where the processor multiplies it natively. With f32
/// nothing is rounded below f32 but what the file and the KV cache type round.
enum class Compute { automatic, f32, bf16 };

/// `cuda`: an NVIDIA GPU, in builds with SNAPKV_CUDA. `automatic`: the GPU where the build and the
/// machine have one, else the CPU. `reference` runs the plain loops that every test compares with:
/// exact and very slow.
enum class Device { automatic, cpu, cuda, reference };

/// Where weights are read from while decoding, which reads all of them at every step. `mapped`:
/// from the file's pages, which the system may drop when memory is short and read again.
/// `huge_pages`: from a copy in huge pages of this process, which is read up to twice as fast; it
/// is made when the model is loaded, and stays. `automatic`: the copy where the system has huge
/// pages and at least twice the memory that it takes, made bit by bit after decode steps (which
/// takes them an eighth longer until it is complete); else, and for models under 64 MiB, the file.
/// `copy`: the whole model is read into memory when it is loaded, and its files are closed: what
/// happens to them afterwards doesn't matter. The other three read from the files as long as the
/// model is loaded.
enum class WeightMemory { automatic, mapped, huge_pages, copy };

}  // namespace snapkv
