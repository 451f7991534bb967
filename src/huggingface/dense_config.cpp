// SPDX-License-Identifier: MIT
#include "huggingface/dense_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "format/quantize.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

/// Heads of keys and values where config.json has switches for them.
int64_t read_kv_heads(const JsonFields& c, const Config& config) {
  const std::string_view architecture = config.mapping->architecture;
  if (architecture == "starcoder") return c.flag("multi_query", true) ? 1 : config.n_head;
  if (architecture != "falcon") return config.n_head;
  if (c.flag("new_decoder_architecture", false)) {
    return c.integer("num_kv_heads", 1, 1 << 14, config.n_head);
  }
  return c.flag("multi_query", true) ? 1 : config.n_head;
}

void read_dense_heads(const JsonFields& c, Config& config) {
  const DenseTraits& traits = *config.mapping->dense;
  const ConfigNames& names = traits.names;
  const std::string_view n_head = present_key(c, names.n_head, traits.older_names.n_head);
  config.n_head = c.integer(n_head, 1, 1 << 14);
  config.n_head_kv = names.n_head_kv.empty()
                         ? read_kv_heads(c, config)
                         : c.integer(names.n_head_kv, 1, 1 << 14, config.n_head);
  if (config.n_head % config.n_head_kv != 0) {
    c.bad(n_head, "is {}, which is not a multiple of the {} heads of keys", config.n_head,
          config.n_head_kv);
  }
  config.has_head_dim = traits.has_head_dim && (c.has("head_dim") || traits.head_dim > 0);
  if (config.has_head_dim) {
    config.head_dim = traits.head_dim > 0 ? c.integer("head_dim", 2, 4096, traits.head_dim)
                                          : c.integer("head_dim", 2, 4096);
    return;
  }
  if (config.n_embd % config.n_head != 0) {
    c.bad(present_key(c, names.n_embd, traits.older_names.n_embd),
          "is {}, which is not a multiple of {}, {}", config.n_embd, n_head, config.n_head);
  }
  config.head_dim = config.n_embd / config.n_head;
}

/// A number that config.json may set to null, which means none. `otherwise`: if it is missing.
int64_t integer_or_null(const JsonFields& c, const char* key, int64_t otherwise) {
  const auto at = c.json().find(key);
  if (at != c.json().end() && at->is_null()) return 0;
  return c.integer(key, 1, kMaxContext, otherwise);
}

/// A cap, whose default holds if it is missing.
double read_cap(const JsonFields& c, const char* key, double otherwise) {
  const auto at = c.json().find(key);
  if (at != c.json().end() && at->is_null()) {
    c.bad(key, "is null, expected a number: models without it are not supported");
  }
  return c.positive(key, otherwise);
}

void check_pattern(const JsonFields& c, const std::string& types, int64_t full_every) {
  for (int64_t il = 0; il < std::ssize(types); ++il) {
    const bool full = (il + 1) % full_every == 0;
    if ((types[il] == 'f') == full) continue;
    c.bad("layer_types", "has {} as layer {}; supported is full_attention as the last of every {}",
          full ? "sliding_attention" : "full_attention", il, full_every);
  }
}

void read_dense_windows(const JsonFields& c, Config& config) {
  const DenseTraits& traits = *config.mapping->dense;
  const std::string types = read_layer_types(c, config);
  if (traits.windows == DenseWindows::none) {
    if (types.find('s') == std::string::npos) return;
    c.bad("layer_types", "has sliding_attention, which is not supported for {}", config.class_name);
  }
  config.sliding_window = integer_or_null(c, "sliding_window", traits.window);
  if (traits.windows == DenseWindows::patterned) {
    if (config.sliding_window == 0) c.bad("sliding_window", "is null, expected a number");
    const int64_t period = c.integer("sliding_window_pattern", 0, 4096, traits.full_every);
    if (period != traits.full_every) {
      c.bad("sliding_window_pattern", "is {}, supported is {}", period, traits.full_every);
    }
    return check_pattern(c, types, traits.full_every);
  }
  if (traits.windows == DenseWindows::all || config.sliding_window == 0) return;
  if (types.empty() && config.class_name == "CwmForCausalLM") {
    c.bad("layer_types", "is missing, which models with sliding_window need");
  }
  if (types.find('s') == std::string::npos && !types.empty()) {
    config.sliding_window = 0;
  } else if (types.find('f') != std::string::npos) {  // else all have one
    for (const char type : types) config.has_window.push_back(type == 's');
  }
}

/// All layers but every fourth rotate.
void check_smollm3(const JsonFields& c, const Config& config) {
  const int64_t interval = c.integer("no_rope_layer_interval", 1, 4096, 4);
  const Json* list = c.find("no_rope_layers");
  if (list == nullptr) {
    if (interval != 4) c.bad("no_rope_layer_interval", "is {}, supported is 4", interval);
    return;
  }
  bool as_expected = list->is_array() && std::ssize(*list) == config.n_layer;
  for (int64_t il = 0; as_expected && il < config.n_layer; ++il) {
    as_expected = (*list)[il] == ((il + 1) % 4 == 0 ? 0 : 1);
  }
  if (as_expected) return;
  c.bad("no_rope_layers", "is {}, supported are {} numbers: 0 for every fourth layer, else 1",
        shown(*list), config.n_layer);
}

void read_gemma2(const JsonFields& c, Config& config) {
  config.final_softcap = read_cap(c, "final_logit_softcapping", 30.0);
  config.dense.attention_softcap = read_cap(c, "attn_logit_softcapping", 50.0);
  const bool largest = config.n_layer == 46;  // Gemma 2 27B; GGUF has no key for the scale
  const double expected = largest ? static_cast<double>(config.n_embd) / config.n_head
                                  : static_cast<double>(config.head_dim);
  const double scalar = c.positive("query_pre_attn_scalar", 256);
  if (scalar != expected) {
    c.bad("query_pre_attn_scalar", "is {}, supported is {} for these sizes", scalar, expected);
  }
}

void read_falcon(const JsonFields& c, Config& config) {
  const bool newer = c.flag("new_decoder_architecture", false);
  if (!newer && !c.flag("parallel_attn", true)) {
    c.bad("parallel_attn", "is false, supported is true");
  }
  const int64_t n_norms = c.integer("num_ln_in_parallel_attn", 1, 2, newer ? 2 : 1);
  if (!newer && n_norms != 1) c.bad("num_ln_in_parallel_attn", "is {}, supported is 1", n_norms);
  config.dense.two_norms = n_norms == 2;
}

/// Layers with a window rotate without scaling, by the same base.
void check_olmo3(const JsonFields& c, Config& config) {
  const auto rope = c.object("rope_parameters");
  if (rope && rope->has("sliding_attention") && !rope->has("full_attention")) {
    rope->bad("full_attention", "is missing, beside sliding_attention");
  }
  if (config.rope_theta_local > 0 && config.rope_theta_local != config.rope.theta) {
    c.bad("rope_parameters", "has {} as rope_theta of sliding_attention, supported is {}",
          config.rope_theta_local, config.rope.theta);
  }
  config.rope_theta_local = 0;
}

/// Scales of queries beyond the original context, of Ministral 3; Mistral Small 3 has none.
void read_mistral3(const JsonFields& c, Config& config) {
  const std::string type = c.text("model_type", config.multimodal ? "mistral" : "ministral3");
  if (type == "mistral") return;
  if (type != "ministral3") {
    c.bad("model_type", "is \"{}\", supported are \"mistral\" and \"ministral3\"", printable(type));
  }
  read_query_growth(c, config);
}

/// The pairs of heads that turn by each of 3 or 4 positions, if the model tells them apart.
void read_hunyuan_sections(const JsonFields& c, Config& config) {
  const auto rope = c.object(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const std::string_view key = present_key(*rope, "mrope_section", "xdrope_section");
  const Json* const list = rope->find(key);
  if (list == nullptr) return;
  int64_t total = 0;
  if (list->is_array() && (list->size() == 3 || list->size() == 4)) {
    for (const Json& item : *list) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{4096}) break;
      config.rope_sections.push_back(item.get<int64_t>());
      total += config.rope_sections.back();
    }
  }
  if (config.rope_sections.size() != list->size() || total != config.n_rot / 2) {
    rope->bad(key, "is {}, expected an array of 3 or 4 numbers that add up to {}", shown(*list),
              config.n_rot / 2);
  }
}

void check_fixed_flags(const JsonFields& c, const Config& config) {
  for (const FixedFlag& fixed : config.mapping->dense->fixed) {
    const bool value = c.flag(fixed.key, fixed.value);
    if (value != fixed.value) c.bad(fixed.key, "is {}, supported is {}", value, fixed.value);
  }
}

}  // namespace

bool has_rotation(const Config& config) {
  const DenseTraits* traits = config.mapping->dense;
  return traits == nullptr || (traits->positions.empty() && !traits->biased);
}

std::string activation_name(std::string_view name, std::string_view architecture) {
  for (const char* tanh : {"gelu_new", "gelu_fast", "gelu_python_tanh"}) {
    if (name == tanh) return "gelu_pytorch_tanh";
  }
  if (name == "gelu_python") return "gelu";
  if (name == "gelu" && architecture == "gemma") return "gelu_pytorch_tanh";  // as first published
  return std::string(name == "swish" ? "silu" : name);
}

bool set_activation(std::string_view activation, Config& config) {
  const GgufMapping& mapping = *config.mapping;
  std::string name = activation_name(activation, mapping.architecture);
  const bool gelu = name == "gelu" || name == "gelu_pytorch_tanh";
  const bool may_differ =
      mapping.dense->names_activation && (mapping.architecture == "bitnet" ? name == "silu" : gelu);
  if (name != mapping.activation && !may_differ) return false;
  config.dense.activation = std::move(name);
  return true;
}

std::string_view present_key(const JsonFields& c, std::string_view name, std::string_view older) {
  return c.has(name) || !c.has(older) ? name : older;
}

void read_dense_sizes(const JsonFields& c, Config& config) {
  const DenseTraits& traits = *config.mapping->dense;
  const ConfigNames &names = traits.names, &older = traits.older_names;
  config.n_layer = c.integer(present_key(c, names.n_layer, older.n_layer), 1, 4096);
  config.n_embd = c.integer(present_key(c, names.n_embd, older.n_embd), 1, 1 << 20);
  const bool may_lack_width = names.n_ff != ConfigNames().n_ff;
  config.n_ff = may_lack_width ? c.integer(names.n_ff, 1, 1 << 22, 4 * config.n_embd)
                               : c.integer(names.n_ff, 1, 1 << 22);
  read_dense_heads(c, config);
  config.n_vocab = c.integer(names.n_vocab, 1, INT32_MAX);
  const std::string_view n_ctx = present_key(c, names.n_ctx, older.n_ctx);
  config.n_ctx = traits.n_ctx > 0 ? c.integer(n_ctx, 1, kMaxContext, traits.n_ctx)
                                  : c.integer(n_ctx, 1, kMaxContext);
  if (config.mapping->architecture == "command-r" && c.has("model_max_length")) {
    config.n_ctx = c.integer("model_max_length", 1, kMaxContext);  // which it was trained for
  }
  config.norm_eps = c.positive(present_key(c, names.eps, older.eps), traits.eps);
}

void read_dense(const JsonFields& c, Config& config) {
  const std::string_view architecture = config.mapping->architecture;
  DenseConfig& dense = config.dense;
  config.may_rotate_part = config.mapping->dense->rotates_part;
  if (has_rotation(config)) read_rope(c, config);
  check_fixed_flags(c, config);
  read_dense_windows(c, config);
  if (architecture == "gemma2") read_gemma2(c, config);
  if (architecture == "smollm3") check_smollm3(c, config);
  if (architecture == "falcon") read_falcon(c, config);
  if (architecture == "olmo2") check_olmo3(c, config);
  if (architecture == "mistral3") read_mistral3(c, config);
  if (architecture == "hunyuan_vl") read_hunyuan_sections(c, config);
  if (architecture == "command-r") dense.qk_norm = c.flag("use_qk_norm", false);
  if (architecture == "command-r" || architecture == "cohere2") {
    dense.logit_factor = c.positive("logit_scale", 0.0625);
  }
  if (architecture == "stablelm") {
    dense.qk_norm = c.flag("qk_layernorm", false);
    dense.parallel = c.flag("use_parallel_residual", false);
  }
  if (architecture == "gptneox") dense.parallel = c.flag("use_parallel_residual", true);
  if (config.mapping->dense->read_more != nullptr) config.mapping->dense->read_more(c, config);
}

void check_dense_output(const JsonFields& c, const Config& config) {
  if (config.ties_embeddings || !config.mapping->dense->shares_output) return;
  c.bad("tie_word_embeddings", "is false, supported is true");
}

void add_dense_keys(const Config& config, Keys& keys) {
  const std::string architecture(config.mapping->architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  const DenseConfig& dense = config.dense;
  keys.u32(key("vocab_size"), config.n_vocab);
  if (has_rotation(config)) keys.u32(key("rope.dimension_count"), config.n_rot);
  if (architecture == "stablelm" || architecture == "gptneox") {
    keys.flag(key("use_parallel_residual"), dense.parallel);
  }
  if (dense.logit_factor > 0) keys.f32(key("logit_scale"), dense.logit_factor);
  if (dense.attention_softcap > 0) {
    keys.f32(key("attn_logit_softcapping"), dense.attention_softcap);
  }
  if (dense.alpha > 0) keys.f32(key("rope.scaling.alpha"), dense.alpha);
  if (config.query_growth > 0) keys.f32(key("attention.temperature_scale"), config.query_growth);
  const DenseTraits& traits = *config.mapping->dense;
  if (traits.names_activation && dense.activation != traits.gguf_activation) {
    keys.text(key("hidden_activation"), dense.activation);
  }
  if (dense.bias_limit > 0) keys.f32(key("attention.max_alibi_bias"), dense.bias_limit);
  if (traits.add_more_keys != nullptr) traits.add_more_keys(config, keys);
}

void add_xielu_keys(const Config& config, const Shards& shards, const std::string& folder,
                    Keys& keys) {
  struct Number {
    const char* name;
    std::optional<double> otherwise;  // published files may lack those that are not trained
  };
  constexpr Number kNumbers[] = {{"alpha_p", {}}, {"alpha_n", {}}, {"beta", 0.5}, {"eps", -1e-6}};
  for (const Number& number : kNumbers) {
    std::vector<double> values;
    for (int64_t il = 0; il < config.n_layer; ++il) {
      const std::string name = fmt::format("model.layers.{}.mlp.act_fn.{}", il, number.name);
      const auto at = std::find_if(shards.tensors.begin(), shards.tensors.end(),
                                   [&](const ShardTensor& t) { return t.entry.name == name; });
      if (at == shards.tensors.end()) {
        if (!number.otherwise) {
          fail(ErrorCode::kBadModel, "'{}': tensor '{}' is missing, which {} needs", folder, name,
               config.class_name);
        }
        values.push_back(static_cast<float>(*number.otherwise));
        continue;
      }
      const std::vector<int64_t>& shape = at->entry.shape;
      float value = 0;
      const bool single = shape.empty() || (shape.size() == 1 && shape[0] == 1);
      const bool plain = single && at->entry.type->dtype.has_value();
      if (plain) widen(at->data, *at->entry.type->dtype, 1, &value);
      if (!plain || !std::isfinite(value)) {
        fail(ErrorCode::kBadModel,
             "'{}': tensor '{}' must be one finite number in F32, F16 or BF16",
             shards.paths[at->file], printable(name));
      }
      values.push_back(value);
    }
    keys.f32s(fmt::format("xielu.{}", number.name), std::move(values));
  }
}

}  // namespace snapkv::huggingface
