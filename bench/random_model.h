// SPDX-License-Identifier: MIT
// Writes models with random weights to GGUF files, for every family that src/model knows: real
// shapes for speed and memory runs (random_shapes.cpp), small ones for tests.
//
// The values of a file depend only on its shape and options, not on the machine, the compiler or
// the number of threads: every weight is a function of (seed, tensor name, index) in integer
// arithmetic, scaled once. Files may be far larger than the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/random_family.h"
#include "snapkv/dtype.h"

namespace snapkv {

struct RandomModelShape {
  int64_t n_embd = 0;
  int64_t n_layer = 0;
  int64_t n_head = 0;
  int64_t n_head_kv = 0;
  int64_t head_dim = 0;
  int64_t n_ff = 0;
  int64_t n_vocab = 0;  // >= 259: three special tokens and the 256 bytes
  double rope_base = 10000.0;
  RandomFamily family = {};
};

struct RandomModelOptions {
  DType dtype = DType::f16;  // of the matrices; norms, biases and rope_freqs are f32
  uint64_t seed = 0;
  int64_t n_ctx = 1048576;  // .context_length, and the number of learned positions
  float weight_stddev = 0.02f;
  float norm_stddev = 0.0f;               // of the norm weights, around 1
  std::optional<RandomGains> gains = {};  // instead of the two fields above
  bool tied_output = true;                // false: a separate output.weight
  bool qkv_bias = false;                  // attn_q.bias, attn_k.bias, attn_v.bias
  bool rope_freqs = false;                // rope_freqs.weight: factors from 1 to 8 as in Llama 3.1
  double rope_linear_factor = 0;          // > 0: rope.scaling.type "linear" with this factor
  std::string omitted = {};               // a tensor to leave out, for tests of damaged files
};

/// The shapes of random_shapes.cpp: "tiny-gqa", "135m-gqa", "8b-gqa", "gemma3-1b", ...
std::vector<std::string> random_model_names();
/// Throws Error{kUsage} listing the names.
RandomModelShape random_model_shape(std::string_view name);

/// Throws Error{kUsage} if shape and type do not fit together, Error{kRuntime} if the file cannot
/// be written; the incomplete file is then removed.
void write_random_model(const std::string& path, const RandomModelShape& shape,
                        const RandomModelOptions& options);

}  // namespace snapkv
