// SPDX-License-Identifier: MIT
#include "model/blocks/short_conv.h"

#include "backend/ops.h"

namespace snapkv {

ShortConvMixer::ShortConvMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context) {
  const int64_t n_embd = loader.config().n_embd;
  in_ = loader.matrix("shortconv.in_proj", 3 * n_embd, n_embd);
  conv_.w = loader.rows("shortconv.conv.weight", n_embd, loader.layer().conv_kernel);
  out_ = {context, loader.matrix("shortconv.out_proj", n_embd, n_embd), Norm()};
  bcx_ = context.activations.add_heads("bcx", 3, n_embd);
  conv_out_ = context.activations.add("conv", n_embd, ActivationType::input);
}

// x += Wout (c * conv(b * x')), with b, c, x' = Win normed
void ShortConvMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_out = pass.n_out, n_embd = normed.shape[1];
  const Tensor bcx = pass.buffers->get(bcx_, n), mixed = pass.buffers->get(conv_out_, n);
  const LinearCall in[] = {{&in_, bcx.reshaped({n, 3 * n_embd})}};
  pass.linear->apply(normed, in);
  ops::short_conv(*pass.backend, {bcx, conv_.w, pass.sequences, mixed});
  if (n_out == 0) return;
  out_.add_to(pass.x.slice(n - n_out, n), mixed.slice(n - n_out, n), context_, pass);
}

}  // namespace snapkv
