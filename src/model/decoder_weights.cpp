// SPDX-License-Identifier: MIT
#include "model/decoder_weights.h"

#include <fmt/core.h>

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

class DecoderLoader {
 public:
  DecoderLoader(const GgufFile& file, const ModelSpec& spec, std::vector<Buffer>& owned)
      : file_(file), family_(*spec.family), config_(spec.config), loader_(file, owned) {}

  DecoderWeights load() {
    const ModelConfig& c = config_;
    DecoderWeights w;
    w.token_embd = loader_.matrix("token_embd", c.n_vocab, c.n_embd);
    if (c.n_positions > 0)
      w.position_embd = loader_.matrix("position_embd", c.n_positions, c.n_embd);
    w.output_norm = norm("output_norm");
    w.output = output(w.token_embd);
    load_rope_factors(w);
    loader_.take_loaded();
    for (int64_t il = 0; il < c.n_layer; ++il) {
      w.layers.push_back(layer(fmt::format("blk.{}.", il)));
      w.layers.back().file_tensors = loader_.take_loaded();
    }
    loader_.check_all_used(family_.name);
    return w;
  }

 private:
  Norm norm(const std::string& name, Presence presence = Presence::required) {
    Norm norm;
    norm.weight = loader_.vector(name + ".weight", config_.n_embd, presence);
    if (norm && family_.norm == NormKind::layer) {
      norm.bias = loader_.vector(name + ".bias", config_.n_embd, family_.norm_bias);
    }
    return norm;
  }

  Norm head_norm(const std::string& name, int64_t n_head) {
    const int64_t head_dim = config_.head_dim;
    switch (family_.qk_norm) {
      case QkNorm::none:
        return {};
      case QkNorm::each_head:
        return {loader_.vector(name, head_dim, family_.qk_norm_weights), {}};
      case QkNorm::own_weights:
        return {loader_.vectors(name, n_head, head_dim, family_.qk_norm_weights), {}};
      case QkNorm::all_together:
        return {loader_.vector(name, n_head * head_dim, family_.qk_norm_weights), {}};
    }
    SNAPKV_CHECK(false);
  }

  Weight output(const Weight& token_embd) {
    if (family_.shared_output == SharedOutput::always ||
        (family_.shared_output == SharedOutput::allowed && !loader_.has("output.weight"))) {
      return token_embd;
    }
    return loader_.matrix("output", config_.n_vocab, config_.n_embd);
  }

  Tensor rope_factors(const char* name, Presence presence) {
    const int64_t n = loader_.has(name) ? file_.find_tensor(name)->tensor.numel() : 0;
    const Tensor factors = loader_.vector(name, n, presence);
    for (int64_t i = 0; i < n; ++i) {
      const float factor = *factors.at<const float>(i);
      if (std::isfinite(factor) && factor > 0.0f) continue;
      fail(ErrorCode::kBadModel, "{}: {} holds {}; factors must be finite and positive",
           file_.path(), name, factor);
    }
    return factors;
  }

  void load_rope_factors(DecoderWeights& w) {
    if (loader_.has("rope_factors_long.weight")) {
      w.rope_factors_long = rope_factors("rope_factors_long.weight", Presence::required);
      w.rope_factors = rope_factors("rope_factors_short.weight", Presence::required);
    } else {
      w.rope_factors = rope_factors("rope_freqs.weight", Presence::optional);
    }
  }

  void load_qkv(const std::string& prefix, DecoderLayer& layer) {
    const ModelConfig& c = config_;
    if (loader_.has(prefix + "attn_qkv.weight")) {  // one matrix: queries, keys, values
      const int64_t n_q = c.n_q(), n_kv = c.n_kv();
      const Weight qkv =
          loader_.matrix(prefix + "attn_qkv", n_q + 2 * n_kv, c.n_embd, family_.qkv_bias);
      layer.wq = qkv.rows(0, n_q);
      layer.wk = qkv.rows(n_q, n_q + n_kv);
      layer.wv = qkv.rows(n_q + n_kv, n_q + 2 * n_kv);
      return;
    }
    layer.wq = loader_.matrix(prefix + "attn_q", c.n_q(), c.n_embd, family_.qkv_bias);
    layer.wk = loader_.matrix(prefix + "attn_k", c.n_kv(), c.n_embd, family_.qkv_bias);
    layer.wv = loader_.matrix(prefix + "attn_v", c.n_kv(), c.n_embd, family_.qkv_bias);
  }

  void load_ffn(const std::string& prefix, DecoderLayer& layer) {
    const int64_t n_embd = config_.n_embd, n_ff = config_.n_ff;
    if (family_.fused_gate) {
      const Weight both = loader_.matrix(prefix + "ffn_up", 2 * n_ff, n_embd, family_.ffn_bias);
      layer.gate = both.rows(0, n_ff);
      layer.up = both.rows(n_ff, 2 * n_ff);
    } else {
      if (family_.gated) {
        layer.gate = loader_.matrix(prefix + "ffn_gate", n_ff, n_embd, family_.ffn_bias);
      }
      layer.up = loader_.matrix(prefix + "ffn_up", n_ff, n_embd, family_.ffn_bias);
    }
    layer.down = loader_.matrix(prefix + "ffn_down", n_embd, n_ff, family_.ffn_bias);
  }

  DecoderLayer layer(const std::string& prefix) {
    const ModelConfig& c = config_;
    const bool before = family_.norm_places != NormPlaces::after;
    const bool after = family_.norm_places != NormPlaces::before;
    DecoderLayer layer;
    if (before) layer.attn_norm = norm(prefix + "attn_norm");
    load_qkv(prefix, layer);
    layer.q_norm = head_norm(prefix + "attn_q_norm.weight", c.n_head);
    layer.k_norm = head_norm(prefix + "attn_k_norm.weight", c.n_head_kv);
    layer.wo = loader_.matrix(prefix + "attn_output", c.n_embd, c.n_q(), family_.output_bias);
    if (after) layer.attn_post_norm = norm(prefix + "post_attention_norm");
    if (before && !family_.parallel) layer.ffn_norm = norm(prefix + "ffn_norm", family_.ffn_norm);
    load_ffn(prefix, layer);
    if (after) layer.ffn_post_norm = norm(prefix + "post_ffw_norm");
    loader_.ignore(prefix + "attn_rot_embd");  // in files of 2023; recomputed here
    loader_.ignore(prefix + "attention.rotary_emb.inv_freq");
    return layer;
  }

  const GgufFile& file_;
  const Family& family_;
  const ModelConfig& config_;
  WeightLoader loader_;
};

}  // namespace

std::vector<const Weight*> DecoderLayer::matrices() const {
  std::vector<const Weight*> present;
  for (const Weight* weight : {&wq, &wk, &wv, &wo, &gate, &up, &down}) {
    if (*weight) present.push_back(weight);
  }
  return present;
}

std::vector<const Norm*> DecoderLayer::norms() const {
  std::vector<const Norm*> present;
  for (const Norm* norm :
       {&attn_norm, &q_norm, &k_norm, &attn_post_norm, &ffn_norm, &ffn_post_norm}) {
    if (*norm) present.push_back(norm);
  }
  return present;
}

std::vector<Tensor> DecoderWeights::all() const {
  std::vector<Tensor> tensors;
  const auto add = [&](const Tensor& t, const Tensor& bias) {
    if (t) tensors.push_back(t);
    if (bias) tensors.push_back(bias);
  };
  add(output_norm.weight, output_norm.bias);
  add(output.w, output.bias);
  for (const DecoderLayer& layer : layers) {
    for (const Norm* norm : layer.norms()) add(norm->weight, norm->bias);
    for (const Weight* weight : layer.matrices()) add(weight->w, weight->bias);
  }
  add(token_embd.w, {});
  add(position_embd.w, {});
  return tensors;
}

DecoderWeights load_decoder_weights(const GgufFile& file, const ModelSpec& spec,
                                    std::vector<Buffer>& owned) {
  return DecoderLoader(file, spec, owned).load();
}

}  // namespace snapkv
