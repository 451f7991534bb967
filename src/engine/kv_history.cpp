// SPDX-License-Identifier: MIT
#include "engine/kv_history.h"

#include <algorithm>

#include "base/check.h"
#include "base/file_buffer.h"

namespace snapkv {
namespace {

/// The fewest rows that a layer grows by, so that short turns do not copy it each time.
constexpr int32_t kGrowth = 256;

}  // namespace

KvHistory::KvHistory(Backend& backend, KvMeter& meter, const ModelSpec& spec, DType dtype,
                     const std::string& spill_dir)
    : backend_(&backend), spilled_(!spill_dir.empty()) {
  for (const LayerSpec& layer : spec.layers) {
    layers_.push_back(layer.compressed ? make_full_state(layer.state, meter, dtype, spill_dir)
                                       : nullptr);
  }
}

size_t KvHistory::resident_bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens,
                                 bool spilled) {
  size_t all = 0, largest = 0;
  for (const LayerSpec& layer : spec.layers) {
    const size_t bytes = layer.compressed ? layer.state.bytes(dtype, n_tokens + kGrowth) : 0;
    all += bytes;
    largest = std::max(largest, bytes);
  }
  // a spilled history has two layers in memory: the current one and the one that is read ahead
  return spilled ? 2 * largest : all;
}

void KvHistory::append(int il, const LayerState& source, std::span<const int32_t> first) {
  const std::vector<int32_t> n_rows = source.n_rows();
  int32_t n = 0;
  for (size_t h = 0; h < n_rows.size(); ++h) n = std::max(n, n_rows[h] - first[h]);
  if (n == 0) return;
  layers_[il]->reserve(*backend_, n, n + kGrowth);
  layers_[il]->append(*backend_, source, first, n);
}

void KvHistory::leave(int il) const {
  const auto rows = layers_[il]->memory();
  if (spilled_ && !rows.empty()) release_pages(rows.data(), rows.size());
}

void KvHistory::prefetch(int il) const {
  if (!spilled_ || !has_layer(il)) return;
  const auto rows = layers_[il]->memory();
  if (!rows.empty()) prefetch_pages(rows.data(), rows.size());
}

}  // namespace snapkv
