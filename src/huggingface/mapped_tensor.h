// SPDX-License-Identifier: MIT
// MappedTensor: a tensor of a Hugging Face folder as it would be in GGUF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// Heads of linear attention by the gated delta rule. In a folder, heads of values that share a
/// head of keys are neighbours: head g * n_shared() + i has head g of keys.
struct LinearHeads {
  int64_t n_head_k = 0;  // of queries and keys; 0: there are none
  int64_t n_head = 0;    // of values
  int64_t d_k = 0, d_v = 0;
  /// Whether GGUF has first one head of values for each head of keys, then a second one, and so on.
  bool take_turns = false;

  int64_t n_shared() const { return n_head / n_head_k; }
  int64_t n_keys() const { return n_head_k * d_k; }
  int64_t n_values() const { return n_head * d_v; }
  int64_t n_qkv() const { return 2 * n_keys() + n_values(); }
  /// The folder's number of GGUF's head h.
  int64_t source_head(int64_t h) const {
    return take_turns ? h % n_head_k * n_shared() + h / n_head_k : h;
  }
};

/// Heads of latent attention, whose keys and values are made of `rank` values, but for a part of
/// the keys that all heads share.
struct LatentSizes {
  int64_t rank = 0;                 // 0: there is none
  int64_t q_rank = 0;               // of which queries are made; 0: they are made of n_embd values
  int64_t n_own = 0, n_shared = 0;  // of a key
  int64_t n_value = 0;
  // of indexers, which choose the tokens that are attended to; 0: there are none
  int64_t n_index_head = 0, index_key = 0, top_k = 0;
  /// [n_layer], or empty: all layers have one; the others take what an earlier one has chosen.
  std::vector<bool> has_indexer;

  int64_t n_key() const { return n_own + n_shared; }
};

/// Where the values of a matrix of GGUF are in the source's: value j of row i, of matrices of
/// n_rows rows, is at start + i / n_rows * matrix + i % n_rows * row + j * column.
struct Strides {
  int64_t n_rows = 0;
  int64_t matrix = 0, row = 0, column = 1;
  int64_t start = 0;
};

/// By what the values of the rows before `end` are multiplied, from the end of those before on.
struct RowFactor {
  int64_t end = 0;
  double factor = 1;
};

/// A shard's tensor, possibly edited, or values that follow from the configuration.
struct MappedTensor {
  std::string name;                     // in GGUF
  const ShardTensor* source = nullptr;  // in Shards::tensors; nullptr: use `values`
  std::vector<float> values;
  /// Of GGUF's shape and the source's type, with the source's data, or a part of them, or those of
  /// `values`, as they are stored.
  Tensor tensor;
  Edit edit = Edit::none;
  int64_t head_dim = 0;               // for permute_q and permute_k
  int64_t n_rot = 0;                  // for these: values of a head that are rotated, the first
  int64_t n_head = 0, n_head_kv = 0;  // for head_groups and what is taken from them, head_turns
  LinearHeads heads;                  // for edits of linear attention
  Strides strides;
  /// If any, GGUF has equal parts of the rows in another order: first the folder's part
  /// block_order[0].
  std::vector<int64_t> block_order;
  std::vector<RowFactor> factors;  // if any, of all rows
  std::vector<float> divisors;     // if any, of each column
  /// The tensor of scales beside a source of MXFP4's numbers; else nullptr. `tensor` then has
  /// blocks of GGUF's MXFP4, and its data are the numbers.
  const ShardTensor* scales = nullptr;

  MappedTensor() = default;
  MappedTensor(MappedTensor&&) = default;
  MappedTensor& operator=(MappedTensor&&) = default;
  MappedTensor(const MappedTensor&) = delete;  // `tensor` is a view of `values`
  MappedTensor& operator=(const MappedTensor&) = delete;

  /// Values in a row: one in a vector, unless its type has blocks. A vector of blocks is a single
  /// row, which is not edited.
  int64_t row_values() const;
  int64_t n_rows() const { return tensor.numel() / row_values(); }
  /// Where value j of GGUF's row i is among the source's values.
  int64_t source_index(int64_t i, int64_t j) const;
  /// The row of the source that has the first value of GGUF's row i, in rows of GGUF's length.
  int64_t source_row(int64_t i) const;

  /// Whether GGUF's values are others than the source's.
  bool changes_values() const {
    return edit == Edit::add_one || edit == Edit::add_fifth || edit == Edit::add_small ||
           edit == Edit::decay_rate || edit == Edit::growth_rate || edit == Edit::unit_rows ||
           !factors.empty() || !divisors.empty();
  }
  /// GGUF's row i in the source's type, whose values must not change.
  void copy_row(int64_t i, std::byte* to) const;
  /// GGUF's row i in f32; the source's type must be a plain one.
  void read_row(int64_t i, float* to) const;

  /// Leaves rows of heads in the folder's order, and values without factors, for models that are
  /// read in place.
  void keep_in_place();
  /// Whether `tensor` has GGUF's values in GGUF's order.
  bool is_view() const {
    return edit == Edit::none && scales == nullptr && factors.empty() && divisors.empty();
  }

 private:
  void copy_mxfp4_row(int64_t i, std::byte* to) const;
  bool has_whole_rows() const;
  /// Whether row i has the other sign.
  bool is_negated(int64_t i) const;
  void multiply(int64_t i, float* row) const;
  int64_t value_row(int64_t i) const;
  int64_t row_of_groups(int64_t i) const;
};

}  // namespace snapkv::huggingface
