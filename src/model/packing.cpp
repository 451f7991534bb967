// SPDX-License-Identifier: MIT
#include "model/packing.h"

#include <algorithm>

namespace snapkv {
namespace {

/// Measured: docs/weights.md.
constexpr int64_t kMostChunksPackedAtUse = 1;

ProductTraits products(const Backend& backend, std::string_view file_type) {
  const auto type = std::find_if(kWeightTypes.begin(), kWeightTypes.end(),
                                 [&](DType t) { return file_type == name(t); });
  return backend.products(type == kWeightTypes.end() ? DType::f32 : *type);  // end: no matrices
}

}  // namespace

bool packs_weights(const Backend& backend, std::string_view file_type, int64_t n_tokens) {
  return n_tokens >= products(backend, file_type).packed_min_tokens;
}

bool packs_at_use(const Backend& backend, std::string_view file_type, int64_t n_tokens,
                  int64_t chunk) {
  return packs_weights(backend, file_type, n_tokens) && products(backend, file_type).packs_at_use &&
         n_tokens <= kMostChunksPackedAtUse * chunk;
}

bool rounds_prompts(const Backend& backend, std::string_view file_type) {
  return products(backend, file_type).packed_in_bytes;
}

}  // namespace snapkv
