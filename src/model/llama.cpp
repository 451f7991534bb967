// SPDX-License-Identifier: MIT
// Llama (arXiv 2302.13971): pre-norm decoder with RMSNorm, rotary embedding, grouped-query
// attention and SwiGLU. GGUF stores Q and K rows permuted for rotation of neighbouring pairs
// (RopeLayout::norm).
#include "model/llama.h"

#include <fmt/core.h>

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

struct LlamaLayer {
  Tensor attn_norm;  // [n_embd]
  Weight wq;         // [n_head * head_dim, n_embd]
  Weight wk, wv;     // [n_head_kv * head_dim, n_embd]
  Weight wo;         // [n_embd, n_head * head_dim]
  Tensor ffn_norm;   // [n_embd]
  Weight gate, up;   // [n_ff, n_embd]
  Weight down;       // [n_embd, n_ff]
};

/// inv_freq[i] = base^(-2i / n_rot) / (linear scaling factor * rope_freqs[i]).
std::vector<double> inverse_frequencies(const ModelConfig& c, const Tensor& rope_freqs) {
  std::vector<double> inv_freq(static_cast<size_t>(c.n_rot / 2));
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double factor = rope_freqs ? *rope_freqs.at<float>(static_cast<int64_t>(i)) : 1.0;
    inv_freq[i] = std::pow(c.rope_freq_base, -2.0 * static_cast<double>(i) / c.n_rot) /
                  (c.rope_scaling_factor * factor);
  }
  return inv_freq;
}

class Llama final : public Architecture {
 public:
  Llama(const GgufFile& file, Backend& backend) : backend_(backend), config_(read_config(file)) {
    if (file.has("llama.expert_count") && file.get_uint("llama.expert_count") > 0) {
      fail(ErrorCode::kBadModel,
           "{}: llama.expert_count = {}: mixtures of experts are not supported", file.path(),
           file.get_uint("llama.expert_count"));
    }
    WeightLoader loader(file, owned_);
    load_weights(file, loader);
    loader.check_all_used("llama");
  }

  const ModelConfig& config() const override { return config_; }

  void embed(std::span<const int32_t> tokens, const Tensor& x) override {
    ops::embed(backend_, token_embd_.w, tokens, x);
  }

  void layer(int il, const LayerPass& pass) override {
    const LlamaLayer& w = layers_[static_cast<size_t>(il)];
    attention_block(w, pass);
    if (pass.n_out > 0) ffn_block(w, pass);
  }

  void output(const Tensor& x, ActivationBuffer& buffers, const Tensor& logits) override {
    const int64_t n = x.shape[0];
    buffers.ensure(backend_, config_, n, DType::f32);
    const Tensor normed = buffers.normed(n);
    ops::rms_norm(backend_, x, output_norm_, config_.rms_eps, normed);
    const Projection head{output_.w, output_.bias, logits};
    ops::project(backend_, normed, {&head, 1});
  }

  RopeFrequencies rope() const override { return {inv_freq_, RopeLayout::norm}; }
  const Weight& attention_output(int il) const override {
    return layers_[static_cast<size_t>(il)].wo;
  }

  std::vector<const Weight*> layer_weights(int il) const override {
    const LlamaLayer& w = layers_[static_cast<size_t>(il)];
    return {&w.wq, &w.wk, &w.wv, &w.wo, &w.gate, &w.up, &w.down};
  }

  std::vector<Tensor> weights() const override {
    std::vector<Tensor> all;
    const auto add = [&](const Weight& weight) {
      all.push_back(weight.w);
      if (weight.bias) all.push_back(weight.bias);
    };
    all.push_back(output_norm_);
    add(output_);
    for (int il = 0; il < static_cast<int>(layers_.size()); ++il) {
      all.push_back(layers_[static_cast<size_t>(il)].attn_norm);
      all.push_back(layers_[static_cast<size_t>(il)].ffn_norm);
      for (const Weight* weight : layer_weights(il)) add(*weight);
    }
    add(token_embd_);
    return all;
  }

 private:
  // x += Wo attention(RMSNorm(x))
  void attention_block(const LlamaLayer& w, const LayerPass& pass) {
    const ModelConfig& c = config_;
    const int64_t n = pass.x.shape[0], n_q = pass.n_q, n_out = pass.n_out;
    const Tensor normed = pass.buffers->normed(n);
    const Tensor q = pass.buffers->q(n_q), k = pass.buffers->k(n), v = pass.buffers->v(n);
    const Tensor attn = pass.buffers->attn(n_out);

    ops::rms_norm(backend_, pass.x, w.attn_norm, c.rms_eps, normed);
    if (n_q == n) {
      const LinearCall qkv[] = {{&w.wq, rows(q)}, {&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, qkv);
    } else {
      const LinearCall kv[] = {{&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, kv);
      const LinearCall only_q[] = {{&w.wq, rows(q)}};
      if (n_q > 0) pass.linear->apply(normed.slice(n - n_q, n), only_q);
    }
    ops::rope(backend_, q, pass.pos.last(static_cast<size_t>(n_q)), rope());
    ops::rope(backend_, k, pass.pos, rope());

    pass.attention->attend(q, k, v, attn);

    if (n_out == 0) return;
    const LinearCall out[] = {{&w.wo, pass.x.slice(n - n_out, n), true}};
    pass.linear->apply(rows(attn), out);
  }

  // x += Wdown (silu(Wgate RMSNorm(x)) * Wup RMSNorm(x))
  void ffn_block(const LlamaLayer& w, const LayerPass& pass) {
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    const Tensor x = pass.x.slice(n - n_out, n);
    const Tensor normed = pass.buffers->normed(n_out);
    const Tensor gate = pass.buffers->gate(n_out), up = pass.buffers->up(n_out);
    const Tensor act = pass.buffers->act(n_out);

    ops::rms_norm(backend_, x, w.ffn_norm, config_.rms_eps, normed);
    const LinearCall gate_up[] = {{&w.gate, gate}, {&w.up, up}};
    pass.linear->apply(normed, gate_up);
    ops::activate(backend_, Activation::silu, gate, up, act);
    const LinearCall down[] = {{&w.down, x, true}};
    pass.linear->apply(act, down);
  }

  /// [n, n_head, head_dim] as [n, n_head * head_dim].
  static Tensor rows(const Tensor& t) { return t.reshaped({t.shape[0], t.shape[1] * t.shape[2]}); }

  void load_weights(const GgufFile& file, WeightLoader& loader) {
    ModelConfig& c = config_;
    const GgufTensor* embd = file.find_tensor("token_embd.weight");
    if (embd == nullptr) {
      fail(ErrorCode::kBadModel, "{}: tensor token_embd.weight is missing", file.path());
    }
    c.n_vocab = embd->tensor.shape[0];
    token_embd_ = loader.matrix("token_embd", c.n_vocab, c.n_embd);
    output_norm_ = loader.vector("output_norm.weight", c.n_embd);
    // without a matrix of its own the output shares the embedding's
    output_ =
        loader.has("output.weight") ? loader.matrix("output", c.n_vocab, c.n_embd) : token_embd_;
    inv_freq_ = inverse_frequencies(c, loader.optional_vector("rope_freqs.weight", c.n_rot / 2));
    for (double f : inv_freq_) {
      if (!std::isfinite(f)) {
        fail(ErrorCode::kBadModel, "{}: rope_freqs.weight holds a zero or a non-number",
             file.path());
      }
    }
    layers_.resize(static_cast<size_t>(c.n_layer));
    for (int64_t il = 0; il < c.n_layer; ++il) {
      load_layer(loader, fmt::format("blk.{}.", il), layers_[static_cast<size_t>(il)]);
    }
  }

  void load_layer(WeightLoader& loader, const std::string& prefix, LlamaLayer& layer) {
    const ModelConfig& c = config_;
    const int64_t n_q = c.n_head * c.head_dim, n_kv = c.n_head_kv * c.head_dim;
    layer.attn_norm = loader.vector(prefix + "attn_norm.weight", c.n_embd);
    layer.wq = loader.matrix(prefix + "attn_q", n_q, c.n_embd);
    layer.wk = loader.matrix(prefix + "attn_k", n_kv, c.n_embd);
    layer.wv = loader.matrix(prefix + "attn_v", n_kv, c.n_embd);
    layer.wo = loader.matrix(prefix + "attn_output", c.n_embd, n_q);
    layer.ffn_norm = loader.vector(prefix + "ffn_norm.weight", c.n_embd);
    layer.gate = loader.matrix(prefix + "ffn_gate", c.n_ff, c.n_embd);
    layer.up = loader.matrix(prefix + "ffn_up", c.n_ff, c.n_embd);
    layer.down = loader.matrix(prefix + "ffn_down", c.n_embd, c.n_ff);
    loader.ignore(prefix + "attn_rot_embd");  // files of 2023; the table is recomputed
    loader.ignore(prefix + "attention.rotary_emb.inv_freq");
  }

  Backend& backend_;
  ModelConfig config_;
  std::vector<Buffer> owned_;
  Weight token_embd_;             // [n_vocab, n_embd]
  Tensor output_norm_;            // [n_embd]
  Weight output_;                 // [n_vocab, n_embd]
  std::vector<double> inv_freq_;  // [n_rot / 2]
  std::vector<LlamaLayer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_llama(const GgufFile& file, Backend& backend) {
  return std::make_unique<Llama>(file, backend);
}

}  // namespace snapkv
