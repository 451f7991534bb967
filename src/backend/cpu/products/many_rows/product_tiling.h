// SPDX-License-Identifier: MIT
// How the output of a large matrix product is divided into tiles. One thread computes each tile
// completely, from the first value of its sums to the last.
//
// The division depends on the product's shape and the layout of its weights, never on the number of
// threads. A library that divides a product among its threads may split sums between them, and then
// the rounding of results depends on their number.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/weights/pack.h"

namespace snapkv::cpu {

/// Tiles of [rows, cols] from the output's beginning; the last ones may be smaller. cols is a
/// multiple of kPanelRows or all columns.
struct Tiling {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t n_rows = 0;  // tiles one below another
  int64_t n_cols = 0;  // tiles side by side
};

/// A tile of this size and its operands stay near a core while the library works on it, however
/// long the sums are (measured with 1 MiB of L2 cache: tiles twice as large are no faster).
inline constexpr int64_t kTileRows = 256;
inline constexpr int64_t kTileCols = 256;

/// With panels, tiles narrower than the output are computed in separate memory and then copied to
/// it, which short sums do not make up for (4% at 576 products, 1% at 2048). If sums are shorter
/// than this, or all weights fit into the caches anyway, tiles are whole rows of the output.
inline constexpr int64_t kShortSum = 1536;
inline constexpr int64_t kFewWeights = 2 << 20;
inline constexpr int64_t kStripRows = 64;

/// Small outputs are divided further until there is work for this many threads, but tiles are at
/// least kMinTileRows x kPanelRows.
inline constexpr int64_t kWantedTiles = 8;
inline constexpr int64_t kMinTileRows = 32;

inline Tiling choose_tiling(int64_t n, int64_t n_out, int64_t n_in, bool panels) {
  const auto tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile; };
  const bool strips = panels && (n_in < kShortSum || n_out * n_in <= kFewWeights);
  int64_t rows = std::min(n, strips ? kStripRows : kTileRows);
  int64_t cols = strips ? n_out : std::min(n_out, kTileCols);
  while (tiles(n, rows) * tiles(n_out, cols) < kWantedTiles) {
    if (cols > kPanelRows && (cols >= rows || rows <= kMinTileRows)) {
      cols = tiles((cols + 1) / 2, kPanelRows) * kPanelRows;
    } else if (rows > kMinTileRows) {
      rows = std::max((rows + 1) / 2, kMinTileRows);
    } else {
      break;
    }
  }
  // The same number of tiles with even sizes, so that threads finish together.
  Tiling t;
  t.n_rows = tiles(n, rows);
  t.rows = tiles(n, t.n_rows);
  t.cols = std::min(n_out, tiles(tiles(n_out, tiles(n_out, cols)), kPanelRows) * kPanelRows);
  t.n_cols = tiles(n_out, t.cols);
  return t;
}

}  // namespace snapkv::cpu
