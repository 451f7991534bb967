// SPDX-License-Identifier: MIT
#include "model/blocks/compose.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "model/blocks/attention.h"
#include "model/blocks/channel_mix.h"
#include "model/blocks/delta_net.h"
#include "model/blocks/dense_ffn.h"
#include "model/blocks/early_ffn.h"
#include "model/blocks/experts_ffn.h"
#include "model/blocks/kimi_delta.h"
#include "model/blocks/latent_attention.h"
#include "model/blocks/linear_mixer.h"
#include "model/blocks/mamba.h"
#include "model/blocks/mamba2.h"
#include "model/blocks/mamba_heads.h"
#include "model/blocks/rwkv6.h"
#include "model/blocks/rwkv7.h"
#include "model/blocks/short_conv.h"
#include "model/blocks/side_ffn.h"
#include "model/blocks/side_mixer.h"
#include "model/blocks/sum_ffn.h"

namespace snapkv {
namespace {

std::unique_ptr<FeedForward> make_part(const FeedForwardPart& part, const BlockContext& context,
                                       LayerLoader& loader) {
  switch (part.kind) {
    case FeedForwardKind::dense:
    case FeedForwardKind::shared_expert:
      return std::make_unique<DenseFfn>(part, context, loader);
    case FeedForwardKind::channel_mix:
      return std::make_unique<ChannelMix>(part, context, loader);
    case FeedForwardKind::experts:
      return std::make_unique<ExpertsFfn>(part, context, loader);
  }
  SNAPKV_CHECK(false);
}

}  // namespace

std::unique_ptr<TokenMixer> make_token_mixer(const BlockContext& context, LayerLoader& loader) {
  switch (loader.layer().mixer) {
    case TokenMixerKind::attention:
      return std::make_unique<Attention>(context, loader);
    case TokenMixerKind::short_conv:
      return std::make_unique<ShortConvMixer>(context, loader);
    case TokenMixerKind::latent:
      return std::make_unique<LatentAttention>(context, loader);
    case TokenMixerKind::delta_net:
      return std::make_unique<DeltaNetMixer>(context, loader);
    case TokenMixerKind::kimi_delta:
      return std::make_unique<KimiDeltaMixer>(context, loader);
    case TokenMixerKind::mamba:
      return std::make_unique<MambaMixer>(context, loader);
    case TokenMixerKind::mamba2:
      return std::make_unique<Mamba2Mixer>(context, loader);
    case TokenMixerKind::mamba_heads:
      return std::make_unique<MambaHeadsMixer>(context, loader);
    case TokenMixerKind::rwkv6:
      return std::make_unique<Rwkv6Mixer>(context, loader);
    case TokenMixerKind::rwkv7:
      return std::make_unique<Rwkv7Mixer>(context, loader);
    case TokenMixerKind::attention_and_mamba2:
      return std::make_unique<SideMixer>(std::make_unique<Attention>(context, loader),
                                         std::make_unique<Mamba2Mixer>(context, loader));
    case TokenMixerKind::linear:
      return std::make_unique<LinearMixer>(context, loader);
    case TokenMixerKind::none:
      break;
  }
  SNAPKV_CHECK(false);
}

std::unique_ptr<FeedForward> make_feed_forward(const BlockContext& context, LayerLoader& loader) {
  std::vector<std::unique_ptr<FeedForward>> parts;
  for (const FeedForwardPart& part : loader.layer().ffn) {
    parts.push_back(make_part(part, context, loader));
  }
  const FeedForwardPart& first = loader.layer().ffn.front();
  const bool is_sum =
      first.kind == FeedForwardKind::experts && loader.config().norm_places != NormPlaces::before;
  if (parts.size() == 1 && !is_sum) return std::move(parts.front());
  if (loader.layer().ffn.back().early) {
    return std::make_unique<EarlyFfn>(context, loader, std::move(parts[0]), std::move(parts[1]));
  }
  if (first.beside) {
    return std::make_unique<SideFfn>(context, loader, std::move(parts[0]), std::move(parts[1]));
  }
  return std::make_unique<SumFfn>(context, loader, std::move(parts));
}

}  // namespace snapkv
