// SPDX-License-Identifier: MIT
#include "model/rotation.h"

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

double read_linear_factor(const MetadataReader& reader) {
  const std::string type = reader.text("rope.scaling.type", "");
  if (type.empty()) return reader.positive("rope.scale_linear", 1.0);  // files of 2023
  if (type == "linear") return reader.positive("rope.scaling.factor", 1.0);
  if (type != "none") {
    fail(ErrorCode::kBadModel, "{}: {} is \"{}\"; supported are \"none\" and \"linear\"",
         reader.file().path(), reader.key("rope.scaling.type"), type);
  }
  return 1.0;
}

}  // namespace

RotationSpec read_rotation(const MetadataReader& reader, RopeLayout layout, int64_t head_dim) {
  RotationSpec spec;
  spec.layout = layout;
  spec.n_rot = reader.size("rope.dimension_count", head_dim, head_dim);
  if (spec.n_rot % 2 != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} must be even", reader.file().path(),
         reader.key("rope.dimension_count"), spec.n_rot);
  }
  spec.freq_base = reader.positive("rope.freq_base", 10000.0);
  spec.linear_factor = read_linear_factor(reader);
  return spec;
}

std::vector<double> inverse_frequencies(const RotationSpec& spec, std::span<const float> factors) {
  std::vector<double> inv_freq(spec.n_rot / 2);
  for (int64_t i = 0; i < std::ssize(inv_freq); ++i) {
    const double factor = factors.empty() ? 1.0 : factors[i];
    inv_freq[i] =
        std::pow(spec.freq_base, -2.0 * static_cast<double>(i) / static_cast<double>(spec.n_rot)) /
        (spec.linear_factor * factor);
  }
  return inv_freq;
}

}  // namespace snapkv
