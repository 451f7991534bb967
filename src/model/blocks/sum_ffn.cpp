// SPDX-License-Identifier: MIT
#include "model/blocks/sum_ffn.h"

#include <string>
#include <utility>

#include "backend/ops.h"
#include "base/check.h"

namespace snapkv {
namespace {

/// What each part has of something, one after the other.
template <typename T>
std::vector<T> of_all(const std::vector<std::unique_ptr<FeedForward>>& parts,
                      std::vector<T> (Block::*get)() const) {
  std::vector<T> all;
  for (const auto& part : parts) {
    const std::vector<T> some = (part.get()->*get)();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

SumFfn::SumFfn(const BlockContext& context, LayerLoader& loader,
               std::vector<std::unique_ptr<FeedForward>> parts)
    : context_(context), parts_(std::move(parts)), factor_(loader.layer().factors.sum) {
  // without a norm before the network `normed` may be x
  SNAPKV_CHECK(loader.config().norm_places != NormPlaces::after &&
               loader.family().ffn_norm == Presence::required);
  if (loader.config().norm_places == NormPlaces::before) return;
  constexpr const char* kOfGrok = "layer_output_norm";
  post_norm_ =
      loader.norm(loader.has(std::string(kOfGrok) + ".weight") ? kOfGrok : "post_ffw_norm");
  sum_ = context.activations.add("sum", loader.config().n_embd);
}

// x += part(normed) + ..., or x += residual_scale * post_norm(factor * (part(normed) + ...))
void SumFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  if (!post_norm_) {
    for (const auto& part : parts_) part->run(normed, x, pass);
    return;
  }
  const Tensor sum = pass.buffers->get(sum_, x.shape[0]);
  // a network that every token passes, which is the last part, begins the sum
  if (parts_.size() == 1) {
    const float zero = 0.0f;  // experts add to what is there
    ops::join(*pass.backend, {&x, 1}, sum);
    ops::scale(*pass.backend, sum, {&zero, 1});
  }
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) (*part)->run(normed, sum, pass);
  if (factor_ != 1.0f) ops::scale(*pass.backend, sum, {&factor_, 1});
  normalize(*pass.backend, context_.spec, post_norm_, sum, sum);
  ops::add(*pass.backend, x, sum, context_.spec.config.residual_scale);
}

std::vector<const Weight*> SumFfn::matrices() const { return of_all(parts_, &Block::matrices); }

std::vector<const Weight*> SumFfn::other_matrices() const {
  return of_all(parts_, &Block::other_matrices);
}

std::vector<Tensor> SumFfn::vectors() const { return of_all(parts_, &Block::vectors); }

}  // namespace snapkv
