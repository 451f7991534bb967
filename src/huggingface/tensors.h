// SPDX-License-Identifier: MIT
// The tensors of a Hugging Face folder under their names in GGUF.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"
#include "huggingface/config.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// One tensor as it would be in GGUF: a shard's tensor, possibly edited, or values that follow from
/// the configuration.
///
/// Edit::permute_q and permute_k: GGUF's llama stores the rows of a head (for a bias: the values)
/// in another order, in which values that are rotated together are neighbours: row 2 j + t of a
/// head is row t head_dim / 2 + j in the folder (t = 0, 1).
struct MappedTensor {
  std::string name;                     // in GGUF
  const ShardTensor* source = nullptr;  // in Shards::tensors; nullptr: use `values`
  std::vector<float> values;
  Tensor tensor;  // a view of the source as stored, or of `values`
  Edit edit = Edit::none;
  int64_t head_dim = 0;  // for the two permutations

  MappedTensor() = default;
  MappedTensor(MappedTensor&&) = default;
  MappedTensor& operator=(MappedTensor&&) = default;
  MappedTensor(const MappedTensor&) = delete;  // `tensor` is a view of `values`
  MappedTensor& operator=(const MappedTensor&) = delete;

  /// The row of `tensor` that becomes row `i` in GGUF.
  int64_t source_row(int64_t i) const {
    if (edit != Edit::permute_q && edit != Edit::permute_k) return i;
    const int64_t in_head = i % head_dim;
    return i - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
  }
};

/// All tensors of the model, in the order in which it uses them. Throws Error{kBadModel} if one is
/// missing, unknown, of an unsupported type, or of another shape than `config` says.
std::vector<MappedTensor> map_tensors(const Config& config, const Shards& shards,
                                      const std::string& folder);

}  // namespace snapkv::huggingface
