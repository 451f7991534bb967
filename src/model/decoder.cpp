// SPDX-License-Identifier: MIT
// The decoder: norm, attention, residual, norm, feed-forward network, residual. A family's row
// (family.h) says where it differs from Llama (arXiv 2302.13971).
#include "model/decoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "format/gguf.h"
#include "model/decoder_weights.h"

namespace snapkv {
namespace {

/// [n, n_head, head_dim] as [n, n_head * head_dim].
Tensor rows(const Tensor& t) { return t.reshaped({t.shape[0], t.shape[1] * t.shape[2]}); }

class Decoder final : public Architecture {
 public:
  Decoder(const GgufFile& file, ModelSpec spec, Backend& backend)
      : backend_(backend),
        spec_(std::move(spec)),
        family_(*spec_.family),
        weights_(load_decoder_weights(file, spec_, owned_)) {
    for (const LayerSpec& layer : spec_.layers) add_frequencies(file, layer.rotation);
  }

  const ModelSpec& spec() const override { return spec_; }

  // x = embedding[token] * scale (+ position[pos])
  void embed(std::span<const int32_t> tokens, const LayerPass& pass) override {
    ops::embed(backend_, weights_.token_embd.w, tokens, pass.x);
    scale(pass.x, config().embedding_scale);
    if (weights_.position_embd) {
      const Tensor positions = pass.buffers->branch(pass.x.shape[0]);
      ops::embed(backend_, weights_.position_embd.w, pass.pos, positions);
      ops::add(backend_, pass.x, positions, 1.0f);
    }
  }

  void layer(int il, const LayerPass& pass) override {
    const DecoderLayer& w = weights_.layers[il];
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    const Tensor normed = normalized(w.attn_norm, pass.x, pass);
    attention_block(il, normed, pass);
    if (n_out == 0) return;
    const Tensor x = pass.x.slice(n - n_out, n);
    const bool parallel =
        family_.parallel || (!w.ffn_norm && family_.ffn_norm == Presence::optional);
    ffn_block(w, parallel ? normed.slice(n - n_out, n) : normalized(w.ffn_norm, x, pass), x, pass);
  }

  void output(const Tensor& x, ActivationBuffer& buffers, const Tensor& logits) override {
    const int64_t n = x.shape[0];
    buffers.ensure(backend_, spec_, n, DType::f32);
    const Tensor normed = buffers.normed(n);
    normalize(weights_.output_norm, x, normed);
    const Projection head{weights_.output.w, weights_.output.bias, logits};
    ops::project(backend_, normed, {&head, 1});
    scale(logits, config().logit_scale);
    if (config().final_softcap > 0.0f) ops::softcap(backend_, logits, config().final_softcap);
  }

  RopeFrequencies rotation(int il, int64_t n_ctx) const override {
    const RotationSpec& rotation = spec_.layers[il].rotation;
    const bool is_long = rotation.n_ctx_short > 0 && n_ctx > rotation.n_ctx_short;
    for (const Frequencies& f : frequencies_) {
      if (f.spec == rotation && f.is_long == is_long) {
        return {f.inv_freq, rotation.layout, rotation.magnitude};
      }
    }
    SNAPKV_CHECK(false);
  }

  const Weight& attention_output(int il) const override { return weights_.layers[il].wo; }
  std::vector<const Weight*> layer_weights(int il) const override {
    return weights_.layers[il].matrices();
  }
  std::span<const GgufTensor* const> layer_tensors(int il) const override {
    return weights_.layers[il].file_tensors;
  }
  std::vector<Tensor> weights() const override { return weights_.all(); }

 private:
  // x += Wo attention(normed)
  void attention_block(int il, const Tensor& normed, const LayerPass& pass) {
    const DecoderLayer& w = weights_.layers[il];
    const int64_t n = pass.x.shape[0], n_q = pass.n_q, n_out = pass.n_out;
    const Tensor q = pass.buffers->q(n_q), k = pass.buffers->k(n), v = pass.buffers->v(n);
    const Tensor attn = pass.buffers->attn(n_out);

    if (n_q == n) {
      const LinearCall qkv[] = {{&w.wq, rows(q)}, {&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, qkv);
    } else {
      const LinearCall kv[] = {{&w.wk, rows(k)}, {&w.wv, rows(v)}};
      pass.linear->apply(normed, kv);
      const LinearCall only_q[] = {{&w.wq, rows(q)}};
      if (n_q > 0) pass.linear->apply(normed.slice(n - n_q, n), only_q);
    }
    normalize_heads(w.q_norm, q);
    normalize_heads(w.k_norm, k);
    const std::span<const int32_t> q_pos = pass.pos.last(n_q);
    const RopeFrequencies frequencies = rotation(il, pass.n_ctx);
    ops::rope(backend_, q, q_pos, frequencies);
    ops::rope(backend_, k, pass.pos, frequencies);
    sharpen(q, q_pos);

    pass.attention->attend(q, k, v, attn);

    if (n_out == 0) return;
    add_to_residual(w.wo, rows(attn), w.attn_post_norm, pass.x.slice(n - n_out, n), pass);
  }

  // x += Wdown (f(Wgate normed) * Wup normed), or x += Wdown f(Wup normed)
  void ffn_block(const DecoderLayer& w, const Tensor& normed, const Tensor& x,
                 const LayerPass& pass) {
    const int64_t n = x.shape[0];
    const Tensor up = pass.buffers->up(n), act = pass.buffers->act(n);
    if (family_.gated) {
      const Tensor gate = pass.buffers->gate(n);
      const LinearCall gate_up[] = {{&w.gate, gate}, {&w.up, up}};
      pass.linear->apply(normed, gate_up);
      ops::activate(backend_, family_.activation, gate, up, act);
    } else {
      const LinearCall only_up[] = {{&w.up, up}};
      pass.linear->apply(normed, only_up);
      ops::activate(backend_, family_.activation, up, {}, act);
    }
    add_to_residual(w.down, act, w.ffn_post_norm, x, pass);
  }

  /// x += residual_scale * norm(W input); no norm if post_norm is empty.
  void add_to_residual(const Weight& w, const Tensor& input, const Norm& post_norm, const Tensor& x,
                       const LayerPass& pass) {
    if (!post_norm && config().residual_scale == 1.0f) {
      const LinearCall call[] = {{&w, x, true}};
      pass.linear->apply(input, call);
      return;
    }
    const Tensor branch = pass.buffers->branch(x.shape[0]);
    const LinearCall call[] = {{&w, branch}};
    pass.linear->apply(input, call);
    if (post_norm) normalize(post_norm, branch, branch);
    ops::add(backend_, x, branch, config().residual_scale);
  }

  /// norm(x), or x if there is no norm, in the type that the block's products expect.
  Tensor normalized(const Norm& norm, const Tensor& x, const LayerPass& pass) {
    const Tensor normed = pass.buffers->normed(x.shape[0]);
    if (norm) {
      normalize(norm, x, normed);
      return normed;
    }
    if (normed.dtype == x.dtype) return x;
    const void* const from = x.data;
    void* const to = normed.data;
    const auto n = static_cast<int32_t>(x.shape[0]);
    ops::convert_rows(backend_,
                      {{&from, 1}, x.dtype, x.shape[1], Tensor(), {&n, 1}, normed.dtype, {&to, 1}});
    return normed;
  }

  void normalize(const Norm& norm, const Tensor& x, const Tensor& out) {
    if (family_.norm == NormKind::rms) {
      ops::rms_norm(backend_, x, norm.weight, config().norm_eps, out);
    } else {
      ops::layer_norm(backend_, x, norm.weight, norm.bias, config().norm_eps, out);
    }
  }

  /// Normalizes x [n, heads, head_dim] in place.
  void normalize_heads(const Norm& norm, const Tensor& x) {
    if (!norm) return;
    const Tensor vectors = family_.qk_norm == QkNorm::all_together
                               ? rows(x)
                               : x.reshaped({x.shape[0] * x.shape[1], x.shape[2]});
    normalize(norm, vectors, vectors);
  }

  /// Multiplies q [n_q, n_head, head_dim] by QueryTemperature::factor of each position.
  void sharpen(const Tensor& q, std::span<const int32_t> pos) {
    if (config().temperature.scale == 0.0) return;
    std::vector<float> factors;
    for (int32_t p : pos) factors.push_back(config().temperature.factor(p));
    if (!factors.empty()) ops::scale(backend_, q, factors);
  }

  void scale(const Tensor& x, float factor) {
    if (factor != 1.0f) ops::scale(backend_, x, {&factor, 1});
  }

  /// Adds the frequencies of a layer's rotation, if it is new: two sets if there are factors for
  /// long contexts.
  void add_frequencies(const GgufFile& file, const RotationSpec& rotation) {
    const auto is_it = [&](const Frequencies& f) { return f.spec == rotation; };
    if (std::any_of(frequencies_.begin(), frequencies_.end(), is_it)) return;
    const auto values = [&](const Tensor& factors) -> std::span<const float> {
      if (!factors || rotation.n_rot == 0) return {};
      if (factors.numel() != rotation.n_rot / 2) {
        fail(ErrorCode::kBadModel, "{}: {} rotation factors, expected {}, half of {}.{}",
             file.path(), factors.numel(), rotation.n_rot / 2, config().architecture,
             "rope.dimension_count");
      }
      return {factors.at<const float>(0), static_cast<size_t>(factors.numel())};
    };
    frequencies_.push_back(
        {rotation, false, inverse_frequencies(rotation, values(weights_.rope_factors))});
    if (rotation.n_ctx_short > 0) {
      frequencies_.push_back(
          {rotation, true, inverse_frequencies(rotation, values(weights_.rope_factors_long))});
    }
  }

  struct Frequencies {
    RotationSpec spec;
    bool is_long;                  // for contexts longer than spec.n_ctx_short
    std::vector<double> inv_freq;  // [n_rot / 2]
  };

  Backend& backend_;
  const ModelSpec spec_;
  const Family& family_;
  std::vector<Buffer> owned_;  // declared before the weights, which may lie in it
  const DecoderWeights weights_;
  std::vector<Frequencies> frequencies_;
};

}  // namespace

std::unique_ptr<Architecture> make_decoder(const GgufFile& file, ModelSpec spec, Backend& backend) {
  return std::make_unique<Decoder>(file, std::move(spec), backend);
}

}  // namespace snapkv
