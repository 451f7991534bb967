// SPDX-License-Identifier: MIT
// What config.json says of Falcon-H1: attention and a mixer of Mamba-2 in every layer, and the
// factors (muP, arXiv 2203.03466) that GGUF files have in the matrices.
#pragma once

#include <vector>

#include "huggingface/config.h"

namespace snapkv::huggingface {

void read_falcon_h1(const JsonFields& c, Config& config);
/// The factors of a matrix's rows; empty if all are 1.
std::vector<RowFactor> row_factors(const Config& config, Factor of);

/// The factors as keys, for a folder that is read in place.
void add_factor_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
