// SPDX-License-Identifier: MIT
// Where and in which precision a model runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "snapkv/dtype.h"

namespace snapkv {

/// Precision of matrix products. bf16 rounds the activations of prefill (and wider weights) to bf16
/// and accumulates in f32. Where few rows are multiplied by weights of a block type, as in
/// decoding, activations are rounded to 8 bits with a scale per 32 values, as llama.cpp always
/// does. `automatic` also rounds them so for prompts of any length if the processor's 8-bit
/// products are the fastest (with AVX2, AVX-VNNI or AVX-512 VNNI; not with AMX or plain AVX-512);
/// it multiplies other weights in bf16 if the processor does that natively, otherwise in f32. With
/// f32 nothing is rounded below f32 except by the file and the KV cache type.
enum class Compute { automatic, f32, bf16 };

/// A device that models run on, by the name in ModelOptions::device.
struct DeviceInfo {
  std::string name;          ///< "cpu", "cuda", "reference"
  std::string help;          ///< a few words on what it is
  bool own_memory = false;   ///< separate from the host's: weights and caches are copied to it
  std::string missing = {};  ///< why this build cannot use it; empty if it can
};

/// All devices that there are. "auto" is the fastest of them that this build and the machine have:
/// a GPU, or else the CPU. "reference" is the plain loops that every test compares with, exact and
/// very slow.
std::vector<DeviceInfo> devices();

/// Where weights are read from in decoding, which reads all of them at every step. `mapped`: from
/// the file's pages, which the system may drop when memory is short and read again. `huge_pages`:
/// from a copy in this process's huge pages, which is up to twice as fast to read; it is made when
/// the model is loaded, and stays. `automatic`: the copy if the system has huge pages and at least
/// twice the memory that the copy takes; it is made bit by bit after decode steps, which take an
/// eighth longer until it is complete. Otherwise, and for models under 64 MiB, the file. `copy`:
/// the whole model is read into memory when it is loaded and its files are closed; what happens to
/// them afterwards does not matter. The other three read from the files as long as the model is
/// loaded.
enum class WeightMemory { automatic, mapped, huge_pages, copy };

/// Restricts this process to an instruction set below the processor's best: "avx2", "avx512" and so
/// on, as listed by cpu_targets(); "auto" allows all that the processor has. Kernels, oneDNN and
/// Highway obey it, and Compute::automatic ignores what lies above. Call it before the first model
/// is loaded; without a call the environment variable SNAPKV_CPU_TARGET applies, or else "auto".
/// Throws kUsage for a name that is not in the list, and if another one is already in use.
void set_cpu_target(std::string_view name);

/// The names that set_cpu_target() accepts on this processor: "auto" and its instruction sets, the
/// best one last. On architectures other than x86-64, only "auto".
std::vector<std::string> cpu_targets();

/// The type that Compute::automatic uses on this machine's CPU: bf16 or f32.
DType cpu_compute_dtype();

/// Number of CPU threads used for n_threads = 0: one for each processor that the process may use,
/// or fewer if its Linux control group (of a container or a service) grants it the time of fewer
/// processors, rounded up: more threads would wait for each other.
int cpu_threads();

}  // namespace snapkv
