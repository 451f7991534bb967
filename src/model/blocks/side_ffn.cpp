// SPDX-License-Identifier: MIT
#include "model/blocks/side_ffn.h"

#include <utility>

#include "backend/ops.h"

namespace snapkv {

SideFfn::SideFfn(const BlockContext& context, LayerLoader& loader,
                 std::unique_ptr<FeedForward> dense, std::unique_ptr<FeedForward> experts)
    : context_(context),
      dense_(std::move(dense)),
      experts_(std::move(experts)),
      dense_norm_(loader.norm("post_ffw_norm_1")),
      experts_before_(loader.norm("pre_ffw_norm_2")),
      experts_norm_(loader.norm("post_ffw_norm_2")),
      post_norm_(loader.norm("post_ffw_norm")) {
  const int64_t n_embd = loader.config().n_embd;
  normed_ = context.activations.add("experts' normed", n_embd, ActivationType::input);
  sum_ = context.activations.add("sum", n_embd);
  of_experts_ = context.activations.add("sum of experts", n_embd);
}

// x += post_norm(dense_norm(dense(normed)) + experts_norm(experts(experts_before(x))))
void SideFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n = x.shape[0];
  const Tensor sum = pass.buffers->get(sum_, n), of_experts = pass.buffers->get(of_experts_, n);
  const Tensor read = pass.buffers->get(normed_, n);
  const auto norm_in_place = [&](const Norm& norm, const Tensor& t) {
    normalize(backend, context_.spec, norm, t, t);
  };
  dense_->run(normed, sum, pass);
  norm_in_place(dense_norm_, sum);

  normalize(backend, context_.spec, experts_before_, x, read);
  const float zero = 0.0f;  // experts add to what is there
  ops::join(backend, {&x, 1}, of_experts);
  ops::scale(backend, of_experts, {&zero, 1});
  experts_->run(read, of_experts, pass);
  norm_in_place(experts_norm_, of_experts);

  ops::add(backend, sum, of_experts, 1.0f);
  norm_in_place(post_norm_, sum);
  ops::add(backend, x, sum, context_.spec.config.residual_scale);
}

std::vector<const Weight*> SideFfn::matrices() const { return dense_->matrices(); }

std::vector<const Norm*> SideFfn::norms() const {
  std::vector<const Norm*> all =
      present({&dense_norm_, &experts_before_, &experts_norm_, &post_norm_});
  for (const FeedForward* part : {dense_.get(), experts_.get()}) {
    const std::vector<const Norm*> some = part->norms();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace snapkv
