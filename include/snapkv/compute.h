// SPDX-License-Identifier: MIT
// Where and in which precision a model runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "snapkv/dtype.h"

namespace snapkv {

/// Precision of matrix products. bf16 rounds the activations of prefill (and wider weights) to bf16
/// and accumulates in f32; where few rows are multiplied with weights of a block type, as in
/// decoding, activations are rounded to 8 bits with a scale per 32 values, as llama.cpp always
/// does. `automatic` rounds them so in prompts of any length, too, where the processor's 8-bit
/// products are the fastest (with AVX2, AVX-VNNI or AVX-512 VNNI; not with AMX, nor with AVX-512
/// alone); other weights it multiplies in bf16 where the processor does that natively, else in f32.
/// With f32 nothing is rounded below f32 but what the file and the KV cache type round.
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

/// Restricts this process to an instruction set below the processor's best: "avx2", "avx512" and so
/// on, as cpu_targets() lists them; "auto": all that the processor has. Kernels, oneDNN and Highway
/// obey it, and Compute::automatic no longer sees what lies above. To be called before the first
/// model is loaded; without a call the environment variable SNAPKV_CPU_TARGET says it, else "auto".
/// Throws kUsage for a name that is not in the list, and where another one is in use already.
void set_cpu_target(std::string_view name);

/// The names that set_cpu_target() takes on this processor: "auto" and its instruction sets, the
/// best one last. Elsewhere than on x86-64 "auto" alone.
std::vector<std::string> cpu_targets();

/// What Compute::automatic is on this machine's CPU: bf16 or f32.
DType cpu_compute_dtype();

/// Threads that n_threads = 0 stands for on the CPU: one for each processor that the process may
/// use, or fewer where its Linux control group (of a container or a service) grants it the time of
/// fewer processors, rounded up: more threads would wait for each other.
int cpu_threads();

}  // namespace snapkv
