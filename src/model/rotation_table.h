// SPDX-License-Identifier: MIT
// RotationTable: the frequencies of every rotation that layers of a model have.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "model/model_spec.h"

namespace snapkv {

class GgufFile;

class RotationTable {
 public:
  /// `factors`, `long_factors`: [n_rot / 2] f32 of the file, or empty. Throws Error{kBadModel}
  /// where a rotation has another number of pairs.
  void add(const GgufFile& file, const ModelSpec& spec, const Tensor& factors,
           const Tensor& long_factors);
  /// A rotation that has been added, in sessions with a context of n_ctx tokens.
  RopeFrequencies find(const RotationSpec& rotation, int64_t n_ctx) const;

 private:
  struct Frequencies {
    RotationSpec spec;
    bool is_long;                  // of contexts longer than spec.n_ctx_short
    std::vector<double> inv_freq;  // [n_rot / 2]
  };
  std::vector<Frequencies> all_;
};

}  // namespace snapkv
