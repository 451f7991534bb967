// SPDX-License-Identifier: MIT
// The decoder that all families of families.cpp share. Made by architecture.cpp.
#pragma once

#include <memory>

#include "model/architecture.h"

namespace snapkv {

/// Throws Error{kBadModel} naming the tensor that is missing, of another shape, or unknown.
std::unique_ptr<Architecture> make_decoder(const GgufFile& file, ModelSpec spec, Backend& backend);

}  // namespace snapkv
