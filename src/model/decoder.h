// SPDX-License-Identifier: MIT
// The decoder that all families in families.cpp share.
#pragma once

#include <memory>

#include "model/architecture.h"

namespace snapkv {

/// Throws Error{kBadModel} naming the tensor that is missing, has another shape, or is unknown.
std::unique_ptr<Architecture> make_decoder(const GgufFile& file, ModelSpec spec);

}  // namespace snapkv
