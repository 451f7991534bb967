// SPDX-License-Identifier: MIT
// Code points that newer versions of Unicode say something about which tokenizers do not know.
#pragma once

#include <cstdint>

namespace snapkv::unicode {

/// Whether a code point is assigned since Unicode 16.0, and has no category before.
bool is_assigned_after_15(uint32_t code_point);

/// Whether a code point has a decomposition that Hugging Face's tokenizers do not know, which have
/// the tables of an earlier version.
bool is_decomposed_later(uint32_t code_point);

}  // namespace snapkv::unicode
