// SPDX-License-Identifier: MIT
// A metadata value as text for people.
#pragma once

#include <string>

#include "format/gguf.h"
#include "snapkv/model_info.h"

namespace snapkv {

MetadataEntry describe_entry(const std::string& key, const GgufValue& value);

}  // namespace snapkv
