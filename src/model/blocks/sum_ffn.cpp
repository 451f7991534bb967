// SPDX-License-Identifier: MIT
#include "model/blocks/sum_ffn.h"

#include <utility>

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

SumFfn::SumFfn(const BlockContext& context, std::vector<std::unique_ptr<FeedForward>> parts)
    : parts_(std::move(parts)) {
  // a norm after the network would be of the sum, and without one before it `normed` may be x
  SNAPKV_CHECK(context.spec.family->norm_places == NormPlaces::before &&
               context.spec.family->ffn_norm == Presence::required);
}

void SumFfn::run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const {
  for (const auto& part : parts_) part->run(normed, x, pass);
}

std::vector<const Weight*> SumFfn::matrices() const { return of_all(parts_, &Block::matrices); }

std::vector<const Weight*> SumFfn::other_matrices() const {
  return of_all(parts_, &Block::other_matrices);
}

std::vector<Tensor> SumFfn::vectors() const { return of_all(parts_, &Block::vectors); }

}  // namespace snapkv
