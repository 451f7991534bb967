// SPDX-License-Identifier: MIT
// How a layer rotates queries and keys by position (RoPE, arXiv 2104.09864), with scaling for long
// contexts.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "model/family.h"

namespace snapkv {

class GgufFile;
class MetadataReader;

/// YaRN (arXiv 2309.00071, section 3): pairs that turn more than beta_fast times over the original
/// context keep their frequency, pairs that turn less than beta_slow times are slowed down by the
/// linear factor, and those in between use a mix of both.
struct YarnSpec {
  double beta_fast = 32.0;     // .rope.scaling.yarn_beta_fast
  double beta_slow = 1.0;      // .rope.scaling.yarn_beta_slow
  int64_t n_ctx_original = 0;  // .rope.scaling.original_context_length; 0: no YaRN

  /// Whether the first and the last pair that use a mix are whole numbers, as in GGUF files;
  /// snapkv.rope.yarn_truncate
  bool truncate = true;

  bool operator==(const YarnSpec&) const = default;
};

struct RotationSpec {
  int64_t n_rot = 0;  // values of a head that are rotated, 0: no rotation
  RopeLayout layout = RopeLayout::norm;
  double freq_base = 1e4;
  double linear_factor = 1.0;  // divides positions; with YaRN, only those of slowed down pairs
  YarnSpec yarn;
  float magnitude = 1.0f;  // RopeFrequencies::magnitude
  /// LongRoPE (arXiv 2402.13753): sessions with a context longer than this use the file's long
  /// factors, others its short ones. 0: the file has one set of factors, or none.
  int64_t n_ctx_short = 0;
  bool uses_factors = true;  // whether the file's factors apply, if it has some
  bool may_have_more = false;  // whether these may be more than n_rot / 2, of which the first apply

  bool operator==(const RotationSpec&) const = default;
};

/// Makes the file's metadata say that positions are scaled by YaRN, and that the context is
/// `factor` times the original one. 0: the factor, or the original context, that the file has.
/// Throws Error{kUsage} if the file has no factor, or scales positions in another way.
void scale_positions_by_yarn(GgufFile& file, double factor, int64_t n_ctx_original);
/// Makes the file's metadata say that positions are not scaled.
void remove_position_scaling(GgufFile& file);

/// Throws Error{kBadModel} naming the key whose value is not supported.
RotationSpec read_rotation(const MetadataReader& reader, RopeLayout layout, int64_t head_dim);

/// The rotation of layers with a sliding window: `full` with another frequency base, and without
/// scaling unless `windows.scaled`.
RotationSpec window_rotation(const MetadataReader& reader, const RotationSpec& full,
                             const SlidingWindows& windows);

/// [n_rot / 2]: freq_base^(-2i / n_rot) / factors[i], scaled as `spec` says. `factors` [n_rot / 2]
/// come from the file, or are empty.
std::vector<double> inverse_frequencies(const RotationSpec& spec, std::span<const float> factors);

}  // namespace snapkv
