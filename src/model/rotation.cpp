// SPDX-License-Identifier: MIT
#include "model/rotation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

/// 1 + 0.1 m ln(factor): YaRN's equation 15 with DeepSeek's additional multiplier m.
double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1.0 ? 1.0 : 1.0 + 0.1 * multiplier * std::log(factor);
}

/// The context that the model was trained with.
int64_t trained_context(const MetadataReader& reader) {
  return reader.has("rope.scaling.original_context_length")
             ? reader.size("rope.scaling.original_context_length", INT32_MAX)
             : reader.size("context_length", INT32_MAX);
}

void read_yarn(const MetadataReader& reader, RotationSpec& spec) {
  spec.yarn.beta_fast = reader.positive("rope.scaling.yarn_beta_fast", spec.yarn.beta_fast);
  spec.yarn.beta_slow = reader.positive("rope.scaling.yarn_beta_slow", spec.yarn.beta_slow);
  spec.yarn.n_ctx_original = trained_context(reader);
  spec.yarn.truncate = reader.file().get_bool("snapkv.rope.yarn_truncate", true);
  for (const char* key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor"}) {
    const double value = reader.positive(key, 1.0);
    if (value != 1.0) {
      fail(ErrorCode::kBadModel, "{}: {} = {}; only 1 is supported", reader.file().path(),
           reader.key(key), value);
    }
  }
  const double multiplier = reader.not_negative("rope.scaling.yarn_log_multiplier", 0.0);
  spec.magnitude *= static_cast<float>(yarn_magnitude(spec.linear_factor, 1.0) /
                                       yarn_magnitude(spec.linear_factor, multiplier));
}

void read_scaling(const MetadataReader& reader, RotationSpec& spec) {
  const std::string type = reader.text("rope.scaling.type", "");
  spec.magnitude = static_cast<float>(reader.positive("rope.scaling.attn_factor", 1.0));
  const bool has_factor = reader.has("rope.scaling.factor");
  if (type.empty()) {
    spec.linear_factor =
        reader.positive(has_factor ? "rope.scaling.factor" : "rope.scale_linear", 1.0);
  } else if (type == "linear" || type == "yarn" || type == "longrope") {
    spec.linear_factor = reader.positive("rope.scaling.factor", 1.0);
  } else if (type != "none") {
    fail(ErrorCode::kBadModel,
         "{}: {} is \"{}\"; supported are \"none\", \"linear\", \"yarn\" and \"longrope\"",
         reader.file().path(), reader.key("rope.scaling.type"), type);
  }
  if (type == "yarn") read_yarn(reader, spec);
  const bool has_long = reader.file().find_tensor("rope_factors_long.weight") != nullptr;
  if (type == "longrope" && !has_long) {
    fail(ErrorCode::kBadModel,
         "{}: {} is \"longrope\", and tensor rope_factors_long.weight is missing",
         reader.file().path(), reader.key("rope.scaling.type"));
  }
  if (!has_long) return;
  // files of MiniCPM 3 have no key for it, since its context is the original one
  spec.n_ctx_short = reader.architecture() == "minicpm3"
                         ? trained_context(reader)
                         : reader.size("rope.scaling.original_context_length", INT32_MAX);
}

GgufValue gguf_whole(int64_t value) {
  return {.type = GgufType::u32, .value = static_cast<uint64_t>(value)};
}
GgufValue gguf_real(double value) { return {.type = GgufType::f32, .value = value}; }
GgufValue gguf_text(const char* text) {
  return {.type = GgufType::string, .value = std::string(text)};
}

void refuse_own_factors(const GgufFile& file) {
  for (const char* tensor : {"rope_factors_long.weight", "rope_freqs.weight"}) {
    if (file.find_tensor(tensor) == nullptr) continue;
    fail(ErrorCode::kUsage,
         "rope_scaling: {} scales positions by factors of its own (tensor {}), for contexts up to "
         "its own one",
         file.path(), tensor);
  }
}

}  // namespace

void scale_positions_by_yarn(GgufFile& file, double factor, int64_t n_ctx_original) {
  refuse_own_factors(file);
  const MetadataReader reader(file);
  const bool is_yarn = reader.text("rope.scaling.type", "") == "yarn";
  if (factor == 0 && is_yarn) factor = reader.positive("rope.scaling.factor", 1.0);
  if (factor == 0) {
    fail(ErrorCode::kUsage,
         "rope_scaling is yarn: yarn_factor must say how many times as long the context becomes; "
         "{} has no factor, its makers may have published one",
         file.path());
  }
  if (factor < 1) {
    fail(ErrorCode::kUsage, "yarn_factor is {}; it must be at least 1", factor);
  }
  if (n_ctx_original == 0) n_ctx_original = trained_context(reader);
  const double n_ctx = std::round(factor * static_cast<double>(n_ctx_original));
  if (n_ctx > INT32_MAX) {
    fail(ErrorCode::kUsage, "yarn_factor is {}: {} times {} tokens are more than {}", factor,
         factor, n_ctx_original, INT32_MAX);
  }
  const std::string type = reader.key("rope.scaling.type");
  const std::string factor_key = reader.key("rope.scaling.factor");
  const std::string original = reader.key("rope.scaling.original_context_length");
  const std::string context = reader.key("context_length");
  file.replace(type, gguf_text("yarn"));
  file.replace(factor_key, gguf_real(factor));
  file.replace(original, gguf_whole(n_ctx_original));
  file.replace(context, gguf_whole(static_cast<int64_t>(n_ctx)));
}

void remove_position_scaling(GgufFile& file) {
  refuse_own_factors(file);
  const MetadataReader reader(file);
  const std::string type = reader.key("rope.scaling.type");
  const std::string context = reader.key("context_length");
  const int64_t n_ctx = trained_context(reader);
  file.replace(type, gguf_text("none"));
  file.replace(context, gguf_whole(n_ctx));
}

RotationSpec read_rotation(const MetadataReader& reader, RopeLayout layout, int64_t head_dim) {
  RotationSpec spec;
  spec.layout = layout;
  spec.n_rot = reader.size("rope.dimension_count", head_dim, head_dim);
  if (spec.n_rot % 2 != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} must be even", reader.file().path(),
         reader.key("rope.dimension_count"), spec.n_rot);
  }
  spec.freq_base = reader.positive("rope.freq_base", 10000.0);
  read_scaling(reader, spec);
  return spec;
}

RotationSpec window_rotation(const MetadataReader& reader, const RotationSpec& full,
                             const SlidingWindows& windows) {
  RotationSpec spec;
  if (windows.scaled) {
    spec = full;
  } else {
    spec.n_rot = full.n_rot;
    spec.layout = full.layout;
  }
  const double freq_base = windows.freq_base > 0 ? windows.freq_base : full.freq_base;
  spec.freq_base = reader.positive("rope.freq_base_swa", freq_base);
  const int64_t n_rot = reader.size("rope.dimension_count_swa", spec.n_rot, 1 << 16);
  if (windows.own_width) {
    if (n_rot % 2 != 0) {
      fail(ErrorCode::kBadModel, "{}: {} = {} must be even", reader.file().path(),
           reader.key("rope.dimension_count_swa"), n_rot);
    }
    spec.n_rot = n_rot;
  } else if (n_rot != spec.n_rot) {
    fail(ErrorCode::kBadModel, "{}: {} = {} differs from {} = {}, which is not supported",
         reader.file().path(), reader.key("rope.dimension_count_swa"), n_rot,
         reader.key("rope.dimension_count"), spec.n_rot);
  }
  return spec;
}

std::vector<double> inverse_frequencies(const RotationSpec& spec, std::span<const float> factors) {
  const auto n_rot = static_cast<double>(spec.n_rot);
  // index of the pair that turns `turns` times over the original context (YaRN, equation 17)
  const auto pair_of = [&](double turns) {
    const auto n_ctx = static_cast<double>(spec.yarn.n_ctx_original);
    return n_rot * std::log(n_ctx / (turns * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(spec.freq_base));
  };
  double low = 0.0, high = 0.0;  // pairs below `low` keep their frequency, above `high` are slowed
  if (spec.yarn.n_ctx_original > 0) {
    low = pair_of(spec.yarn.beta_fast);
    high = pair_of(spec.yarn.beta_slow);
    if (spec.yarn.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(0.0, low);
    high = std::min(n_rot - 1.0, high);
  }
  std::vector<double> inv_freq(spec.n_rot / 2);
  for (int64_t i = 0; i < std::ssize(inv_freq); ++i) {
    const auto pair = static_cast<double>(i);
    const double factor = factors.empty() ? 1.0 : factors[i];
    const double original = std::pow(spec.freq_base, -2.0 * pair / n_rot) / factor;
    double slowed = 1.0;  // share of the slowed down frequency
    if (spec.yarn.n_ctx_original > 0) {
      slowed = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
    }
    inv_freq[i] = original * (1.0 - slowed) + original / spec.linear_factor * slowed;
  }
  return inv_freq;
}

}  // namespace snapkv
