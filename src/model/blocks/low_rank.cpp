// SPDX-License-Identifier: MIT
#include "model/blocks/low_rank.h"

namespace snapkv {

LowRank::LowRank(const BlockContext& context, LayerLoader& loader, const std::string& name,
                 int64_t rank, Activation f, const std::string& bias)
    : f_(f) {
  const int64_t n_embd = loader.config().n_embd;
  down_ = loader.matrix(name + "1", rank, n_embd);
  up_ = loader.matrix(name + "2", n_embd, rank);
  if (!bias.empty()) up_.bias = loader.vector(bias, n_embd, Presence::required);
  if (f != Activation::identity) low_ = context.activations.add("low rank", rank);
  read_ = context.activations.add("low rank's input", rank, ActivationType::input);
}

void LowRank::run(const Tensor& x, const LayerPass& pass, const Tensor& out) const {
  const int64_t n = x.shape[0];
  const Tensor read = pass.buffers->get(read_, n), low = low_ ? pass.buffers->get(low_, n) : read;
  const LinearCall down[] = {{&down_, low}}, up[] = {{&up_, out}};
  pass.linear->apply(x, down);
  if (f_ != Activation::identity) ops::activate(*pass.backend, f_, low, {}, read);
  pass.linear->apply(read, up);
}

}  // namespace snapkv
