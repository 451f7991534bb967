// SPDX-License-Identifier: MIT
// ModelInfo, and metadata values as text.
#include "engine/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <variant>

#include "base/error.h"
#include "engine/core/model_impl.h"
#include "format/ggml_types.h"
#include "model/blocks/expert_names.h"

namespace snapkv {
namespace {

constexpr size_t kMaxItems = 6;   // items of an array that are shown
constexpr size_t kMaxText = 120;  // bytes of a string that are shown

std::string_view type_name(GgufType t) {
  constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<int>(t)];
}

/// The first kMaxText bytes, cut at a character's boundary, with control characters escaped.
std::string shown(const std::string& text) {
  size_t n = std::min(text.size(), kMaxText);
  while (n < text.size() && n > 0 && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80) --n;
  std::string out;
  for (char c : text.substr(0, n)) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return n < text.size() ? out + "..." : out;
}

std::string shown(uint64_t v) { return fmt::format("{}", v); }
std::string shown(int64_t v) { return fmt::format("{}", v); }
std::string shown(double v) { return fmt::format("{:.9g}", v); }
std::string shown(bool v) { return v ? "true" : "false"; }

template <typename T>
std::string shown(const std::vector<T>& items) {
  std::string out = "[";
  for (size_t i = 0; i < std::min(items.size(), kMaxItems); ++i) {
    out += (i > 0 ? ", " : "") + shown(static_cast<T>(items[i]));
  }
  return out + (items.size() > kMaxItems ? ", ...]" : "]");
}

}  // namespace

MetadataEntry describe_entry(const std::string& key, const GgufValue& value) {
  MetadataEntry entry;
  entry.key = key;
  entry.type = type_name(value.type);
  std::visit(
      [&](const auto& v) {
        entry.value = shown(v);
        if constexpr (requires { v.begin(); } &&
                      !std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          entry.type = fmt::format("array<{}>[{}]", type_name(value.element), v.size());
        }
      },
      value.value);
  return entry;
}

const char* name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::full:
      return "full";
    case AttentionKind::sliding_window:
      return "sliding window";
    case AttentionKind::chunked:
      return "chunks";
    case AttentionKind::none:
      return "none";
  }
  SNAPKV_CHECK(false);
}

int64_t ModelInfo::full_rows(int64_t il, int64_t n_tokens) const {
  const int64_t n = spec == nullptr ? 0 : std::ssize(spec->layers);
  if (il < 0 || il >= n) {
    fail(ErrorCode::kUsage, "full_rows: there is no layer {}, the model has {} layers{}", il, n,
         spec == nullptr ? " since the info does not come from Model::info() or describe_model()"
                         : "");
  }
  return spec->layers[il].visible_rows(n_tokens);
}

int64_t ModelInfo::n_compressed() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const LayerInfo& layer) { return layer.compressed; });
}

namespace {

PolicyParams read_policy_defaults(const GgufFile& file) {
  PolicyParams params;
  for (const char* name : {"window_size", "kernel_size"}) {
    const std::string key = fmt::format("snapkv.{}", name);
    if (!file.has(key)) continue;
    const PolicyParam& param = *policy_info("snapkv").find(name);
    const uint64_t value = file.get_uint(key);
    const bool in_range =
        static_cast<double>(value) >= param.least && static_cast<double>(value) <= param.most;
    if (!in_range || (param.odd && value % 2 == 0)) {
      fail(ErrorCode::kBadModel, "{}: {} must be {}, it is {}", file.path(), key, range_text(param),
           value);
    }
    params[name] = static_cast<int64_t>(value);
  }
  return params;
}

/// The name of general.file_type; `file_type` in upper case where the file does not say, or a
/// number without a name.
std::string quantization_of(const GgufFile& file, std::string_view file_type) {
  const auto entry = file.metadata().find("general.file_type");
  const auto* number =
      entry != file.metadata().end() ? std::get_if<uint64_t>(&entry->second.value) : nullptr;
  if (number != nullptr && *number < kFileTypes.size() && !kFileTypes[*number].empty()) {
    return std::string(kFileTypes[*number]);
  }
  std::string name(file_type);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

PolicyConfig recommended_policy(const ModelInfo& info, const std::string& policy) {
  PolicyConfig config{.name = policy};
  for (const auto& [name, value] : info.policy_defaults) {
    if (policy_info(policy).find(name) != nullptr) set_param(config, name, value);
  }
  return config;
}

ModelInfo make_info(const GgufFile& file, const ModelSpec& spec,
                    std::shared_ptr<const Architecture> decoder) {
  const ModelConfig& c = spec.config;
  ModelInfo info;
  info.path = file.path();
  info.architecture = c.architecture;
  info.name = file.get_string("general.name", "");
  info.tokenizer = file.get_string("tokenizer.ggml.model", "");
  info.n_layer = c.n_layer;
  info.n_embd = c.n_embd;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.ffn.empty()) continue;
    const auto experts = std::find_if(
        layer.ffn.begin(), layer.ffn.end(),
        [](const FeedForwardPart& part) { return part.kind == FeedForwardKind::experts; });
    info.n_ff = (experts != layer.ffn.end() ? *experts : layer.ffn.front()).n_ff;  // the last's
  }
  info.n_expert = c.n_expert;
  info.n_expert_used = c.n_expert_used;
  info.n_vocab = c.n_vocab;
  info.n_ctx_train = c.n_ctx_train;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.rotation.yarn.n_ctx_original == 0) continue;
    info.yarn_factor = layer.rotation.linear_factor;
    info.yarn_orig_ctx = layer.rotation.yarn.n_ctx_original;
  }
  for (const LayerSpec& layer : spec.layers) {
    info.layers.push_back({.attention = layer.attention,
                           .window = layer.window,
                           .compressed = layer.compressed,
                           .rotated = layer.rotation.n_rot > 0,
                           .scale = layer.scale,
                           .softcap = layer.softcap,
                           .n_head = layer.n_head,
                           .n_head_kv = layer.state.n_head,
                           .head_dim = layer.state.head_dim_k,
                           .value_dim = layer.state.head_dim_v,
                           .rows_of = layer.state.shared ? layer.source : -1,
                           .value_in_key = layer.state.v_in_k});
    info.n_head = std::max(info.n_head, layer.n_head);
    info.n_head_kv = std::max(info.n_head_kv, layer.state.n_head);
    info.head_dim = std::max(info.head_dim, layer.state.head_dim_k);
  }
  info.policy_defaults = read_policy_defaults(file);
  info.spec = std::make_shared<const ModelSpec>(spec);
  info.decoder = std::move(decoder);
  std::map<DType, int64_t> params_of_type;
  int64_t expert_params = 0;
  size_t expert_bytes = 0;
  for (const GgufTensor& t : file.tensors()) {
    if (__builtin_add_overflow(info.n_params, t.tensor.numel(), &info.n_params)) {
      info.n_params = INT64_MAX;  // hostile shapes, with a type that cannot run
    }
    info.weight_bytes += t.bytes();
    if (is_of_experts(t.name)) {
      expert_params += t.tensor.numel();
      expert_bytes += t.bytes();
    }
    if (t.tensor.rank >= 2) params_of_type[t.tensor.dtype] += t.tensor.numel();
  }
  info.n_active_params = info.n_params;
  info.active_weight_bytes = info.weight_bytes;
  if (c.n_expert > 0) {  // as many weights in each expert
    const int64_t n_idle = c.n_expert - c.n_expert_used;
    info.n_active_params -= expert_params / c.n_expert * n_idle;
    info.active_weight_bytes -= expert_bytes / c.n_expert * n_idle;
  }
  const auto most =
      std::max_element(params_of_type.begin(), params_of_type.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != params_of_type.end()) info.file_type = snapkv::name(most->first);
  info.quantization = quantization_of(file, info.file_type);
  return info;
}

}  // namespace snapkv
