// SPDX-License-Identifier: MIT
#include "model/model_spec.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "format/gguf.h"
#include "model/feed_forward.h"
#include "model/file_kind.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

/// Keys of models that compute something other than decoder.cpp does. Any of them is an error
/// unless it is absent or 0.
struct ForeignKey {
  const char* name;
  const char* meaning;
};
constexpr ForeignKey kForeignKeys[] = {
    {"expert_shared_count", "experts that every token passes"},
    {"attention.kv_lora_rank", "multi-head latent attention"},
    {"attention.q_lora_rank", "multi-head latent attention"},
    {"attention.key_length_mla", "multi-head latent attention"},
    {"ssm.state_size", "recurrent layers"},
    {"ssm.conv_kernel", "recurrent layers"},
    {"wkv.head_size", "recurrent layers"},
    {"shortconv.l_cache", "recurrent layers"},
    {"nextn_predict_layers", "layers that predict further tokens"},
    {"attention.shared_kv_layers", "layers that share keys and values"},
    {"attention.key_length_swa", "heads of another size in layers with a sliding window"},
    {"attention.max_alibi_bias", "linear position biases (ALiBi)"},
    {"attention.clamp_kqv", "clamped queries, keys and values"},
};

/// The value as an error message shows it, or "" if it is 0.
std::string nonzero(const GgufValue& value) {
  if (const auto* n = std::get_if<uint64_t>(&value.value)) {
    return *n != 0 ? fmt::format("{}", *n) : "";
  }
  if (const auto* n = std::get_if<int64_t>(&value.value)) {
    return *n != 0 ? fmt::format("{}", *n) : "";
  }
  if (const auto* n = std::get_if<double>(&value.value)) {
    return *n != 0 ? fmt::format("{}", *n) : "";
  }
  return "(an array)";
}

/// Whether a key of kForeignKeys is not foreign to the family.
bool knows_key(const Family& family, std::string_view name) {
  if (name == "expert_shared_count" && family.shared_expert != SharedExpert::none) return true;
  return std::any_of(family.own_keys.begin(), family.own_keys.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

/// `family`: null if the architecture is unknown.
void check_foreign_keys(const MetadataReader& reader, const Family* family) {
  const GgufFile& file = reader.file();
  for (const ForeignKey& foreign : kForeignKeys) {
    if (family != nullptr && knows_key(*family, foreign.name)) continue;
    const auto it = file.metadata().find(reader.key(foreign.name));
    if (it == file.metadata().end()) continue;
    const std::string value = nonzero(it->second);
    if (value.empty()) continue;
    fail(ErrorCode::kBadModel, "{}: {} = {}: {} are not supported", file.path(), it->first, value,
         foreign.meaning);
  }
  if (!reader.flag("attention.causal", true)) {
    fail(ErrorCode::kBadModel, "{}: {} is false: attention to later tokens is not supported",
         file.path(), reader.key("attention.causal"));
  }
}

/// An array of bools, or of numbers that are 0 or 1, one for each of n layers. Empty: it is none.
std::vector<bool> flags_of(const GgufValue& value, int64_t n) {
  std::vector<bool> all;
  const auto take = [&](const auto* flags) {
    for (int64_t il = 0; flags != nullptr && std::ssize(*flags) >= n && il < n; ++il) {
      all.push_back((*flags)[il] != 0);
    }
    return !all.empty();
  };
  take(std::get_if<std::vector<bool>>(&value.value)) ||
      take(std::get_if<std::vector<int64_t>>(&value.value)) ||
      take(std::get_if<std::vector<uint64_t>>(&value.value));
  return all;
}

/// The length of the sliding windows and the layers that have one.
struct SlidingWindowLayers {
  int64_t length = 0;
  std::vector<bool> in_pattern;  // [n_layer], also where the window hides nothing
};

SlidingWindowLayers read_windows(const MetadataReader& reader, const SlidingWindows& family,
                                 int64_t n_layer) {
  constexpr const char* kLength = "attention.sliding_window";
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  const GgufFile& file = reader.file();
  SlidingWindowLayers windows;
  windows.length = static_cast<int64_t>(
      std::min<uint64_t>(INT32_MAX, file.get_uint(reader.key(kLength), family.length)));
  const auto it = file.metadata().find(reader.key(kPattern));
  if (it != file.metadata().end() && it->second.type == GgufType::array) {
    windows.in_pattern = flags_of(it->second, n_layer);
    if (!windows.in_pattern.empty()) return windows;
    fail(ErrorCode::kBadModel, "{}: {} must be a number or an array of {} bools", file.path(),
         it->first, n_layer);
  }
  const uint64_t full_every = file.get_uint(reader.key(kPattern), family.full_every);
  for (int64_t il = 0; il < n_layer; ++il) {
    const uint64_t full = family.full_first ? 0 : full_every - 1;  // which of them is
    windows.in_pattern.push_back(full_every == 0 || il % full_every != full);
  }
  return windows;
}

bool is_flagged(const MetadataReader& reader, const char* name, int64_t il, int64_t n_layer) {
  const auto it = reader.file().metadata().find(reader.key(name));
  if (it == reader.file().metadata().end()) return true;
  const std::vector<bool> flags = flags_of(it->second, n_layer);
  if (!flags.empty()) return flags[il];
  fail(ErrorCode::kBadModel, "{}: {} must be an array of {} bools", reader.file().path(), it->first,
       n_layer);
}

bool is_rotated(const MetadataReader& reader, RotatedLayers rotated, int64_t il,
                const SlidingWindowLayers& windows) {
  const bool in_pattern = windows.length > 0 && windows.in_pattern[il];
  switch (rotated) {
    case RotatedLayers::all:
      return true;
    case RotatedLayers::if_finetuned:
      return reader.flag("rope.scaling.finetuned", true);
    case RotatedLayers::three_of_four:
      return (il + 1) % 4 != 0;
    case RotatedLayers::windows:
      return in_pattern;
    case RotatedLayers::windows_and_dense:
      return in_pattern || static_cast<uint64_t>(il) <
                               reader.file().get_uint(reader.key("leading_dense_block_count"), 0);
    case RotatedLayers::windows_if_any:
      return in_pattern || windows.length == 0;
    case RotatedLayers::if_flagged:
      return is_flagged(reader, "attention.rope_pattern", il, std::ssize(windows.in_pattern));
    case RotatedLayers::none:
    case RotatedLayers::biased:
      return false;
  }
  SNAPKV_CHECK(false);
}

float read_attention_scale(const MetadataReader& reader, const ModelSpec& spec,
                           const Heads& heads) {
  const ModelConfig& c = spec.config;
  const int64_t width =
      c.n_layer == spec.family->wide_scale_n_layer ? c.n_embd / heads.n_head : heads.head_dim;
  if (spec.family->scales_by_width) return 1.0f / static_cast<float>(heads.head_dim);
  const double scale = reader.not_negative("attention.scale", 0.0);
  return scale > 0.0 ? static_cast<float>(scale) : 1.0f / std::sqrt(static_cast<float>(width));
}

/// Whether pairs turn by several positions: by time, by height and by width in a picture. In a text
/// these are all the same, but such files pair values as `neox` does, whatever the family.
bool has_sections(const MetadataReader& reader) {
  const auto it = reader.file().metadata().find(reader.key("rope.dimension_sections"));
  if (it == reader.file().metadata().end()) return false;
  const auto are_there = [](const auto* sizes) {
    return sizes != nullptr && sizes->size() >= 2 && (*sizes)[0] > 0 && (*sizes)[1] > 0;
  };
  return are_there(std::get_if<std::vector<int64_t>>(&it->second.value)) ||
         are_there(std::get_if<std::vector<uint64_t>>(&it->second.value));
}

/// The family's layout, unless the file orders the rows of Q and K differently from the family's
/// GGUF files. Hugging Face folders, which are read in place, do.
RopeLayout rope_layout(const MetadataReader& reader, const Family& family) {
  const GgufFile& file = reader.file();
  const std::string layout = file.get_string("snapkv.rope.layout", "");
  if (layout.empty()) return has_sections(reader) ? RopeLayout::neox : family.rope;
  if (layout == "neox") return RopeLayout::neox;
  fail(ErrorCode::kBadModel, "{}: snapkv.rope.layout is \"{}\", supported is \"neox\"", file.path(),
       layout);
}

void check_rotated(const MetadataReader& reader, int64_t n_rot, int64_t head_dim) {
  if (n_rot <= head_dim) return;
  fail(ErrorCode::kBadModel, "{}: {} = {} is more than the head size, {}", reader.file().path(),
       reader.key("rope.dimension_count_swa"), n_rot, head_dim);
}

void halve_rotation(const MetadataReader& reader, RotationSpec& rotation) {
  if (rotation.n_rot % 4 != 0) {
    fail(ErrorCode::kBadModel,
         "{}: {} = {} must be a multiple of 4: layers without a window rotate half of it",
         reader.file().path(), reader.key("rope.dimension_count"), rotation.n_rot);
  }
  rotation.n_rot /= 2;
  rotation.may_have_more = true;
}

/// The biases of the scores of a layer's heads, if the model has some.
void add_position_bias(const MetadataReader& reader, const ModelSpec& spec, LayerSpec& layer) {
  constexpr int64_t kBlock = 32;  // of q8_0, in which positions would lose their last digits
  const Family& family = *spec.family;
  const bool may_have = family.biased_n_layer == 0 || family.biased_n_layer == spec.config.n_layer;
  if (family.position_bias == 0.0f || !may_have) return;
  PositionBiasSpec& bias = layer.position_bias;
  bias.max_bias =
      static_cast<float>(reader.positive("attention.max_alibi_bias", family.position_bias));
  bias.n_values = (layer.state.head_dim_k + 8) % kBlock == 0 ? 16 : 8;
  layer.state.head_dim_k += bias.n_values;
  layer.rotation = RotationSpec();
}

void make_llama_layers(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const Family& family = *spec.family;
  const SlidingWindowLayers windows = read_windows(reader, family.windows, c.n_layer);
  if (family.rotated == RotatedLayers::windows ||
      family.rotated == RotatedLayers::windows_and_dense) {
    reader.size("attention.sliding_window", INT32_MAX);  // required: no other layer is rotated
  }
  const std::vector<Heads> all_heads = read_heads(reader, c, true, family.values_differ);
  const auto value_scale = static_cast<float>(
      family.values_differ ? reader.positive("attention.value_scale", 1.0) : 1.0);
  for (int64_t il = 0; il < c.n_layer; ++il) {
    const bool in_pattern = windows.length > 0 && windows.in_pattern[il];
    LayerSpec layer = full_attention_layer(reader, spec, all_heads[il]);
    RotationSpec in_window = window_rotation(reader, layer.rotation, family.windows);
    if (family.half_rotated) in_window.uses_factors = false;
    if (in_pattern) {
      check_rotated(reader, in_window.n_rot, all_heads[il].head_dim);
      layer.rotation = in_window;
    } else if (family.half_rotated) {
      halve_rotation(reader, layer.rotation);
    }
    if (!is_rotated(reader, family.rotated, il, windows)) layer.rotation = RotationSpec();
    layer.factors.attention_out = value_scale;
    add_position_bias(reader, spec, layer);
    // a window as long as the context hides nothing
    if (in_pattern && windows.length < c.n_ctx_train) {
      layer.attention = AttentionKind::sliding_window;
      layer.window = layer.state.window = windows.length;
      layer.compressed = false;
    }
    spec.layers.push_back(layer);
  }
}

void number_layers(ModelSpec& spec) {
  PolicyLayer next;
  for (LayerSpec& layer : spec.layers) {
    layer.place.il = next.il;
    if (layer.compressed) ++next.il;
  }
  for (LayerSpec& layer : spec.layers) layer.place.n_layer = next.il;
}

}  // namespace

LayerSpec full_attention_layer(const MetadataReader& reader, const ModelSpec& spec,
                               const Heads& heads) {
  LayerSpec layer;
  layer.n_head = heads.n_head;
  layer.state = {
      .n_head = heads.n_head_kv, .head_dim_k = heads.head_dim, .head_dim_v = heads.value_dim};
  layer.scale = read_attention_scale(reader, spec, heads);
  layer.softcap = reader.softcap("attn_logit_softcapping", spec.family->attention_softcap);
  layer.rotation = read_rotation(reader, rope_layout(reader, *spec.family), heads.head_dim);
  if (spec.family->stretches_base) {
    const double alpha = reader.positive("rope.scaling.alpha", 1.0);
    const auto d = static_cast<double>(heads.head_dim);
    layer.rotation.freq_base *= std::pow(alpha, d / (d - 2.0));
  }
  return layer;
}

LayerSpec stateless_layer(TokenMixerKind mixer) {
  LayerSpec layer;
  layer.mixer = mixer;
  layer.attention = AttentionKind::none;
  layer.compressed = false;
  return layer;
}

void require_attention(const MetadataReader& reader, const ModelSpec& spec) {
  if (std::any_of(spec.layers.begin(), spec.layers.end(),
                  [](const LayerSpec& layer) { return layer.compressed; })) {
    return;
  }
  fail(ErrorCode::kBadModel,
       "{}: {} gives attention to none of {} layers: a model without "
       "attention is not supported",
       reader.file().path(), reader.key("attention.head_count_kv"), spec.config.n_layer);
}

bool ModelSpec::is_recurrent() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerSpec& layer) { return layer.state.n_recurrent > 0; });
}

std::vector<int> ModelSpec::readers(int il) const {
  std::vector<int> all = {il};
  for (int other = il + 1; other < std::ssize(layers); ++other) {
    if (rows_of(other) == il) all.push_back(other);
  }
  return all;
}

size_t ModelSpec::bytes_per_token(DType kv_type) const {
  size_t bytes = 0;
  for (const LayerSpec& layer : layers) bytes += layer.state.bytes_per_token(kv_type);
  return bytes;
}

size_t ModelSpec::full_bytes(DType kv_type, int64_t n_tokens) const {
  size_t bytes = 0;
  for (const LayerSpec& layer : layers) bytes += layer.full_bytes(kv_type, n_tokens);
  return bytes;
}

bool ModelSpec::rotate_alike(int64_t n_ctx_a, int64_t n_ctx_b) const {
  return std::all_of(layers.begin(), layers.end(), [&](const LayerSpec& layer) {
    const int64_t n = layer.rotation.n_ctx_short;
    return n == 0 || (n_ctx_a > n) == (n_ctx_b > n);
  });
}

ModelSpec read_model_spec(const GgufFile& file) {
  check_file_kind(file);
  const MetadataReader reader(file);
  const auto known = std::find_if(families().begin(), families().end(), [&](const Family& family) {
    return family.name == reader.architecture();
  });
  // first, since it gives a better reason than an unknown architecture
  check_foreign_keys(reader, known == families().end() ? nullptr : &*known);
  ModelSpec spec;
  spec.family = &find_family(file);
  spec.config = read_config(reader, *spec.family);
  spec.family->make_layers != nullptr ? spec.family->make_layers(reader, spec)
                                      : make_llama_layers(reader, spec);
  add_feed_forward(reader, spec);
  number_layers(spec);
  return spec;
}

}  // namespace snapkv
