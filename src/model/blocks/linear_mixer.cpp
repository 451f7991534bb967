// SPDX-License-Identifier: MIT
#include "model/blocks/linear_mixer.h"

namespace snapkv {

LinearMixer::LinearMixer(const BlockContext& context, LayerLoader& loader)
    : context_(context),
      out_(context,
           loader.matrix("attn_output", loader.config().n_embd, loader.config().n_embd,
                         loader.family().output_bias),
           Norm()) {}

// x += W normed
void LinearMixer::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_out = pass.n_out;
  if (n_out == 0) return;
  out_.add_to(pass.x.slice(n - n_out, n), normed.slice(n - n_out, n), context_, pass);
}

}  // namespace snapkv
