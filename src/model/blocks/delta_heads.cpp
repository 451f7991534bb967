// SPDX-License-Identifier: MIT
#include "model/blocks/delta_heads.h"

#include <vector>

namespace snapkv {

void apply_delta_rule(const LayerSpec& layer, const Weight& conv, const Tensor& qkv,
                      const Tensor& convolved, const Decays& decays, const Tensor& heads,
                      const LayerPass& pass) {
  const DeltaNetSpec& net = layer.delta_net;
  const int64_t n = qkv.shape[0], n_qkv = net.n_qkv();
  ops::short_conv(*pass.backend, {.in = qkv.reshaped({n, 1, n_qkv}),
                                  .weight = conv.w,
                                  .sequences = pass.sequences,
                                  .out = convolved});
  const std::vector<SequenceRows> sequences =
      with_states_from(pass.sequences, n_qkv * (layer.conv_kernel - 1));
  ops::delta_rule(*pass.backend, {.qkv = convolved,
                                  .decay = decays.decay,
                                  .beta = decays.beta,
                                  .rate = decays.rate,
                                  .decay_bias = decays.bias,
                                  .n_head_k = net.n_head_k,
                                  .d_k = net.d_k,
                                  .keys_take_turns = net.keys_take_turns,
                                  .log_floor = net.log_floor,
                                  .sequences = sequences,
                                  .out = heads.reshaped({n, net.n_head, net.d_v})});
}

void add_gated_heads(const BlockContext& context, const LayerSpec& layer, const Norm& norm,
                     const ResidualOutput& out, const Tensor& heads, Activation f,
                     const Tensor& gate, const Tensor& gated, const LayerPass& pass) {
  const DeltaNetSpec& net = layer.delta_net;
  const int64_t n = pass.x.shape[0], n_out = heads.shape[0];
  const Tensor each_head = heads.reshaped({n_out * net.n_head, net.d_v});
  normalize(*pass.backend, context.spec, norm, each_head, each_head);
  ops::activate(*pass.backend, f, gate, heads, gated);
  out.add_to(pass.x.slice(n - n_out, n), gated, context, pass);
}

}  // namespace snapkv
