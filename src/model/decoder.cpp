// SPDX-License-Identifier: MIT
// The decoder: norm, attention, residual, norm, feed-forward network, residual, with what a
// family's row (family.h) says in place of Llama's own (arXiv 2302.13971).
#include "model/decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

struct DecoderLayer {
  Tensor attn_norm;                        // [n_embd]
  Weight wq;                               // [n_head * head_dim, n_embd]
  Weight wk, wv;                           // [n_head_kv * head_dim, n_embd]
  Weight wo;                               // [n_embd, n_head * head_dim]
  Tensor ffn_norm;                         // [n_embd]
  Weight gate, up;                         // [n_ff, n_embd]
  Weight down;                             // [n_embd, n_ff]
  std::vector<const GgufTensor*> tensors;  // all of it, in the file
};

class Decoder final : public Architecture {
 public:
  Decoder(const GgufFile& file, ModelSpec spec, Backend& backend)
      : backend_(backend), spec_(std::move(spec)) {
    WeightLoader loader(file, owned_);
    load_weights(file, loader);
    loader.check_all_used(config().architecture);
  }

  const ModelSpec& spec() const override { return spec_; }

  void embed(std::span<const int32_t> tokens, const Tensor& x) override {
    ops::embed(backend_, token_embd_.w, tokens, x);
  }

  void layer(int il, const LayerPass& pass) override {
    const DecoderLayer& w = layers_[il];
    attention_block(w, rotation(il), pass);
    if (pass.n_out > 0) ffn_block(w, pass);
  }

  void output(const Tensor& x, ActivationBuffer& buffers, const Tensor& logits) override {
    const int64_t n = x.shape[0];
    buffers.ensure(backend_, spec_, n, DType::f32);
    const Tensor normed = buffers.normed(n);
    ops::rms_norm(backend_, x, output_norm_, config().norm_eps, normed);
    const Projection head{output_.w, output_.bias, logits};
    ops::project(backend_, normed, {&head, 1});
  }

  RopeFrequencies rotation(int il) const override {
    const RotationSpec& rotation = spec_.layers[il].rotation;
    for (const Frequencies& f : frequencies_) {
      if (f.spec == rotation) return {f.inv_freq, rotation.layout};
    }
    SNAPKV_CHECK(false);
  }
  const Weight& attention_output(int il) const override { return layers_[il].wo; }

  std::vector<const Weight*> layer_weights(int il) const override {
    const DecoderLayer& w = layers_[il];
    return {&w.wq, &w.wk, &w.wv, &w.wo, &w.gate, &w.up, &w.down};
  }

  std::span<const GgufTensor* const> layer_tensors(int il) const override {
    return layers_[il].tensors;
  }

  std::vector<Tensor> weights() const override {
    std::vector<Tensor> all;
    const auto add = [&](const Weight& weight) {
      all.push_back(weight.w);
      if (weight.bias) all.push_back(weight.bias);
    };
    all.push_back(output_norm_);
    add(output_);
    for (int il = 0; il < std::ssize(layers_); ++il) {
      all.push_back(layers_[il].attn_norm);
      all.push_back(layers_[il].ffn_norm);
      for (const Weight* weight : layer_weights(il)) add(*weight);
    }
    add(token_embd_);
    return all;
  }

 private:
  // x += Wo attention(RMSNorm(x))
  void attention_block(const DecoderLayer& w, const RopeFrequencies& rotation,
                       const LayerPass& pass) {
    const int64_t n = pass.x.shape[0], n_q = pass.n_q, n_out = pass.n_out;
    const Tensor normed = pass.buffers->normed(n);
    const Tensor q = pass.buffers->q(n_q), k = pass.buffers->k(n), v = pass.buffers->v(n);
    const Tensor attn = pass.buffers->attn(n_out);

    ops::rms_norm(backend_, pass.x, w.attn_norm, config().norm_eps, normed);
    if (n_q == n) {
      const LinearCall qkv[] = {{&w.wq, rows(q)}, {&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, qkv);
    } else {
      const LinearCall kv[] = {{&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, kv);
      const LinearCall only_q[] = {{&w.wq, rows(q)}};
      if (n_q > 0) pass.linear->apply(normed.slice(n - n_q, n), only_q);
    }
    ops::rope(backend_, q, pass.pos.last(n_q), rotation);
    ops::rope(backend_, k, pass.pos, rotation);

    pass.attention->attend(q, k, v, attn);

    if (n_out == 0) return;
    const LinearCall out[] = {{&w.wo, pass.x.slice(n - n_out, n), true}};
    pass.linear->apply(rows(attn), out);
  }

  // x += Wdown (silu(Wgate RMSNorm(x)) * Wup RMSNorm(x))
  void ffn_block(const DecoderLayer& w, const LayerPass& pass) {
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    const Tensor x = pass.x.slice(n - n_out, n);
    const Tensor normed = pass.buffers->normed(n_out);
    const Tensor gate = pass.buffers->gate(n_out), up = pass.buffers->up(n_out);
    const Tensor act = pass.buffers->act(n_out);

    ops::rms_norm(backend_, x, w.ffn_norm, config().norm_eps, normed);
    const LinearCall gate_up[] = {{&w.gate, gate}, {&w.up, up}};
    pass.linear->apply(normed, gate_up);
    ops::activate(backend_, Activation::silu, gate, up, act);
    const LinearCall down[] = {{&w.down, x, true}};
    pass.linear->apply(act, down);
  }

  /// [n, n_head, head_dim] as [n, n_head * head_dim].
  static Tensor rows(const Tensor& t) { return t.reshaped({t.shape[0], t.shape[1] * t.shape[2]}); }

  void load_weights(const GgufFile& file, WeightLoader& loader) {
    const ModelConfig& c = config();
    token_embd_ = loader.matrix("token_embd", c.n_vocab, c.n_embd);
    output_norm_ = loader.vector("output_norm.weight", c.n_embd);
    // without a matrix of its own the output shares the embedding's
    output_ =
        loader.has("output.weight") ? loader.matrix("output", c.n_vocab, c.n_embd) : token_embd_;
    load_frequencies(file, loader);
    loader.take_loaded();
    layers_.resize(c.n_layer);
    for (int64_t il = 0; il < c.n_layer; ++il) {
      load_layer(loader, fmt::format("blk.{}.", il), layers_[il]);
      layers_[il].tensors = loader.take_loaded();
    }
  }

  /// One set of frequencies for each rotation that layers have.
  void load_frequencies(const GgufFile& file, WeightLoader& loader) {
    for (const LayerSpec& layer : spec_.layers) {
      const RotationSpec& rotation = layer.rotation;
      if (std::any_of(frequencies_.begin(), frequencies_.end(),
                      [&](const Frequencies& f) { return f.spec == rotation; })) {
        continue;
      }
      const Tensor factors = loader.optional_vector("rope_freqs.weight", rotation.n_rot / 2);
      std::span<const float> values;
      if (factors) values = std::span(factors.at<const float>(0), rotation.n_rot / 2);
      frequencies_.push_back({rotation, inverse_frequencies(rotation, values)});
      const std::vector<double>& inv_freq = frequencies_.back().inv_freq;
      for (size_t i = 0; i < inv_freq.size(); ++i) {
        if (std::isfinite(inv_freq[i]) && inv_freq[i] > 0) continue;
        fail(ErrorCode::kBadModel,
             "{}: rope_freqs.weight[{}] makes a frequency of {}; its values must be finite and "
             "above 0",
             file.path(), i, inv_freq[i]);
      }
    }
  }

  void load_layer(WeightLoader& loader, const std::string& prefix, DecoderLayer& layer) {
    const ModelConfig& c = config();
    layer.attn_norm = loader.vector(prefix + "attn_norm.weight", c.n_embd);
    layer.wq = loader.matrix(prefix + "attn_q", c.n_q(), c.n_embd);
    layer.wk = loader.matrix(prefix + "attn_k", c.n_kv(), c.n_embd);
    layer.wv = loader.matrix(prefix + "attn_v", c.n_kv(), c.n_embd);
    layer.wo = loader.matrix(prefix + "attn_output", c.n_embd, c.n_q());
    layer.ffn_norm = loader.vector(prefix + "ffn_norm.weight", c.n_embd);
    layer.gate = loader.matrix(prefix + "ffn_gate", c.n_ff, c.n_embd);
    layer.up = loader.matrix(prefix + "ffn_up", c.n_ff, c.n_embd);
    layer.down = loader.matrix(prefix + "ffn_down", c.n_embd, c.n_ff);
    loader.ignore(prefix + "attn_rot_embd");  // files of 2023; the table is recomputed
    loader.ignore(prefix + "attention.rotary_emb.inv_freq");
  }

  struct Frequencies {
    RotationSpec spec;
    std::vector<double> inv_freq;  // [n_rot / 2]
  };

  Backend& backend_;
  ModelSpec spec_;
  std::vector<Buffer> owned_;
  Weight token_embd_;   // [n_vocab, n_embd]
  Tensor output_norm_;  // [n_embd]
  Weight output_;       // [n_vocab, n_embd]
  std::vector<Frequencies> frequencies_;
  std::vector<DecoderLayer> layers_;
};

}  // namespace

std::unique_ptr<Architecture> make_decoder(const GgufFile& file, ModelSpec spec, Backend& backend) {
  return std::make_unique<Decoder>(file, std::move(spec), backend);
}

}  // namespace snapkv
