// SPDX-License-Identifier: MIT
#include "model/blocks/layer_input.h"

#include <cmath>
#include <limits>

#include "backend/ops.h"
#include "base/error.h"

namespace snapkv {
namespace {

void scale_all(Backend& backend, const Tensor& x, double factor) {
  const auto f = static_cast<float>(factor);
  ops::scale(backend, x, {&f, 1});
}

}  // namespace

LayerInputTables LayerInputTables::load(const ModelSpec& spec, WeightLoader& weights,
                                        const Weight& token_embd) {
  const ModelConfig& c = spec.config;
  const int64_t n = c.n_layer_input;
  LayerInputTables tables;
  tables.token_embd = token_embd;
  tables.table = weights.matrix("per_layer_token_embd", c.n_vocab, c.n_layer * n);
  tables.projection = weights.matrix("per_layer_model_proj", c.n_layer * n, c.n_embd);
  tables.norm = {weights.vector("per_layer_proj_norm.weight", n), {}};
  const DType type = tables.table.w.dtype;
  if (n % block_size(type) != 0) {
    weights.refuse("per_layer_token_embd.weight",
                   fmt::format("has type {}, whose blocks of {} values are not whole in the {} "
                               "values of a layer",
                               name(type), block_size(type), n));
  }
  if (c.n_vocab > std::numeric_limits<int32_t>::max() / c.n_layer) {
    weights.refuse("per_layer_token_embd.weight",
                   fmt::format("has {} rows for {} layers each, which are more than {}", c.n_vocab,
                               c.n_layer, std::numeric_limits<int32_t>::max()));
  }
  return tables;
}

LayerInput::LayerInput(const LayerInputTables& tables, const BlockContext& context,
                       LayerLoader& loader)
    : context_(context),
      il_(loader.il()),
      n_(loader.config().n_layer_input),
      token_embd_(tables.token_embd.w),
      table_(tables.table.w.reshaped({loader.config().n_vocab * loader.config().n_layer, n_})),
      projection_(tables.projection.rows(il_ * n_, (il_ + 1) * n_)),
      norm_(tables.norm),
      gate_(loader.matrix("inp_gate", n_, loader.config().n_embd)),
      out_(loader.matrix("proj", loader.config().n_embd, n_)),
      post_norm_(loader.norm("post_norm")) {
  ActivationPlan& plan = context.activations;
  const int64_t n_embd = loader.config().n_embd;
  embedding_ = plan.add("tokens' embeddings", n_embd);
  read_ = plan.add("normed", n_embd, ActivationType::input);
  input_ = plan.add("layer's input", n_);
  row_ = plan.add("layer's row", n_);
  gated_ = plan.add("gated input", n_, ActivationType::input);
  branch_ = plan.add("branch", n_embd);
}

void LayerInput::run(const Tensor& x, const LayerPass& pass) const {
  ops::add(*pass.backend, x, compute(x, pass), 1.0f);
}

// post_norm(Wout (f(Wgate x) * input))
Tensor LayerInput::compute(const Tensor& x, const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n = x.shape[0];
  const Tensor input = make_input(pass.tokens.last(n), pass);
  const Tensor gate = pass.buffers->get(row_, n), gated = pass.buffers->get(gated_, n);
  const Tensor branch = pass.buffers->get(branch_, n);
  const LinearCall open[] = {{&gate_, gate}};
  pass.linear->apply(as_input(backend, x, pass.buffers->get(read_, n)), open);
  ops::activate(backend, context_.spec.family->activation, gate, input, gated);
  const LinearCall out[] = {{&out_, branch}};
  pass.linear->apply(gated, out);
  normalize(backend, context_.spec, post_norm_, branch, branch);
  return branch;
}

/// (norm(Wprojection e / sqrt(n_embd)) + sqrt(n) row) / sqrt(2), where e is a token's embedding as
/// the first layer gets it, and row what the table has. [n_tokens, n]
Tensor LayerInput::make_input(std::span<const int32_t> tokens, const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const ModelConfig& c = context_.spec.config;
  const auto n = std::ssize(tokens);
  const Tensor embedding = pass.buffers->get(embedding_, n);
  const Tensor input = pass.buffers->get(input_, n), row = pass.buffers->get(row_, n);
  ops::embed(backend, token_embd_, tokens, embedding);
  const LinearCall projection[] = {{&projection_, input}};
  pass.linear->apply(as_input(backend, embedding, pass.buffers->get(read_, n)), projection);
  scale_all(backend, input,
            static_cast<double>(c.embedding_scale) / std::sqrt(static_cast<double>(c.n_embd)));
  normalize(backend, context_.spec, norm_, input, input);
  std::vector<int32_t> rows;
  for (const int32_t token : tokens) {
    rows.push_back(token * static_cast<int32_t>(c.n_layer) + static_cast<int32_t>(il_));
  }
  ops::embed(backend, table_, rows, row);
  ops::add(backend, input, row, static_cast<float>(std::sqrt(static_cast<double>(n_))));
  scale_all(backend, input, std::sqrt(0.5));
  return input;
}

}  // namespace snapkv
