// SPDX-License-Identifier: MIT
// The maps of an inspect page: layers and KV heads x positions, binned so that the page stays small
// for prompts of any length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/common/record_file.h"

namespace snapkv::eval {

inline constexpr int64_t kMapRows = 256;      ///< most rows of a map
inline constexpr int64_t kMapColumns = 1024;  ///< most columns of a map

/// Equal columns over the positions: column c holds tokens [begin(c), begin(c + 1)).
struct Columns {
  explicit Columns(int64_t n) : n_tokens(n), n_columns(n < kMapColumns ? n : kMapColumns) {}
  int64_t n_tokens, n_columns;
  int64_t begin(int64_t c) const { return c * n_tokens / n_columns; }
  int64_t of(int64_t token) const;
};

/// One row per layer and KV head; if there are more than kMapRows, neighbouring heads of a layer
/// share a row, and then neighbouring layers.
struct Rows {
  Rows(int64_t n_layer, int64_t n_head_kv);
  int64_t n_layer, n_head_kv, heads_per_row, layers_per_row;
  int64_t per_layer() const { return (n_head_kv + heads_per_row - 1) / heads_per_row; }
  int64_t size() const { return (n_layer + layers_per_row - 1) / layers_per_row * per_layer(); }
  int64_t of(int64_t il, int64_t head) const {
    return il / layers_per_row * per_layer() + head / heads_per_row;
  }
  /// [{layer_begin, layer_end, head_begin, head_end}]
  Json to_json() const;
};

/// How much of each cell was kept, as a map.
class KeptMap {
 public:
  KeptMap(const Rows& rows, const Columns& columns);
  /// Adds the positions that one head of one layer kept.
  void add(int64_t il, int64_t head, std::span<const int32_t> positions);
  /// [rows][columns], in thousandths of the cell's entries: 0 only if none and 1000 only if all
  /// were kept.
  Json to_json() const;

 private:
  Rows rows_;
  Columns columns_;
  std::vector<int64_t> counts_;  // [rows, columns]
};

/// The highest score in each cell, as a map.
class ScoreMap {
 public:
  ScoreMap(const Rows& rows, const Columns& columns);
  /// Adds the shares of the attention, [n_tokens], of one KV head of one layer.
  void add(int64_t il, int64_t head, std::span<const double> shares);
  /// [rows][columns], millionths.
  Json to_json() const;

 private:
  Rows rows_;
  Columns columns_;
  std::vector<double> highest_;  // [rows, columns]
};

/// Shares of the attention [n_tokens] in a page's form: {"columns": [...], "positions": [...],
/// "values": [...]}: sums per column, and the `n_top` highest single positions, in ascending order;
/// all in millionths. Only columns if each column is one position.
Json sparse_shares(const Columns& columns, std::span<const double> shares, int64_t n_top);

}  // namespace snapkv::eval
