// SPDX-License-Identifier: MIT
#include "engine/kv_history.h"

#include <algorithm>

#include "base/check.h"
#include "base/file_buffer.h"

namespace snapkv {
namespace {

/// The fewest rows that a layer grows by, so that short turns do not copy it each time.
constexpr int32_t kGrowth = 256;

size_t layer_bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens) {
  return KvLayer::row_bytes(dtype, spec.config.head_dim) * spec.config.n_head_kv *
         (n_tokens + kGrowth);
}

}  // namespace

KvHistory::KvHistory(Backend& backend, KvMeter& meter, const ModelSpec& spec, DType dtype,
                     std::string spill_dir)
    : backend_(&backend),
      meter_(&meter),
      head_dim_(spec.config.head_dim),
      n_head_kv_(spec.config.n_head_kv),
      dtype_(dtype),
      spill_dir_(std::move(spill_dir)),
      layers_(spec.layers.size()) {
  for (const LayerSpec& layer : spec.layers) spec_.push_back(layer.compressed);
}

size_t KvHistory::bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens) {
  const auto n_layer = std::count_if(spec.layers.begin(), spec.layers.end(),
                                     [](const LayerSpec& layer) { return layer.compressed; });
  return n_layer * layer_bytes(spec, dtype, n_tokens);
}

size_t KvHistory::resident_bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens,
                                 bool spilled) {
  // a spilled history has two layers in memory: the current one and the one that is read ahead
  return spilled ? 2 * layer_bytes(spec, dtype, n_tokens) : bytes(spec, dtype, n_tokens);
}

void KvHistory::append(int il, const KvLayer& source, std::span<const int32_t> first) {
  SNAPKV_CHECK(has_layer(il));
  KvLayer& layer = layers_[il];
  int32_t n = 0;
  for (int h = 0; h < source.n_head_kv(); ++h) n = std::max(n, source.n_kv(h) - first[h]);
  if (n == 0) return;
  if (!layer) {
    const std::vector<int32_t> capacity(n_head_kv_, n + kGrowth);
    layer = KvLayer(*backend_, *meter_, head_dim_, dtype_, capacity, spill_dir_);
  } else {
    layer.reserve(*backend_, n, n + kGrowth);
  }
  layer.append(*backend_, source, first);
}

void KvHistory::truncate(int il, std::span<const int32_t> n_kv) {
  if (layers_[il]) layers_[il].truncate(n_kv);
}

void KvHistory::leave(int il) const {
  if (!spill_dir_.empty() && layers_[il]) release_pages(layers_[il].data(), layers_[il].bytes());
}

void KvHistory::prefetch(int il) const {
  if (spill_dir_.empty() || !has_layer(il) || !layers_[il]) return;
  prefetch_pages(layers_[il].data(), layers_[il].bytes());
}

}  // namespace snapkv
