// SPDX-License-Identifier: MIT
// Test models of RWKV 6 and 7, and of their mixers in Qwen's layers. None has attention. llama.cpp
// 0.7.0 computes heads of RWKV 7 wrongly that are narrower than the four vectors which its kernel
// takes at a time: these are 32 wide, and its build for AVX2 has made the goldens.
#include <string>
#include <utility>
#include <vector>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

RandomFamily rwkv(std::string architecture, RandomFamily::Rwkv sizes) {
  RandomFamily family;
  family.architecture = std::move(architecture);
  family.own_output = true;
  if (!sizes.in_qwen) {
    family.layer_norm = family.norm_bias = true;
    family.embedding_norm = true;
  }
  family.rwkv = sizes;
  return family;
}

}  // namespace

std::vector<FamilyModel> with_rwkv() {
  const RandomFamily seven = rwkv("rwkv7", {.version = 7,
                                            .head_dim = 32,
                                            .decay_rank = 12,
                                            .rate_rank = 8,
                                            .value_rank = 6,
                                            .gate_rank = 20});
  RandomFamily arwkv = rwkv("arwkv7", {.version = 7,
                                       .head_dim = 32,
                                       .decay_rank = 12,
                                       .rate_rank = 8,
                                       .value_rank = 8,
                                       .gate_rank = 24,
                                       .in_qwen = true});
  RandomFamily bare = arwkv;
  bare.rwkv.gate_rank = 0;
  bare.rwkv.normed = false;
  const RandomFamily six = rwkv(
      "rwkv6", {.version = 6, .head_dim = 16, .decay_rank = 12, .mix_rank = 8, .rescale_every = 2});
  RandomFamily old = six;
  old.rwkv.mixes_apart = true;
  old.rwkv.rescale_every = 0;
  const RandomFamily qwen = rwkv("rwkv6qwen2", {.version = 6,
                                                .head_dim = 16,
                                                .decay_rank = 12,
                                                .mix_rank = 8,
                                                .in_qwen = true,
                                                .n_head_kv = 2,
                                                .qkv_bias = true});
  return {model_of("rwkv7", shape_of(seven)),      model_of("arwkv7", shape_of(arwkv)),
          model_of("arwkv7-bare", shape_of(bare)), model_of("rwkv6", shape_of(six)),
          model_of("rwkv6-apart", shape_of(old)),  model_of("rwkv6qwen2", shape_of(qwen))};
}

}  // namespace snapkv::test
