// SPDX-License-Identifier: MIT
#include "model/decoder_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "format/gguf.h"
#include "model/blocks/compose.h"

namespace snapkv {
namespace {

class DecoderLoader {
 public:
  DecoderLoader(const GgufFile& file, const BlockContext& context, std::vector<Buffer>& owned)
      : file_(file),
        context_(context),
        family_(*context.spec.family),
        config_(context.spec.config),
        loader_(file, owned) {}

  DecoderWeights load() {
    const ModelConfig& c = config_;
    DecoderWeights w;
    w.token_embd = loader_.matrix("token_embd", c.n_vocab, c.n_embd);
    if (c.n_positions > 0)
      w.position_embd = loader_.matrix("position_embd", c.n_positions, c.n_embd);
    if (family_.embedding_norm) {
      w.embedding_norm =
          LayerLoader::load_norm(context_.spec, loader_, "token_embd_norm", Presence::required);
    }
    w.output_norm = LayerLoader::load_norm(context_.spec, loader_, std::string(family_.output_norm),
                                           Presence::required);
    w.output = output(w.token_embd);
    if (const IdRange& ids = config_.never_written; ids.end > ids.begin) {
      w.output.bias = bias_against(ids);
    }
    load_rope_factors(w);
    if (c.n_layer_input > 0) {
      w.layer_inputs = LayerInputTables::load(context_.spec, loader_, w.token_embd);
    }
    if (c.n_streams > 1) {
      w.altup = std::make_unique<AltUpEnds>(context_.spec, context_.activations, loader_);
    }
    loader_.take_loaded();
    for (int64_t il = 0; il < c.n_layer; ++il) {
      w.layers.push_back(layer(il, w.layer_inputs));
      w.layers.back().file_tensors = loader_.take_loaded();
    }
    ignore_draft_layers();
    loader_.check_all_used(family_.name);
    return w;
  }

 private:
  void ignore_draft_layers() {
    for (int64_t il = config_.n_layer; il < config_.n_layer + config_.n_draft_layer; ++il) {
      const std::string prefix = fmt::format("blk.{}.", il);
      for (const GgufTensor& t : file_.tensors()) {
        if (t.name.starts_with(prefix)) loader_.ignore(t.name);
      }
    }
  }

  Weight output(const Weight& token_embd) {
    if (family_.shared_output == SharedOutput::always ||
        (family_.shared_output == SharedOutput::allowed && !loader_.has("output.weight"))) {
      return token_embd;
    }
    return loader_.matrix("output", config_.n_vocab, config_.n_embd, family_.logits_bias);
  }

  /// Biases of logits that leave tokens out, since nothing that is added to them makes a
  /// difference.
  Tensor bias_against(const IdRange& ids) {
    const Tensor bias = loader_.ones(config_.n_vocab);
    auto* const values = bias.at<float>(0);
    std::fill_n(values, config_.n_vocab, 0.0f);
    std::fill(values + ids.begin, values + ids.end, std::numeric_limits<float>::lowest());
    return bias;
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

  DecoderLayer layer(int64_t il, const LayerInputTables& inputs) {
    const bool before = config_.norm_places != NormPlaces::after;
    LayerLoader loader(context_.spec, loader_, il);
    DecoderLayer layer;
    const bool has_mixer = loader.layer().mixer != TokenMixerKind::none;
    const bool has_second = family_.may_have_second_norm && loader_.has("blk.0.attn_norm_2.weight");
    if (has_mixer && before)
      layer.attn_norm = loader.norm(has_second ? "attn_norm_2" : "attn_norm");
    if (has_mixer) layer.mixer = make_token_mixer(context_, loader);
    if (!loader.layer().has_ffn) return layer;
    if (has_second) layer.ffn_norm = loader.norm("attn_norm");
    if (before && !family_.parallel) {
      layer.ffn_norm = loader.norm(std::string(family_.ffn_norm_name), family_.ffn_norm);
    }
    layer.scale = loader.layer().stream_scale;
    layer.is_side_norm = config_.parallel && layer.ffn_norm;
    layer.ffn = make_feed_forward(context_, loader);
    if (config_.n_streams > 1) layer.altup = std::make_unique<AltUpLayer>(context_, loader);
    if (inputs.table) layer.input = std::make_unique<LayerInput>(inputs, context_, loader);
    constexpr const char* kScale = "layer_output_scale.weight";
    if (family_.adds_embeddings) layer.embedding_factor = loader.number(kScale);
    if (family_.layer_scales && loader.has(kScale)) layer.scale = loader.number(kScale);
    return layer;
  }

  const GgufFile& file_;
  const BlockContext& context_;
  const Family& family_;
  const ModelConfig& config_;
  WeightLoader loader_;
};

}  // namespace

std::vector<const Block*> DecoderLayer::blocks() const {
  std::vector<const Block*> all;
  if (mixer != nullptr) all.push_back(mixer.get());
  if (ffn != nullptr) all.push_back(ffn.get());
  if (input != nullptr) all.push_back(input.get());
  if (altup != nullptr) all.push_back(altup.get());
  return all;
}

std::vector<const Norm*> DecoderLayer::norms() const {
  std::vector<const Norm*> all = present({&attn_norm, &ffn_norm});
  for (const Block* block : blocks()) {
    const std::vector<const Norm*> norms = block->norms();
    all.insert(all.end(), norms.begin(), norms.end());
  }
  return all;
}

std::vector<Tensor> DecoderWeights::all() const {
  std::vector<Tensor> tensors;
  const auto add = [&](const Tensor& t, const Tensor& bias) {
    if (t) tensors.push_back(t);
    if (bias) tensors.push_back(bias);
  };
  add(embedding_norm.weight, embedding_norm.bias);
  add(output_norm.weight, output_norm.bias);
  add(output.w, output.bias);
  for (const DecoderLayer& layer : layers) {
    for (const Norm* norm : layer.norms()) add(norm->weight, norm->bias);
    for (const Block* block : layer.blocks()) {
      for (const Weight* weight : block->matrices()) add(weight->w, weight->bias);
      for (const Weight* weight : block->other_matrices()) add(weight->w, weight->bias);
      for (const Tensor& vector : block->vectors()) add(vector, {});
    }
  }
  add(token_embd.w, {});
  add(position_embd.w, {});
  if (altup != nullptr) {
    for (const Weight* w : altup->first_matrices()) add(w->w, {});
    for (const Weight* w : altup->last_matrices()) add(w->w, {});
  }
  add(layer_inputs.table.w, {});
  return tensors;
}

DecoderWeights load_decoder_weights(const GgufFile& file, const BlockContext& context,
                                    std::vector<Buffer>& owned) {
  return DecoderLoader(file, context, owned).load();
}

}  // namespace snapkv
