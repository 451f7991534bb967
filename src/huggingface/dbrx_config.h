// SPDX-License-Identifier: MIT
// What config.json says of DBRX, whose fields have names of their own.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

void read_dbrx_sizes(const JsonFields& c, Config& config);
/// Experts, limits of queries, keys and values, and the rotation.
void read_dbrx(const JsonFields& c, Config& config);

}  // namespace snapkv::huggingface
