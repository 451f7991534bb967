// SPDX-License-Identifier: MIT
#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "format/gguf.h"
#include "model/family.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

Heads checked_heads(const MetadataReader& reader, const ModelConfig& c, Heads heads,
                    bool may_differ) {
  const std::string& path = reader.file().path();
  if (heads.n_head % heads.n_head_kv != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}", path,
         reader.key("attention.head_count"), heads.n_head, reader.key("attention.head_count_kv"),
         heads.n_head_kv);
  }
  if (!reader.has("attention.key_length") && c.n_embd % heads.n_head != 0) {
    fail(ErrorCode::kBadModel, "{}: {} = {} is not a multiple of {} = {}, and {} is missing", path,
         reader.key("embedding_length"), c.n_embd, reader.key("attention.head_count"), heads.n_head,
         reader.key("attention.key_length"));
  }
  heads.head_dim =
      reader.size("attention.key_length", std::max<int64_t>(1, c.n_embd / heads.n_head), 4096);
  if (heads.head_dim % 8 != 0) {  // a whole number of the kernels' vectors
    fail(ErrorCode::kBadModel, "{}: the head size is {}, supported are multiples of 8", path,
         heads.head_dim);
  }
  heads.value_dim = reader.size("attention.value_length", heads.head_dim, 4096);
  if (heads.value_dim != heads.head_dim && !may_differ) {
    fail(ErrorCode::kBadModel, "{}: {} = {} differs from {} = {}, which is not supported", path,
         reader.key("attention.value_length"), heads.value_dim, reader.key("attention.key_length"),
         heads.head_dim);
  }
  if (heads.value_dim % 8 != 0) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, supported are multiples of 8", path,
         reader.key("attention.value_length"), heads.value_dim);
  }
  return heads;
}

/// What embeddings are multiplied by, and what each block adds to the residual stream.
void read_stream_scales(const MetadataReader& reader, const Family& family, ModelConfig& c) {
  if (family.stream_scales == Presence::required) {
    c.embedding_scale = static_cast<float>(reader.positive("embedding_scale"));
    c.residual_scale = static_cast<float>(reader.positive("residual_scale"));
    return;
  }
  c.embedding_scale = static_cast<float>(
      reader.positive("embedding_scale",
                      family.scales_embeddings ? std::sqrt(static_cast<double>(c.n_embd)) : 1.0));
  c.residual_scale = static_cast<float>(reader.positive("residual_scale", 1.0));
}

void read_temperature(const MetadataReader& reader, const Family& family, ModelConfig& c) {
  const FamilyTemperature& otherwise = family.temperature;
  QueryTemperature& t = c.temperature;
  t.offset = otherwise.offset;
  t.scale = reader.not_negative("attention.temperature_scale", otherwise.scale);
  if (t.scale == 0.0) return;
  constexpr const char* kLength = "attention.temperature_length";
  if (otherwise.length > 0) {
    t.length = reader.size(kLength, otherwise.length, INT32_MAX);
  } else {
    t.length = reader.size(reader.has(kLength) ? kLength : "rope.scaling.original_context_length",
                           INT32_MAX);
  }
}

void read_scales(const MetadataReader& reader, const Family& family, ModelConfig& c) {
  read_stream_scales(reader, family, c);
  if (family.logit_scale != LogitScale::none) {
    const bool may_lack = family.logit_scale == LogitScale::divides_if_given ||
                          family.logit_scale == LogitScale::multiplies_if_given;
    const double scale =
        may_lack ? reader.positive("logit_scale", 1.0) : reader.positive("logit_scale");
    const bool multiplies = family.logit_scale == LogitScale::multiplies ||
                            family.logit_scale == LogitScale::multiplies_if_given;
    c.logit_scale = static_cast<float>(multiplies ? scale : 1.0 / scale);
  } else if (reader.has("logit_scale")) {
    fail(ErrorCode::kBadModel, "{}: {} is there, which architecture \"{}\" does not have",
         reader.file().path(), reader.key("logit_scale"), c.architecture);
  }
  c.final_softcap = reader.softcap("final_logit_softcapping", family.final_softcap);
  read_temperature(reader, family, c);
}

/// The sparse mixer, the only rule of Phi's mixtures.
Routing read_sparse_mixer(const MetadataReader& reader) {
  const GgufFile& file = reader.file();
  constexpr int64_t kUsed = 2;
  const auto expect = [&](const char* name, uint64_t expected, const char* why) {
    const uint64_t value = file.get_uint(reader.key(name), expected);
    if (value == expected) return;
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected {}: {}", file.path(), reader.key(name),
         value, expected, why);
  };
  expect("expert_used_count", kUsed, "the sparse mixer chooses two experts");
  for (const char* name : {"expert_group_count", "expert_group_used_count", "expert_gating_func"}) {
    expect(name, 1, "the sparse mixer has no groups and no other scores");
  }
  if (reader.flag("expert_weights_norm", false)) {
    fail(ErrorCode::kBadModel,
         "{}: {} is true, expected false: the sparse mixer does not divide "
         "weights by their sum",
         file.path(), reader.key("expert_weights_norm"));
  }
  Routing rule;
  rule.score = ExpertScore::sparse_mixer;
  rule.normalized = false;
  const double jitter = file.get_float("snapkv.router_jitter_noise", rule.jitter);
  if (!(jitter >= 0.0 && jitter < 0.5)) {
    fail(ErrorCode::kBadModel, "{}: snapkv.router_jitter_noise is {}, expected 0 to less than 0.5",
         file.path(), jitter);
  }
  rule.jitter = static_cast<float>(jitter);
  rule.scale = static_cast<float>(reader.positive("expert_weights_scale", 1.0));
  return rule;
}

/// How the experts of a token are chosen; c has their numbers.
Routing read_routing(const MetadataReader& reader, const Family& family, const ModelConfig& c) {
  if (family.expert_score == ExpertScore::sparse_mixer) return read_sparse_mixer(reader);
  const GgufFile& file = reader.file();
  Routing rule;
  rule.score = family.expert_score;
  if (reader.has("expert_gating_func")) {  // llama.cpp's numbers, from 1
    constexpr ExpertScore kScores[] = {ExpertScore::softmax, ExpertScore::sigmoid,
                                       ExpertScore::softmax_of_chosen};
    const uint64_t number = file.get_uint(reader.key("expert_gating_func"));
    if (number < 1 || number > std::size(kScores)) {
      fail(ErrorCode::kBadModel,
           "{}: {} is {}; supported are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen)",
           file.path(), reader.key("expert_gating_func"), number);
    }
    rule.score = kScores[number - 1];
  }
  rule.normalized = reader.flag("expert_weights_norm", family.experts_normalized);
  rule.scale = static_cast<float>(reader.positive("expert_weights_scale", 1.0));
  rule.n_group = reader.size("expert_group_count", 1, c.n_expert);
  rule.n_group_used = reader.size("expert_group_used_count", 1, rule.n_group);
  const uint64_t n_best = file.get_uint("snapkv.expert_group_best", 2);
  if (n_best != 1 && n_best != 2) {
    fail(ErrorCode::kBadModel,
         "{}: snapkv.expert_group_best is {}, expected 1 or 2: how many scores of a group are "
         "added",
         file.path(), n_best);
  }
  rule.n_group_best = static_cast<int64_t>(n_best);
  if (c.n_expert % rule.n_group != 0 ||
      c.n_expert_used > c.n_expert / rule.n_group * rule.n_group_used) {
    fail(ErrorCode::kBadModel, "{}: {} = {} and {} = {} do not go with {} = {} and {} = {}",
         file.path(), reader.key("expert_group_count"), rule.n_group,
         reader.key("expert_group_used_count"), rule.n_group_used, reader.key("expert_count"),
         c.n_expert, reader.key("expert_used_count"), c.n_expert_used);
  }
  return rule;
}

/// Experts, where the family may have them.
void read_experts(const MetadataReader& reader, const Family& family, ModelConfig& c) {
  const GgufFile& file = reader.file();
  const uint64_t count = file.get_uint(reader.key("expert_count"), 0);
  if (family.experts == ExpertLayers::never) {
    if (count == 0) return;
    fail(ErrorCode::kBadModel, "{}: {} = {}: mixtures of experts are not supported for \"{}\"",
         file.path(), reader.key("expert_count"), count, family.name);
  }
  if (count == 0) {
    const std::string router = fmt::format("blk.{}.ffn_gate_inp.weight", c.n_layer - 1);
    const bool routed = file.find_tensor(router) != nullptr;
    if (!routed && family.experts == ExpertLayers::if_counted) return;
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected the number of experts{}", file.path(),
         reader.key("expert_count"), reader.has("expert_count") ? "0" : "missing",
         routed ? fmt::format(": the file has tensor {}", router) : "");
  }
  c.n_expert = reader.size("expert_count", kMostExperts);
  c.n_expert_used = static_cast<int64_t>(
      std::min<uint64_t>(INT32_MAX, file.get_uint(reader.key("expert_used_count"))));
  if (c.n_expert_used < 1 || c.n_expert_used > c.n_expert) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected 1 to {}, which is {}", file.path(),
         reader.key("expert_used_count"), c.n_expert_used, c.n_expert, reader.key("expert_count"));
  }
  c.routing = read_routing(reader, family, c);
  if (family.caps_router) c.router_softcap = reader.softcap("router_logit_softcapping", 0.0);
}

int64_t read_n_draft_layers(const MetadataReader& reader, int64_t n_block) {
  const uint64_t n = reader.file().get_uint(reader.key("nextn_predict_layers"));
  if (n < static_cast<uint64_t>(n_block)) return static_cast<int64_t>(n);
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected fewer than the {} of {}", reader.file().path(),
       reader.key("nextn_predict_layers"), n, n_block, reader.key("block_count"));
}

/// Whether attention and the feed-forward network read the same residual stream.
bool read_parallel(const MetadataReader& reader) {
  constexpr const char* kKey = "use_parallel_residual";
  if (reader.has(kKey)) return reader.flag(kKey, true);
  fail(ErrorCode::kBadModel,
       "{}: {} is missing: it says whether attention and the feed-forward network stand side by "
       "side",
       reader.file().path(), reader.key(kKey));
}

Activation read_activation(const MetadataReader& reader, const Family& family) {
  constexpr const char* kKey = "hidden_activation";
  if (!family.names_activation || !reader.has(kKey)) return family.activation;
  const std::string text = reader.text(kKey, "");
  if (family.gated) {
    if (text == "silu") return Activation::silu;
    if (text == "relu2") return Activation::relu_squared;
  } else {
    if (text == "gelu") return Activation::gelu;
    if (text == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  }
  fail(ErrorCode::kBadModel, "{}: {} is \"{}\"; supported are {}", reader.file().path(),
       reader.key(kKey), text,
       family.gated ? "\"silu\" and \"relu2\"" : "\"gelu\" and \"gelu_pytorch_tanh\"");
}

/// position_embd.weight holds a vector for each position that the model knows.
int64_t read_n_positions(const MetadataReader& reader) {
  const GgufFile& file = reader.file();
  const GgufTensor* t = file.find_tensor("position_embd.weight");
  if (t == nullptr) {
    fail(ErrorCode::kBadModel, "{}: tensor position_embd.weight is missing", file.path());
  }
  return t->tensor.shape[0];
}

}  // namespace

float QueryTemperature::factor(int32_t pos) const {
  if (scale == 0.0) return 1.0f;
  const double n = std::floor((static_cast<double>(pos) + offset) / static_cast<double>(length));
  return static_cast<float>(1.0 + scale * std::log(1.0 + n));
}

std::vector<Heads> read_heads(const MetadataReader& reader, const ModelConfig& c, bool all_attend,
                              bool may_differ) {
  constexpr int64_t kMost = 1 << 14;
  const std::vector<int64_t> n_head =
      reader.sizes("attention.head_count", c.n_layer, {}, all_attend ? 1 : 0, kMost);
  const std::vector<int64_t> n_head_kv =
      reader.sizes("attention.head_count_kv", c.n_layer, n_head, all_attend ? 1 : 0, kMost);
  std::vector<Heads> layers;
  for (int64_t il = 0; il < c.n_layer; ++il) {
    const Heads heads = {n_head[il], n_head_kv[il]};
    const bool attends = heads.n_head > 0 && heads.n_head_kv > 0;
    layers.push_back(attends ? checked_heads(reader, c, heads, may_differ) : Heads());
  }
  return layers;
}

ModelConfig read_config(const MetadataReader& reader, const Family& family) {
  const GgufFile& file = reader.file();
  ModelConfig c;
  c.architecture = reader.architecture();
  c.n_layer = reader.size("block_count", 4096);
  if (reader.has("nextn_predict_layers")) c.n_draft_layer = read_n_draft_layers(reader, c.n_layer);
  c.n_layer -= c.n_draft_layer;
  c.n_embd = reader.size("embedding_length", 1 << 20);
  c.parallel = family.parallel || (family.parallel_if_flagged && read_parallel(reader));
  c.norm_places = family.norm_places;
  if (family.after_if_flagged && reader.flag("swin_norm", false)) {
    c.norm_places = NormPlaces::after;
  }
  c.first_values = family.adds_embeddings;
  c.activation = read_activation(reader, family);
  c.qkv_limit = static_cast<float>(reader.not_negative("attention.clamp_kqv", 0.0));
  read_experts(reader, family, c);
  c.n_ctx_train = reader.size("context_length", INT32_MAX);
  // Files of phimoe name the number for their layer norms as that of RMS norms.
  const bool rms = family.norm == NormKind::rms || !reader.has("attention.layer_norm_epsilon");
  c.norm = family.norm_by_epsilon && rms ? NormKind::rms : family.norm;
  c.norm_eps = static_cast<float>(reader.positive(
      rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5));
  read_scales(reader, family, c);
  const GgufTensor* embd = file.find_tensor("token_embd.weight");
  if (embd == nullptr) {
    fail(ErrorCode::kBadModel, "{}: tensor token_embd.weight is missing", file.path());
  }
  c.n_vocab = embd->tensor.shape[0];
  c.never_written = family.never_written;
  if (c.never_written.end > 0) {
    IdRange& ids = c.never_written;
    ids.begin = static_cast<int64_t>(file.get_uint("snapkv.first_picture_token", ids.begin));
    ids.end = static_cast<int64_t>(file.get_uint("snapkv.end_of_picture_tokens", ids.end));
  }
  if (c.never_written.begin < 0 || c.never_written.begin > c.never_written.end ||
      c.n_vocab < c.never_written.end) {
    fail(ErrorCode::kBadModel,
         "{}: token_embd.weight has {} rows, expected at least {}: tokens {} to {} are those of "
         "pictures",
         file.path(), c.n_vocab, c.never_written.end, c.never_written.begin,
         c.never_written.end - 1);
  }
  if (family.layer_inputs) {
    c.n_layer_input = static_cast<int64_t>(std::min<uint64_t>(
        1 << 16, file.get_uint(reader.key("embedding_length_per_layer_input"), 0)));
  }
  if (family.rotated == RotatedLayers::none) c.n_positions = read_n_positions(reader);
  return c;
}

}  // namespace snapkv
