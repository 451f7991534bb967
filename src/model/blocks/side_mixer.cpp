// SPDX-License-Identifier: MIT
#include "model/blocks/side_mixer.h"

#include <utility>

namespace snapkv {
namespace {

template <typename T>
std::vector<T> both_of(std::vector<T> all, const std::vector<T>& others) {
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

SideMixer::SideMixer(std::unique_ptr<TokenMixer> attention, std::unique_ptr<TokenMixer> recurrent)
    : attention_(std::move(attention)), recurrent_(std::move(recurrent)) {}

// one after the other: they compute in the same memory
void SideMixer::run(const Tensor& normed, const LayerPass& pass) const {
  attention_->run(normed, pass);
  recurrent_->run(normed, pass);
}

std::vector<const Weight*> SideMixer::matrices() const {
  return both_of(attention_->matrices(), recurrent_->matrices());
}
std::vector<const Weight*> SideMixer::other_matrices() const {
  return both_of(attention_->other_matrices(), recurrent_->other_matrices());
}
std::vector<const Norm*> SideMixer::norms() const {
  return both_of(attention_->norms(), recurrent_->norms());
}
std::vector<Tensor> SideMixer::vectors() const {
  return both_of(attention_->vectors(), recurrent_->vectors());
}

}  // namespace snapkv
