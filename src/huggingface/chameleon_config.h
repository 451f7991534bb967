// SPDX-License-Identifier: MIT
// What config.json says of Chameleon: where norms are, and which tokens are those of pictures.
#pragma once

namespace snapkv::huggingface {

struct Config;
class JsonFields;
class Keys;

/// GgufMapping::read_own and add_own_keys.
void read_chameleon(const JsonFields& c, Config& config);
void add_chameleon_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
