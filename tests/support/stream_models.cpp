// SPDX-License-Identifier: MIT
// Random models whose tokens have several residual streams (family_models.h).
#include <cmath>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

/// llama.cpp has some of Gemma 3n's sizes fixed: 4 streams, inputs of 256 values, a rank of 64, 20
/// layers with rows of their own, 10 layers whose gates must stand out.
FamilyModel gemma3n() {
  constexpr int64_t kLayers = 25, kOwn = 20;
  RandomModelShape shape = shape_of({.architecture = "gemma3n",
                                     .norm_after = true,
                                     .qk_norm = RandomQkNorm::each_head,
                                     .gemma3n = {.n_streams = 4,
                                                 .n_shared = kLayers - kOwn,
                                                 .n_layer_input = 256,
                                                 .rank = 64,
                                                 .n_sparse = 10},
                                     .window = 16},
                                    kLayers, 32);
  // It also takes the deviation of a sample, divided by n - 1, where this engine and transformers
  // take that of all, divided by n, and does not read the key.
  const auto n_ff = static_cast<double>(shape.n_ff);
  shape.family.gemma3n.peaks = 1.6448533535003662 * std::sqrt(n_ff / (n_ff - 1.0));
  shape.rope_base = 1e6;
  FamilyModel m = model_of("gemma3n", shape);
  m.options.gains->embedding = 0.25f;     // which are multiplied by sqrt(n_embd) = 8
  m.options.gains->qk_norm = 0.5f;        // scores are not divided by sqrt(head_dim)
  m.options.gains->ffn_post_norm = 0.1f;  // llama.cpp's GELU is from a table in f16
  return m;
}

}  // namespace

std::vector<FamilyModel> with_streams() { return {gemma3n()}; }

}  // namespace snapkv::test
