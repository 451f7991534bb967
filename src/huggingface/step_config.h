// SPDX-License-Identifier: MIT
// What config.json says of Step 3.5 Flash and of the text model of Step 3.7 Flash, whose layers
// with windows have heads and a rotation of their own, and some of whose networks limit their
// gates.
#pragma once

#include "huggingface/config.h"

namespace snapkv::huggingface {

void read_step(const JsonFields& c, Config& config);
void add_step_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
