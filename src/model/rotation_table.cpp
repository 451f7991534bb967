// SPDX-License-Identifier: MIT
#include "model/rotation_table.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {

void RotationTable::add(const GgufFile& file, const ModelSpec& spec, const Tensor& factors,
                        const Tensor& long_factors) {
  std::vector<RotationSpec> rotations;
  for (const LayerSpec& layer : spec.layers) {
    rotations.push_back(layer.rotation);
    if (layer.latent.index) rotations.push_back(layer.latent.index.rotation);
  }
  for (const RotationSpec& rotation : rotations) {
    const auto is_it = [&](const Frequencies& f) { return f.spec == rotation; };
    if (std::any_of(all_.begin(), all_.end(), is_it)) continue;
    const auto values = [&](const Tensor& given) -> std::span<const float> {
      if (!given || rotation.n_rot == 0 || !rotation.uses_factors) return {};
      const int64_t n = rotation.n_rot / 2;
      if (given.numel() < n || (given.numel() > n && !rotation.may_have_more)) {
        fail(ErrorCode::kBadModel, "{}: {} rotation factors, expected {}, half of {}.{}",
             file.path(), given.numel(), n, spec.config.architecture, "rope.dimension_count");
      }
      return {given.at<const float>(0), static_cast<size_t>(n)};
    };
    all_.push_back({rotation, false, inverse_frequencies(rotation, values(factors))});
    if (rotation.n_ctx_short > 0) {
      all_.push_back({rotation, true, inverse_frequencies(rotation, values(long_factors))});
    }
  }
}

RopeFrequencies RotationTable::find(const RotationSpec& rotation, int64_t n_ctx) const {
  const bool is_long = rotation.n_ctx_short > 0 && n_ctx > rotation.n_ctx_short;
  for (const Frequencies& f : all_) {
    if (f.spec == rotation && f.is_long == is_long) {
      return {f.inv_freq, rotation.layout, rotation.magnitude};
    }
  }
  SNAPKV_CHECK(false);
}

}  // namespace snapkv
