// SPDX-License-Identifier: MIT
// The decoder: norm, token mixer, residual, norm, feed-forward network, residual, with the blocks
// (blocks/block.h) that a family's row names (family.h) in place of Llama's own (arXiv 2302.13971).
#include "model/decoder.h"

#include <map>
#include <utility>
#include <vector>

#include "backend/ops.h"
#include "model/decoder_weights.h"

namespace snapkv {
namespace {

class Decoder final : public Architecture {
 public:
  Decoder(const GgufFile& file, ModelSpec spec)
      : spec_(std::move(spec)),
        family_(*spec_.family),
        normed_(activations_.add("normed", config().n_embd, ActivationType::input)),
        side_(config().parallel && (family_.parallel_if_flagged || family_.may_have_second_norm)
                  ? activations_.add("side normed", config().n_embd, ActivationType::input)
                  : ActivationTensor()),
        positions_(config().n_positions > 0 ? activations_.add("branch", config().n_embd)
                                            : ActivationTensor()),
        stream_(config().first_values ? activations_.add("stream", config().n_embd)
                                      : ActivationTensor()),
        values_(config().first_values ? activations_.add("first values", config().n_embd)
                                      : ActivationTensor()),
        weights_(load_decoder_weights(file, context_, owned_)) {
    rotations_.add(file, spec_, weights_.rope_factors, weights_.rope_factors_long);
    find_kinds();
  }

  const ModelSpec& spec() const override { return spec_; }
  const ActivationPlan& activations() const override { return activations_; }

  // x = embedding[token] * scale (+ position[pos]), or a norm of this
  void embed(std::span<const int32_t> tokens, const LayerPass& pass) const override {
    Backend& backend = *pass.backend;
    const AltUpEnds* const altup = weights_.altup.get();
    const Tensor x = altup != nullptr ? altup->embeddings(pass)
                     : stream_        ? pass.buffers->get(stream_, pass.x.shape[0])
                                      : pass.x;
    ops::embed(backend, weights_.token_embd.w, tokens, x);
    scale(backend, x, config().embedding_scale);
    if (weights_.position_embd) {
      const Tensor positions = pass.buffers->get(positions_, pass.x.shape[0]);
      ops::embed(backend, weights_.position_embd.w, pass.pos, positions);
      ops::add(backend, x, positions, 1.0f);
    }
    if (weights_.embedding_norm) normalize(backend, spec_, weights_.embedding_norm, x, x);
    if (altup != nullptr) altup->begin(x, pass);
    if (stream_) {  // the values are the embeddings, unless the first layer writes others
      const Tensor parts[] = {x, x};
      ops::join(backend, parts, pass.x);
    }
  }

  void layer(int il, const LayerPass& pass) const override {
    const DecoderLayer& w = weights_.layers[il];
    if (w.altup != nullptr) return layer_of_streams(w, pass);
    config().first_values ? layer_with_values(w, pass) : plain_layer(w, pass);
  }

  void output(Backend& backend, const Tensor& x, ActivationBuffer& buffers,
              const Tensor& logits) const override {
    const int64_t n = x.shape[0];
    buffers.ensure(backend, activations_, n, DType::f32);
    const Tensor normed = buffers.get(normed_, n);
    normalize(backend, spec_, weights_.output_norm, last_stream(backend, x, buffers), normed);
    const Projection head{weights_.output.w, weights_.output.bias, logits};
    ops::project(backend, normed, {&head, 1});
    scale(backend, logits, config().logit_scale);
    if (config().final_softcap > 0.0f) ops::softcap(backend, logits, config().final_softcap);
  }

  AttentionVariant variant(int il) const override {
    AttentionVariant variant = spec_.layers[il].variant();
    const TokenMixer* const mixer = weights_.layers[il].mixer.get();
    if (mixer != nullptr) variant.sinks = mixer->sinks();
    return variant;
  }
  RopeFrequencies rotation(int il, int64_t n_ctx) const override {
    return rotations_.find(spec_.layers[il].rotation, n_ctx);
  }

  const Weight& attention_output(int il) const override {
    return weights_.layers[il].mixer->output();
  }
  std::span<const Tensor> value_heads(int il) const override {
    return weights_.layers[il].mixer->value_heads();
  }
  LayerMatrices layer_matrices(int il) const override {
    LayerMatrices all;
    if (has_begin(il)) all.all_tokens = weights_.altup->first_matrices();
    for (const Block* block : weights_.layers[il].blocks()) {
      const std::vector<const Weight*> matrices = block->matrices();
      all.all_tokens.insert(all.all_tokens.end(), matrices.begin(), matrices.end());
      all.has_others = all.has_others || !block->other_matrices().empty();
    }
    return all;
  }
  int layer_kind(int il) const override { return kinds_[il]; }
  std::span<const GgufTensor* const> layer_tensors(int il) const override {
    return weights_.layers[il].file_tensors;
  }
  std::vector<Tensor> weights() const override { return weights_.all(); }

 private:
  /// Whether the layer's matrices include those that make the streams of embeddings.
  bool has_begin(int64_t il) const { return il == 0 && weights_.altup != nullptr; }

  void plain_layer(const DecoderLayer& w, const LayerPass& pass) const {
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    Tensor normed, side;
    if (w.is_side_norm && n_out > 0) {
      side = pass.buffers->get(side_, n_out);
      normalize(*pass.backend, spec_, w.ffn_norm, pass.x.slice(n - n_out, n), side);
    }
    if (w.ffn != nullptr && n_out > 0) w.ffn->begin(pass.x.slice(n - n_out, n), pass);
    if (w.mixer != nullptr) {
      normed = normalized(w.attn_norm, pass.x, pass);
      if (w.ffn != nullptr && w.ffn->shifts_tokens()) return shifted_layer(w, normed, pass);
      w.mixer->run(normed, pass);
    }
    if (n_out == 0 || w.ffn == nullptr) return;
    const Tensor x = pass.x.slice(n - n_out, n);
    const bool parallel =
        family_.parallel || (!w.ffn_norm && family_.ffn_norm == Presence::optional);
    if (!w.is_side_norm) {
      side = parallel ? normed.slice(n - n_out, n) : normalized(w.ffn_norm, x, pass);
    }
    w.ffn->run(side, x, pass);
    if (w.input != nullptr) w.input->run(x, pass);
    scale(*pass.backend, x, w.scale);
  }

  // The network sees the tokens before those whose output is wanted, so the mixer computes them
  // too.
  void shifted_layer(const DecoderLayer& w, const Tensor& normed, const LayerPass& pass) const {
    const int64_t n = pass.x.shape[0];
    LayerPass all = pass;
    all.n_out = n;
    w.mixer->run(normed, all);
    const Tensor x = pass.x.slice(n - pass.n_out, n);
    w.ffn->run(normalized(w.ffn_norm, pass.x, pass), x, pass);
    scale(*pass.backend, x, w.scale);
  }

  // Hidden states are the residual stream and the first layer's values, or the embeddings, side by
  // side.
  void layer_with_values(const DecoderLayer& w, const LayerPass& pass) const {
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    LayerPass inner = pass;
    inner.x = pass.buffers->get(stream_, n);
    inner.first_values = pass.buffers->get(values_, n);
    const Tensor parts[] = {inner.x, inner.first_values};
    ops::split(*pass.backend, pass.x, parts);
    plain_layer(w, inner);
    if (n_out == 0) return;
    const Tensor last[] = {inner.x.slice(n - n_out, n), inner.first_values.slice(n - n_out, n)};
    if (family_.adds_embeddings) ops::add(*pass.backend, last[0], last[1], w.embedding_factor);
    ops::join(*pass.backend, last, pass.x.slice(n - n_out, n));
  }

  /// What the output norm reads, [n, n_embd], of hidden states [n, n_hidden].
  Tensor last_stream(Backend& backend, const Tensor& x, ActivationBuffer& buffers) const {
    if (weights_.altup != nullptr) return weights_.altup->end(backend, x, buffers);
    if (!stream_) return x;
    const int64_t n = x.shape[0], n_embd = config().n_embd;
    const Tensor stream = buffers.get(stream_, n);
    ops::take_stream(backend, x.reshaped({n, 2, n_embd}), 0, {}, stream);
    return stream;
  }

  // The layer computes the first of the streams that it predicts, and then corrects all of them.
  void layer_of_streams(const DecoderLayer& w, const LayerPass& pass) const {
    const int64_t n = pass.x.shape[0], n_out = pass.n_out;
    LayerPass inner = pass;
    inner.x = w.altup->predict(pass);
    const Tensor normed = normalized(w.attn_norm, inner.x, pass);
    const Tensor low = n_out > 0 ? w.altup->low_rank(w.attn_norm, inner.x, normed, pass) : Tensor();
    w.mixer->run(normed, inner);
    if (n_out == 0) return;
    const Tensor x = inner.x.slice(n - n_out, n);
    AltUpLayer::join(x, low, pass);
    w.ffn->run(normalized(w.ffn_norm, x, pass), x, inner);
    const Tensor read = w.altup->correct(x, pass);
    AltUpLayer::add(w.input->compute(read, pass), pass);
  }

  void find_kinds() {
    std::map<std::vector<int64_t>, int> known;
    for (int64_t il = 0; il < std::ssize(weights_.layers); ++il) {
      const LayerSpec& layer = spec_.layers[il];
      std::vector<int64_t> traits = {static_cast<int64_t>(layer.mixer),
                                     static_cast<int64_t>(layer.attention),
                                     layer.window,
                                     layer.rotation.n_rot,
                                     layer.compressed,
                                     layer.n_head,
                                     layer.state.n_head,
                                     layer.state.head_dim_k,
                                     layer.state.head_dim_v,
                                     layer.state.window,
                                     layer.state.chunk,
                                     layer.plain_qk_norm,
                                     layer.state.n_recurrent,
                                     layer.state.shared,
                                     has_begin(il)};
      for (const FeedForwardPart& part : layer.ffn) {
        traits.insert(traits.end(), {static_cast<int64_t>(part.kind), part.n_ff, part.token_gate});
      }
      for (const Block* block : weights_.layers[il].blocks()) {
        for (const std::vector<const Weight*>& weights :
             {block->matrices(), block->other_matrices()}) {
          for (const Weight* weight : weights) {
            const Tensor& w = weight->w;
            traits.insert(traits.end(), {static_cast<int64_t>(w.dtype), w.shape[0], w.shape[1]});
          }
        }
      }
      const auto [at, is_new] = known.try_emplace(std::move(traits), std::ssize(known));
      kinds_.push_back(at->second);
    }
  }

  /// norm(x), or x, in the type that the block's products want.
  Tensor normalized(const Norm& norm, const Tensor& x, const LayerPass& pass) const {
    Backend& backend = *pass.backend;
    const Tensor normed = pass.buffers->get(normed_, x.shape[0]);
    if (norm) {
      normalize(backend, spec_, norm, x, normed);
      return normed;
    }
    return as_input(backend, x, normed);
  }

  static void scale(Backend& backend, const Tensor& x, float factor) {
    if (factor != 1.0f) ops::scale(backend, x, {&factor, 1});
  }

  const ModelSpec spec_;
  const Family& family_;
  RotationTable rotations_;
  ActivationPlan activations_;
  const ActivationTensor normed_;           // [n, n_embd], what both blocks read
  const ActivationTensor side_;             // [n, n_embd], what networks beside attention read
  const ActivationTensor positions_;        // [n, n_embd], where positions are learned
  const ActivationTensor stream_, values_;  // [n, n_embd], parts of hidden states with first_values
  const BlockContext context_{spec_, rotations_, activations_};
  std::vector<Buffer> owned_;  // before the weights, which may lie in it
  const DecoderWeights weights_;
  std::vector<int> kinds_;  // [n_layer]
};

}  // namespace

std::unique_ptr<Architecture> make_decoder(const GgufFile& file, ModelSpec spec) {
  return std::make_unique<Decoder>(file, std::move(spec));
}

}  // namespace snapkv
