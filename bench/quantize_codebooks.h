// SPDX-License-Identifier: MIT
// round_block() for the types of format/codebook_types.h: sets a superblock to values near x[0],
// x[1], ... Simple rather than good: llama-quantize searches for scales, and weighs values.
#pragma once

#include "format/block_types.h"

namespace snapkv {

void round_block(const float* x, BlockIQ2_XXS& block);
void round_block(const float* x, BlockIQ2_XS& block);
void round_block(const float* x, BlockIQ2_S& block);
void round_block(const float* x, BlockIQ3_XXS& block);
void round_block(const float* x, BlockIQ3_S& block);
void round_block(const float* x, BlockIQ1_S& block);
void round_block(const float* x, BlockIQ1_M& block);
void round_block(const float* x, BlockTQ1_0& block);
void round_block(const float* x, BlockTQ2_0& block);

}  // namespace snapkv
