// SPDX-License-Identifier: MIT
// The blocks that a layer of a family is made of.
#pragma once

#include <memory>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

/// The layer has such a block. Both throw Error{kBadModel} naming the tensor that is missing or of
/// another shape.
std::unique_ptr<TokenMixer> make_token_mixer(const BlockContext& context, LayerLoader& loader);
std::unique_ptr<FeedForward> make_feed_forward(const BlockContext& context, LayerLoader& loader);

}  // namespace snapkv
