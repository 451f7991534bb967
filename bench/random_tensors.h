// SPDX-License-Identifier: MIT
// The tensors of a random model: which ones a family has, their sizes, and how their values are
// distributed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/random_model.h"

namespace snapkv {

struct TensorPlan {
  std::string name;
  DType dtype;
  int64_t n_rows;  // 1 for vectors
  int64_t n_cols;
  bool is_vector;
  float mean, stddev;
  float last = 0;          // > 0: not random, but from 1 to this
  int64_t n_outer = 0;     // > 0: so many matrices in one tensor
  bool is_spread = false;  // with n_outer: whether another dimension of 1 lies before that one
  int64_t n_first = 0;     // > 0: with `last`, only so many values; the others are huge

  int64_t n_all_rows() const { return std::max<int64_t>(n_outer, 1) * n_rows; }
  int64_t bytes() const { return n_all_rows() * row_bytes(dtype, n_cols); }
};

/// In the order of the file.
std::vector<TensorPlan> plan_tensors(const RandomModelShape& shape,
                                     const RandomModelOptions& options);

/// Whether layer il has a short convolution in place of attention.
bool has_short_conv(const RandomFamily& family, int64_t il);
/// Whether it has Kimi Delta Attention.
bool has_kimi_delta(const RandomFamily& family, int64_t il);
/// What layer il has in a model with mixers of Mamba or Mamba-2: a letter of its pattern, else 0.
char scan_letter(const RandomFamily& family, int64_t il);

}  // namespace snapkv
