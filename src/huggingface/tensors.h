// SPDX-License-Identifier: MIT
// The tensors of a Hugging Face folder under the names that GGUF has for them. Used by folder.cpp,
// which presents them to the engine, and by the writer of GGUF files.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"
#include "huggingface/config.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// One tensor as GGUF would have it: that of a shard, edited, or values that follow from the
/// configuration.
///
/// Edit::permute_q and permute_k: GGUF's llama has the rows of a head (of a bias: the values) in
/// another order, in which values that are rotated together are neighbours: row 2 j + t of a head
/// is row t head_dim / 2 + j of the folder's (t = 0, 1).
struct MappedTensor {
  std::string name;                     // GGUF's
  const ShardTensor* source = nullptr;  // in Shards::tensors; nullptr: `values`
  std::vector<float> values;
  Tensor tensor;  // of the source, as it lies there, or of `values`
  Edit edit = Edit::none;
  int64_t head_dim = 0;  // of the two permutations

  MappedTensor() = default;
  MappedTensor(MappedTensor&&) = default;
  MappedTensor& operator=(MappedTensor&&) = default;
  MappedTensor(const MappedTensor&) = delete;  // `tensor` views `values`
  MappedTensor& operator=(const MappedTensor&) = delete;

  /// Row of `tensor` that is GGUF's row `i`.
  int64_t source_row(int64_t i) const {
    if (edit != Edit::permute_q && edit != Edit::permute_k) return i;
    const int64_t in_head = i % head_dim;
    return i - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
  }
};

/// All tensors of the model, in the order in which it uses them. Throws Error{kBadModel} when one
/// is missing, has another shape than `config` says or an unsupported type, or is not known.
std::vector<MappedTensor> map_tensors(const Config& config, const Shards& shards,
                                      const std::string& folder);

}  // namespace snapkv::huggingface
