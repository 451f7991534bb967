// SPDX-License-Identifier: MIT
// LayerLoader: the tensors of one layer, by the names that they have after "blk.N.".
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/blocks/norm.h"
#include "model/model_spec.h"
#include "model/weights.h"

namespace snapkv {

/// Every method throws Error{kBadModel} naming the tensor that is missing or of another shape.
class LayerLoader {
 public:
  LayerLoader(const ModelSpec& spec, WeightLoader& weights, int64_t il);

  const ModelSpec& spec() const { return spec_; }
  const ModelConfig& config() const { return spec_.config; }
  const Family& family() const { return *spec_.family; }
  int64_t il() const { return il_; }
  const LayerSpec& layer() const { return spec_.layers[il_]; }

  bool has(const std::string& name) const { return weights_.has(prefix_ + name); }
  /// The first size of a matrix; 0 if it is not there.
  int64_t n_rows(const std::string& name) const { return weights_.n_rows(prefix_ + name); }
  /// [n_out, n_in], with its bias; `name` without ".weight".
  Weight matrix(const std::string& name, int64_t n_out, int64_t n_in,
                Presence bias = Presence::optional) {
    return weights_.matrix(prefix_ + name, n_out, n_in, bias);
  }
  /// [n_out, n_in] of every expert, with their biases: of one tensor for all, or of one for each
  /// (expert_names.h); `name` without "_exps.weight".
  std::vector<Weight> experts(const std::string& name, int64_t n_out, int64_t n_in);
  /// [n_rows, n] f32, converted when the file has f16 or bf16; `name` is the full name.
  Tensor rows(const std::string& name, int64_t n_rows, int64_t n) {
    return weights_.vectors(prefix_ + name, n_rows, n, Presence::required);
  }
  /// [n] f32, or empty if it is optional and missing; `name` is the full name.
  Tensor vector(const std::string& name, int64_t n, Presence presence) {
    return weights_.vector(prefix_ + name, n, presence);
  }
  /// n matrices [n_out, n_in] of one tensor; `name` without ".weight".
  std::vector<Weight> matrices(const std::string& name, int64_t n, int64_t n_out, int64_t n_in) {
    return weights_.matrices(prefix_ + name + ".weight", n, n_out, n_in);
  }
  /// n matrices that experts share, in one tensor, NAMEexps, or in one each, NAME.0 ...
  std::vector<Weight> adjugates(const std::string& name, int64_t n, int64_t n_out, int64_t n_in);
  /// The same of each head.
  std::vector<Weight> heads(const std::string& name, int64_t n_head, int64_t n_out, int64_t n_in) {
    return matrices(name, n_head, n_out, n_in);
  }
  /// [n_in, n_out], as values of f32, f16 or bf16, of a matrix [n_out, n_in] of any type.
  Weight transposed(const Weight& matrix) { return {weights_.transposed(matrix.w), {}}; }
  /// WeightLoader::scaled
  Tensor scaled(const Tensor& w, std::initializer_list<WeightLoader::RowsFactor> factors) {
    return weights_.scaled(w, {factors.begin(), factors.size()});
  }
  /// WeightLoader::stacked
  Tensor stacked(std::initializer_list<Tensor> parts) {
    return weights_.stacked({parts.begin(), parts.size()});
  }
  /// [n_embd]; `name` without ".weight".
  Norm norm(const std::string& name, Presence presence = Presence::required) {
    return load_norm(spec_, weights_, prefix_ + name, presence);
  }
  /// [n] f32, all 1, for the caller to fill in.
  Tensor ones(int64_t n) { return weights_.ones(n); }
  /// [n] without weights.
  Norm plain_norm(int64_t n) { return {weights_.ones(n), {}}; }
  /// Of queries that have a factor for each head, [n_head, head_dim]; `name` without ".weight".
  Norm query_gains(const std::string& name, int64_t n_head);
  /// Of the queries or keys of n_head heads, before they are rotated; `name` without ".weight".
  Norm head_norm(const std::string& name, int64_t n_head);
  /// The only value of a tensor, which must be finite.
  float number(const std::string& name);
  /// WeightLoader::refuse; `name` is the full name.
  [[noreturn]] void refuse(const std::string& name, const std::string& reason) const {
    weights_.refuse(prefix_ + name, reason);
  }
  /// Marks a tensor as known though unused.
  void ignore(const std::string& name) { weights_.ignore(prefix_ + name); }

  static Norm load_norm(const ModelSpec& spec, WeightLoader& weights, const std::string& name,
                        Presence presence);

 private:
  const ModelSpec& spec_;
  WeightLoader& weights_;
  const int64_t il_;
  const std::string prefix_;
};

}  // namespace snapkv
