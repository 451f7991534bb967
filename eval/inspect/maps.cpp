// SPDX-License-Identifier: MIT
#include "eval/inspect/maps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace snapkv::eval {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t millionths(double share) { return std::llround(share * 1e6); }

// Values of [rows, columns] as nested lists.
template <class Value>
Json nested(const Rows& rows, const Columns& columns, const Value& value) {
  Json json = Json::array();
  for (int64_t r = 0; r < rows.size(); ++r) {
    Json row = Json::array();
    for (int64_t c = 0; c < columns.n_columns; ++c) row.push_back(value(r, c));
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace

int64_t Columns::of(int64_t token) const {
  int64_t c = std::min(n_columns - 1, token * n_columns / n_tokens);
  while (c + 1 < n_columns && begin(c + 1) <= token) ++c;
  return c;
}

Rows::Rows(int64_t layers, int64_t heads)
    : n_layer(layers), n_head_kv(heads), heads_per_row(1), layers_per_row(1) {
  while (heads_per_row < n_head_kv && n_layer * per_layer() > kMapRows) ++heads_per_row;
  layers_per_row = ceil_div(n_layer * per_layer(), kMapRows);
}

Json Rows::to_json() const {
  Json json = Json::array();
  for (int64_t il = 0; il < n_layer; il += layers_per_row) {
    for (int64_t head = 0; head < n_head_kv; head += heads_per_row) {
      json.push_back({{"layer_begin", il},
                      {"layer_end", std::min(n_layer, il + layers_per_row)},
                      {"head_begin", head},
                      {"head_end", std::min(n_head_kv, head + heads_per_row)}});
    }
  }
  return json;
}

KeptMap::KeptMap(const Rows& rows, const Columns& columns)
    : rows_(rows),
      columns_(columns),
      counts_(static_cast<size_t>(rows.size() * columns.n_columns), 0) {}

void KeptMap::add(int64_t il, int64_t head, std::span<const int32_t> positions) {
  const int64_t row = rows_.of(il, head) * columns_.n_columns;
  for (const int32_t pos : positions) ++counts_[static_cast<size_t>(row + columns_.of(pos))];
}

Json KeptMap::to_json() const {
  const Json rows = rows_.to_json();
  return nested(rows_, columns_, [&](int64_t r, int64_t c) {
    const Json& row = rows[static_cast<size_t>(r)];
    const int64_t n_pairs = (row["layer_end"].get<int64_t>() - row["layer_begin"].get<int64_t>()) *
                            (row["head_end"].get<int64_t>() - row["head_begin"].get<int64_t>());
    const int64_t all = n_pairs * (columns_.begin(c + 1) - columns_.begin(c));
    const int64_t kept = counts_[static_cast<size_t>(r * columns_.n_columns + c)];
    if (kept == 0 || kept == all) return kept == 0 ? int64_t{0} : int64_t{1000};
    return std::clamp<int64_t>(
        std::llround(1000.0 * static_cast<double>(kept) / static_cast<double>(all)), 1, 999);
  });
}

ScoreMap::ScoreMap(const Rows& rows, const Columns& columns)
    : rows_(rows),
      columns_(columns),
      highest_(static_cast<size_t>(rows.size() * columns.n_columns), 0) {}

void ScoreMap::add(int64_t il, int64_t head, std::span<const double> shares) {
  const int64_t row = rows_.of(il, head) * columns_.n_columns;
  for (int64_t c = 0; c < columns_.n_columns; ++c) {
    double& cell = highest_[static_cast<size_t>(row + c)];
    for (int64_t j = columns_.begin(c); j < columns_.begin(c + 1); ++j) {
      cell = std::max(cell, shares[static_cast<size_t>(j)]);
    }
  }
}

Json ScoreMap::to_json() const {
  return nested(rows_, columns_, [&](int64_t r, int64_t c) {
    return millionths(highest_[static_cast<size_t>(r * columns_.n_columns + c)]);
  });
}

Json sparse_shares(const Columns& columns, std::span<const double> shares, int64_t n_top) {
  Json json = {{"columns", Json::array()}, {"positions", Json::array()}, {"values", Json::array()}};
  for (int64_t c = 0; c < columns.n_columns; ++c) {
    const double sum = std::accumulate(shares.begin() + columns.begin(c),
                                       shares.begin() + columns.begin(c + 1), 0.0);
    json["columns"].push_back(millionths(sum));
  }
  if (columns.n_columns == columns.n_tokens) return json;
  std::vector<int64_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  n_top = std::min<int64_t>(n_top, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + n_top, order.end(), [&](int64_t a, int64_t b) {
    const double x = shares[static_cast<size_t>(a)], y = shares[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::sort(order.begin(), order.begin() + n_top);
  for (int64_t i = 0; i < n_top; ++i) {
    const int64_t value = millionths(shares[static_cast<size_t>(order[static_cast<size_t>(i)])]);
    if (value == 0) continue;
    json["positions"].push_back(order[static_cast<size_t>(i)]);
    json["values"].push_back(value);
  }
  return json;
}

}  // namespace snapkv::eval
