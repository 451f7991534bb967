// SPDX-License-Identifier: MIT
#include "model/blocks/layer_loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace snapkv {

LayerLoader::LayerLoader(const ModelSpec& spec, WeightLoader& weights, int64_t il)
    : spec_(spec), weights_(weights), il_(il), prefix_(fmt::format("blk.{}.", il)) {}

Norm LayerLoader::load_norm(const ModelSpec& spec, WeightLoader& weights, const std::string& name,
                            Presence presence) {
  const int64_t n_embd = spec.config.n_embd;
  if (spec.family->plain_norms) return {weights.ones(n_embd), {}};
  Norm norm;
  // files of Falcon-H1 leave the ending out of the name of one of their norms
  const bool is_bare = weights.has(name) && !weights.has(name + ".weight");
  norm.weight = weights.vector(is_bare ? name : name + ".weight", n_embd, presence);
  if (norm && spec.family->norm == NormKind::layer) {
    norm.bias = weights.vector(name + ".bias", n_embd, spec.family->norm_bias);
  }
  return norm;
}

std::vector<Weight> LayerLoader::experts(const std::string& name, int64_t n_out, int64_t n_in) {
  const int64_t n_expert = config().n_expert;
  std::vector<Weight> all;
  const bool merged = has(name + "_exps.weight");
  if (merged || (!has(name + ".0.weight") && !has(name + ".1.weight"))) {
    all = weights_.matrices(prefix_ + name + "_exps.weight", n_expert, n_out, n_in);
    const Tensor biases =
        weights_.vectors(prefix_ + name + "_exps.bias", n_expert, n_out, family().expert_bias);
    for (int64_t e = 0; biases && e < n_expert; ++e) {
      all[e].bias = biases.slice(e, e + 1).reshaped({n_out});
    }
    return all;
  }
  for (int64_t e = 0; e < n_expert; ++e) {
    all.push_back(matrix(fmt::format("{}.{}", name, e), n_out, n_in, family().expert_bias));
  }
  return all;
}

std::vector<Weight> LayerLoader::adjugates(const std::string& name, int64_t n, int64_t n_out,
                                           int64_t n_in) {
  if (!has(name + ".0.weight")) return matrices(name + "exps", n, n_out, n_in);
  std::vector<Weight> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(matrix(fmt::format("{}.{}", name, i), n_out, n_in));
  return all;
}

float LayerLoader::number(const std::string& name) {
  const Tensor value = vector(name, 1, Presence::required);
  const float number = *value.at<const float>(0);
  if (!std::isfinite(number)) weights_.refuse(prefix_ + name, fmt::format("holds {}", number));
  return number;
}

Norm LayerLoader::query_gains(const std::string& name, int64_t n_head) {
  const int64_t head_dim = layer().state.head_dim_k;
  const Tensor gains = rows(name + ".weight", n_head, 1);
  const Tensor weight = ones(n_head * head_dim).reshaped({n_head, head_dim});
  for (int64_t h = 0; h < n_head; ++h) {
    std::fill_n(weight.at<float>(h), head_dim, *gains.at<const float>(h));
  }
  return {weight, {}};
}

Norm LayerLoader::head_norm(const std::string& name, int64_t n_head) {
  const std::string full = prefix_ + name + ".weight";
  const int64_t head_dim = layer().state.head_dim_k;
  const Presence presence = family().qk_norm_weights;
  constexpr float kEpsilon = 1e-5f;  // of layer norms of heads
  switch (family().qk_norm) {
    case QkNorm::none:
    case QkNorm::query_gains:
      return {};
    case QkNorm::each_head:
      return {weights_.vector(full, head_dim, presence), {}};
    case QkNorm::own_weights:
      if (!family().qk_layer_norm) {
        return {weights_.vectors(full, n_head, head_dim, presence), {}};
      }
      return {weights_.vectors(full, n_head, head_dim, presence),
              weights_.vectors(prefix_ + name + ".bias", n_head, head_dim, Presence::optional),
              kEpsilon, true};
    case QkNorm::all_together:
      break;
  }
  return {weights_.vector(full, n_head * head_dim, presence), {}};
}

}  // namespace snapkv
