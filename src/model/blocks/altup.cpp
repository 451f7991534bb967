// SPDX-License-Identifier: MIT
#include "model/blocks/altup.h"

#include <cmath>
#include <string>

#include "backend/ops.h"

namespace snapkv {
namespace {

/// [n, n_hidden] as [n, n_streams, n_embd].
Tensor streams(const Tensor& x, const ModelConfig& c) {
  return x.reshaped({x.shape[0], c.n_streams, c.n_embd});
}

/// The last rows of pass.x, those that the layer's output is needed of, as streams.
Tensor last_streams(const Tensor& x, int64_t n_out, int64_t n_streams) {
  const int64_t n = x.shape[0];
  return x.slice(n - n_out, n).reshaped({n_out, n_streams, x.shape[1] / n_streams});
}

/// A product in f32, whatever the type of other products: these few values decide how whole streams
/// are mixed.
void project_f32(Backend& backend, const Tensor& x, const Weight& weight, const Tensor& out) {
  const Projection projection{weight.w, weight.bias, out};
  ops::project(backend, x, {&projection, 1});
}

/// The matrices of all streams but the first: of one tensor, or each of its own, as Hugging Face
/// folders have them.
std::vector<Weight> load_made(WeightLoader& weights, const std::string& name, int64_t n,
                              int64_t n_embd) {
  const std::string full = name + ".weight";
  if (weights.has(full) || !weights.has(name + ".0.weight")) {
    return weights.matrices(full, n, n_embd, n_embd);
  }
  std::vector<Weight> all;
  for (int64_t i = 0; i < n; ++i) {
    all.push_back(weights.matrix(name + "." + std::to_string(i), n_embd, n_embd));
  }
  return all;
}

void scale_stream(Backend& backend, const Tensor& x, double factor) {
  const auto f = static_cast<float>(factor);
  ops::scale(backend, x, {&f, 1});
}

}  // namespace

AltUpLayer::AltUpLayer(const BlockContext& context, LayerLoader& loader)
    : context_(context), n_streams_(loader.config().n_streams) {
  const int64_t n_embd = loader.config().n_embd, k = n_streams_, rank = loader.layer().laurel_rank;
  router_ = loader.matrix("altup_router", k, n_embd);
  router_norm_ = loader.norm("altup_router_norm");
  predict_ = loader.matrix("altup_predict_coef", k * k, k);
  correct_ = loader.matrix("altup_correct_coef", k, k);
  correct_.bias = loader.plain_norm(k).weight;  // corrections are multiplied by 1 + W m
  scale_ = loader.vector("altup_correct_scale.weight", n_embd, Presence::required);
  low_ = loader.matrix("laurel_l", rank, n_embd);
  high_ = loader.matrix("laurel_r", n_embd, rank);
  low_norm_ = loader.norm("laurel_post_norm");
  ActivationPlan& plan = context.activations;
  active_ = plan.add("active stream", n_embd);
  stream_ = plan.add("stream", n_embd);
  low_rank_ = plan.add("low rank", n_embd);
  branch_ = plan.add("branch", n_embd);
  between_ = plan.add("between low ranks", rank, ActivationType::input);
  modalities_ = plan.add("modalities", k);
  coefficients_ = plan.add("stream coefficients", k * k);
}

/// tanh(Wrouter normed / n_embd): what the mix of streams depends on. [n, n_streams]
Tensor AltUpLayer::modalities(const Tensor& normed, const LayerPass& pass) const {
  const Tensor m = pass.buffers->get(modalities_, normed.shape[0]);
  project_f32(*pass.backend, normed, router_, m);
  scale_stream(*pass.backend, m, 1.0 / static_cast<double>(normed.shape[1]));
  ops::softcap(*pass.backend, m, 1.0f);
  return m;
}

// x_i += sum_j (Wpredict m)_ij x_j, where m is of x_0
Tensor AltUpLayer::predict(const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n = pass.x.shape[0];
  const Tensor x = streams(pass.x, context_.spec.config);
  const Tensor stream = pass.buffers->get(stream_, n), active = pass.buffers->get(active_, n);
  const Tensor coefficients = pass.buffers->get(coefficients_, n);
  ops::take_stream(backend, x, 0, {}, stream);
  normalize(backend, context_.spec, router_norm_, stream, stream);
  project_f32(backend, modalities(stream, pass), predict_, coefficients);
  ops::mix_streams(backend, x, coefficients);
  ops::take_stream(backend, x, 0, {}, active);
  return active;
}

// norm(active) + low_norm(Whigh Wlow norm(active)), where the first term is not rounded
Tensor AltUpLayer::low_rank(const Norm& norm, const Tensor& active, const Tensor& normed,
                            const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n = active.shape[0], n_out = pass.n_out;
  const Tensor out = pass.buffers->get(low_rank_, n_out);
  const Tensor between = pass.buffers->get(between_, n_out);
  const Tensor branch = pass.buffers->get(branch_, n_out);
  normalize(backend, context_.spec, norm, active.slice(n - n_out, n), out);
  const LinearCall low[] = {{&low_, between}};
  pass.linear->apply(normed.slice(n - n_out, n), low);
  const LinearCall high[] = {{&high_, branch}};
  pass.linear->apply(between, high);
  normalize(backend, context_.spec, low_norm_, branch, branch);
  ops::add(backend, out, branch, 1.0f);
  return out;
}

void AltUpLayer::join(const Tensor& active, const Tensor& low, const LayerPass& pass) {
  ops::add(*pass.backend, active, low, 1.0f);
  scale_stream(*pass.backend, active, std::sqrt(0.5));
}

// x_i += (1 + (Wcorrect m)_i) (computed - x_0), where m is of what was computed
Tensor AltUpLayer::correct(const Tensor& computed, const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n_out = computed.shape[0];
  const Tensor x = last_streams(pass.x, n_out, n_streams_);
  const Tensor stream = pass.buffers->get(stream_, n_out);
  // these have fewer columns than predict()'s
  const Tensor factors = pass.buffers->get({coefficients_.memory, 0, n_streams_}, n_out);
  normalize(backend, context_.spec, router_norm_, computed, stream);
  project_f32(backend, modalities(stream, pass), correct_, factors);
  ops::take_stream(backend, x, 0, {}, stream);
  ops::add(backend, computed, stream, -1.0f);
  ops::add_to_streams(backend, x, computed, factors, 0);
  ops::take_stream(backend, x, 0, scale_, stream);
  return stream;
}

void AltUpLayer::add(const Tensor& input, const LayerPass& pass) {
  const Tensor x = last_streams(pass.x, input.shape[0], pass.x.shape[1] / input.shape[1]);
  ops::add_to_streams(*pass.backend, x, input, {}, 1);
}

AltUpEnds::AltUpEnds(const ModelSpec& spec, ActivationPlan& activations, WeightLoader& weights)
    : n_streams_(spec.config.n_streams), n_embd_(spec.config.n_embd) {
  const int64_t n_made = n_streams_ - 1;
  begin_ = load_made(weights, "altup_proj", n_made, n_embd_);
  end_ = load_made(weights, "altup_unembd_proj", n_made, n_embd_);
  embeddings_ = activations.add("tokens' embeddings", n_embd_);
  stream_ = activations.add("stream", n_embd_);
  sum_ = activations.add("active stream", n_embd_);
  branch_ = activations.add("branch", n_embd_);
  read_ = activations.add("normed", n_embd_, ActivationType::input);
  for (int64_t i = 0; i < n_made; ++i) {
    made_.push_back(activations.add("stream " + std::to_string(i + 1), n_embd_));
  }
}

Tensor AltUpEnds::embeddings(const LayerPass& pass) const {
  return pass.buffers->get(embeddings_, pass.x.shape[0]);
}

// x_0 = e, x_i = W_i e |e| / |W_i e|
void AltUpEnds::begin(const Tensor& embeddings, const LayerPass& pass) const {
  Backend& backend = *pass.backend;
  const int64_t n = embeddings.shape[0];
  std::vector<Tensor> all = {embeddings};
  std::vector<LinearCall> calls;
  for (size_t i = 0; i < begin_.size(); ++i) {
    all.push_back(pass.buffers->get(made_[i], n));
    calls.push_back({&begin_[i], all.back()});
  }
  pass.linear->apply(as_input(backend, embeddings, pass.buffers->get(read_, n)), calls);
  for (size_t i = 1; i < all.size(); ++i) ops::match_norms(backend, all[i], embeddings);
  ops::join(backend, all, pass.x);
}

// the mean of x_0 and W_i x_i |x_0| / |W_i x_i|
Tensor AltUpEnds::end(Backend& backend, const Tensor& x, const ActivationBuffer& buffers) const {
  const int64_t n = x.shape[0];
  const Tensor all = x.reshaped({n, n_streams_, n_embd_});
  const Tensor first = buffers.get(embeddings_, n), sum = buffers.get(sum_, n);
  const Tensor stream = buffers.get(stream_, n), made = buffers.get(branch_, n);
  ops::take_stream(backend, all, 0, {}, first);
  ops::take_stream(backend, all, 0, {}, sum);
  for (size_t i = 0; i < end_.size(); ++i) {
    ops::take_stream(backend, all, static_cast<int64_t>(i) + 1, {}, stream);
    project_f32(backend, stream, end_[i], made);
    ops::match_norms(backend, made, first);
    ops::add(backend, sum, made, 1.0f);
  }
  scale_stream(backend, sum, 1.0 / static_cast<double>(n_streams_));
  return sum;
}

std::vector<const Weight*> AltUpEnds::first_matrices() const {
  std::vector<const Weight*> all;
  for (const Weight& w : begin_) all.push_back(&w);
  return all;
}

std::vector<const Weight*> AltUpEnds::last_matrices() const {
  std::vector<const Weight*> all;
  for (const Weight& w : end_) all.push_back(&w);
  return all;
}

}  // namespace snapkv
