// SPDX-License-Identifier: MIT
#include "huggingface/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "huggingface/dense_config.h"
#include "huggingface/falcon_h1_config.h"
#include "huggingface/gemma3n_config.h"
#include "huggingface/gemma4_config.h"
#include "huggingface/jamba_config.h"
#include "huggingface/kimi_linear_config.h"
#include "huggingface/lfm2_config.h"
#include "huggingface/linear_attention_config.h"
#include "huggingface/llama4_config.h"
#include "huggingface/mamba2_config.h"
#include "huggingface/mixture_config.h"
#include "huggingface/rope_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

constexpr int64_t kMostExperts = 1024;  // as of GGUF's key

std::string supported_classes() {
  std::string names;
  const std::string_view* last = nullptr;  // some classes have two mappings, one after the other
  for (const GgufMapping& mapping : gguf_mappings()) {
    if (std::exchange(last, mapping.classes.data()) == mapping.classes.data()) continue;
    for (const std::string_view name : mapping.classes) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
  }
  return names;
}

/// The class by whose mapping a folder of the class `name` is read.
std::string class_of_layers(const JsonFields& root, const std::string& name) {
  // transformers computes EXAONE 3 by Llama's class and saves it under the published names
  const std::string type = root.text("model_type", "");
  if (type == "exaone" && name == "LlamaForCausalLM") return "ExaoneForCausalLM";
  // likewise InternLM 3 by Llama's class, and Sarvam's mixtures by that of GLM 4.5
  if (type == "internlm3" && name == "LlamaForCausalLM") return "InternLM3ForCausalLM";
  if (type == "sarvam_moe" && name == "Glm4MoeForCausalLM") return "SarvamMoEForCausalLM";
  if (name != "Mistral3ForConditionalGeneration") return name;
  // Mistral Small 3 and 4 and Ministral 3, which have different text models
  const auto text = root.object("text_config");
  const bool mistral4 = text && text->text("model_type", "") == "mistral4";
  return mistral4 ? "Mistral4ForCausalLM" : name;
}

void find_mapping(const JsonFields& root, Config& config) {
  const Json* list = root.find("architectures");
  if (list == nullptr) root.bad("architectures", "is missing");
  if (!list->is_array() || list->size() != 1 || !(*list)[0].is_string()) {
    root.bad("architectures", "is {}, expected an array of one text", shown(*list));
  }
  const auto name = (*list)[0].get<std::string>();
  config.class_name = class_of_layers(root, name);
  for (const GgufMapping& mapping : gguf_mappings()) {
    const auto& classes = mapping.classes;
    if (std::find(classes.begin(), classes.end(), config.class_name) == classes.end()) continue;
    if (!has_layers_of(mapping, root)) continue;
    config.mapping = &mapping;
    // ChatGLM 3, a model of text, is called so too
    config.multimodal = name.ends_with("ForConditionalGeneration") && !name.starts_with("ChatGLM");
    return;
  }
  root.bad("architectures", "is [\"{}\"], which is not supported; supported are {}",
           printable(config.class_name), supported_classes());
}

/// What the classes can do beside what is read here.
void refuse_unsupported(const JsonFields& root, const JsonFields& text, Config& config) {
  const bool has_experts = config.mapping->has_experts();
  for (const JsonFields* fields : {&root, &text}) {
    if (const auto quantization = fields->object("quantization_config")) {
      if (config.mapping->architecture == "gpt-oss" &&
          quantization->text("quant_method", "") == "mxfp4") {
        config.has_mxfp4_experts = true;
        continue;
      }
      fields->bad("quantization_config", "is there ({}): quantized weights are not supported",
                  printable(quantization->text("quant_method", "no quant_method")));
    }
  }
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    const bool routed = std::string_view(key) == "n_routed_experts";
    const bool own = config.mapping->read_own != nullptr && config.mapping->dense == nullptr;
    if (own) continue;  // which names them as it likes
    if (has_experts && routed == (config.mapping->architecture == "glm4moe")) continue;
    if (config.is_sarvam()) continue;  // published with another name than transformers writes
    if (config.is_nemotron_h() || config.is_jamba())
      continue;  // there even if no layer has experts
    if (text.integer(key, 0, INT32_MAX, 0) > 0) {
      text.bad(key, "is {}: mixtures of experts are not supported", shown(*text.find(key)));
    }
  }
  for (const char* key : {"use_bidirectional_attention", "is_encoder_decoder"}) {
    const bool bidirectional = std::string_view(key) == "use_bidirectional_attention";
    if (bidirectional && config.is_gemma4()) continue;  // a text there: gemma4_config.cpp
    if (text.flag(key, false)) text.bad(key, "is true, which is not supported");
  }
}

/// The head size of folders that do not say it; 0: it follows from the other sizes.
int64_t default_head_dim(const Config& config) {
  const std::string_view architecture = config.mapping->architecture;
  if (architecture.starts_with("gemma") || config.has_linear_attention()) return 256;
  for (const char* name : {"kimi-linear", "llama4", "qwen3", "qwen3vl", "glm4", "seed_oss",
                           "ernie4_5", "deepseek2", "mistral4", "minimax-m2", "hy_v3", "afmoe",
                           "laguna", "cohere2moe", "bailingmoe3", "step35"}) {
    if (architecture == name) return 128;
  }
  return 0;
}

void read_sizes(const JsonFields& c, Config& config) {
  // The limits are the same as for GGUF's keys.
  config.n_layer =
      config.is_nemotron_h() ? read_parts(c, config) : c.integer("num_hidden_layers", 1, 4096);
  config.n_embd = c.integer("hidden_size", 1, 1 << 20);
  config.n_ff =
      config.is_gemma3n() ? read_gemma3n_widths(c, config)
      : config.mapping->architecture == "qwen35moe" || config.is_solar()  // all layers have experts
          ? c.integer("intermediate_size", 1, 1 << 22,
                      c.integer("moe_intermediate_size", 1, 1 << 22))
          : c.integer("intermediate_size", 1, 1 << 22);
  const bool gemma =  // its folders rely on defaults
      config.mapping->architecture == "gemma3" || config.is_gemma3n() || config.is_gemma4();
  config.n_head = gemma ? c.integer("num_attention_heads", 1, 1 << 14, 8)
                        : c.integer("num_attention_heads", 1, 1 << 14);
  config.n_head_kv = c.integer("num_key_value_heads", 1, 1 << 14,
                               config.is_gemma3n() ? 2
                               : gemma             ? 4
                                                   : config.n_head);
  if (config.n_head % config.n_head_kv != 0) {
    c.bad("num_attention_heads", "is {}, which is not a multiple of num_key_value_heads, {}",
          config.n_head, config.n_head_kv);
  }
  const int64_t otherwise = default_head_dim(config);
  config.has_head_dim = c.has("head_dim") || otherwise > 0;
  if (config.has_head_dim) {
    config.head_dim =
        otherwise > 0 ? c.integer("head_dim", 2, 4096, otherwise) : c.integer("head_dim", 2, 4096);
  } else {
    if (config.n_embd % config.n_head != 0) {
      c.bad("hidden_size",
            "is {}, which is not a multiple of num_attention_heads, {}, and head_dim is "
            "missing",
            config.n_embd, config.n_head);
    }
    config.head_dim = config.n_embd / config.n_head;
  }
  const int64_t n_vocab = config.is_gemma3n() ? 262400 : config.is_gemma4() ? 262144 : 262208;
  config.n_vocab = gemma ? c.integer("vocab_size", 1, INT32_MAX, n_vocab)
                         : c.integer("vocab_size", 1, INT32_MAX);
  const int64_t n_ctx = config.is_gemma3n() ? 32768 : 131072;
  const bool by_model = config.is_kimi_linear() || (config.mapping->architecture == "bailingmoe3" &&
                                                    c.has("model_max_length"));
  const char* const context = by_model ? "model_max_length" : "max_position_embeddings";
  config.n_ctx =
      gemma ? c.integer(context, 1, kMaxContext, n_ctx) : c.integer(context, 1, kMaxContext);
  const bool lfm2 = config.is_lfm2();
  const bool layer_norms = config.mapping->architecture == "cohere2moe" && !c.has("rms_norm_eps");
  config.norm_eps = config.is_nemotron_h() ? c.positive("layer_norm_epsilon", 1e-5)
                    : config.is_olmo()     ? 1e-5
                    : config.is_jais2()    ? c.positive("layer_norm_eps", 1e-5)
                    : lfm2                 ? c.positive("norm_eps", 1e-5)
                    : layer_norms          ? c.positive("layer_norm_eps", 1e-5)
                    : gemma                ? c.positive("rms_norm_eps", 1e-6)
                                           : c.positive("rms_norm_eps");
}

/// Those of Qwen 2, 3 and 3.5.
void read_qwen_experts(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.normalizes_experts = c.flag("norm_topk_prob", config.has_linear_attention());
  if (config.is_qwen35() && !config.normalizes_experts) {
    c.bad("norm_topk_prob", "is false, supported is true");
  }
  if (const int64_t step = c.integer("decoder_sparse_step", 0, 4096, 1); step != 1) {
    c.bad("decoder_sparse_step", "is {}, supported is 1: experts in every layer", step);
  }
  const Json* dense = c.find("mlp_only_layers");
  if (dense != nullptr && !(dense->is_array() && dense->empty())) {
    c.bad("mlp_only_layers", "is {}, supported is []: experts in every layer", shown(*dense));
  }
  if (config.mapping->architecture == "qwen3moe") return;
  if (config.mapping->architecture == "qwen3vlmoe") {
    config.normalizes_experts = true;  // whatever norm_topk_prob says
    return;
  }
  config.n_ff_shared = c.integer("shared_expert_intermediate_size", 1, 1 << 22);
  if (c.flag("use_sliding_window", false)) {  // in other layers than those of dense models
    c.bad("use_sliding_window", "is true, which is not supported");
  }
}

void read_gpt_oss_experts(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;  // GGUF has both keys
  c.expect("swiglu_limit", 7.0);
  c.expect("swiglu_alpha", 1.702);
}

void read_glm4_experts(const JsonFields& c, Config& config) {
  const auto published = [&](const char* name, const char* otherwise) {
    return config.is_sarvam() && !c.has(name) ? otherwise : name;
  };
  config.n_expert = c.integer(published("n_routed_experts", "num_experts"), 1, kMostExperts);
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.n_ff_shared =
      config.n_ff * c.integer(published("n_shared_experts", "num_shared_experts"), 0, 1024, 1);
  config.n_dense_layers =
      c.integer("first_k_dense_replace", 0, config.n_layer - 1, config.is_solar() ? 0 : 1);
  if (config.is_solar() && config.n_dense_layers > 0) {
    c.bad("first_k_dense_replace", "is {}, supported is 0: experts in every layer",
          config.n_dense_layers);
  }
  config.n_group = c.integer("n_group", 1, config.n_expert, 1);
  config.n_group_used = c.integer("topk_group", 1, config.n_group, 1);
  config.normalizes_experts = c.flag("norm_topk_prob", true);
  config.sigmoid_scores = true;
  config.expert_scale = c.positive("routed_scaling_factor", config.is_sarvam() ? 2.5 : 1.0);
}

/// Every layer has experts.
void read_mellum_experts(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.normalizes_experts = c.flag("norm_topk_prob", true);
  const Json* types = c.find("mlp_layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) c.bad("mlp_layer_types", "is {}, expected an array", shown(*types));
  for (const Json& type : *types) {
    if (type == "sparse") continue;
    c.bad("mlp_layer_types", "holds {}, supported is \"sparse\": experts in every layer",
          shown(type));
  }
}

void read_phi_experts(const JsonFields& c, Config& config) {
  if (config.n_expert_used != 2) {
    c.bad("num_experts_per_tok", "is {}, supported is 2", config.n_expert_used);
  }
  config.normalizes_experts = false;
  config.router_jitter = c.positive("router_jitter_noise", 0.01);
  if (config.router_jitter >= 0.5) {
    c.bad("router_jitter_noise", "is {}, expected less than 0.5", config.router_jitter);
  }
}

/// Experts of the families that have them.
void read_experts(const JsonFields& c, Config& config) {
  if (!config.mapping->has_experts()) return;
  if (config.is_gemma4()) return read_gemma4_widths(c, config);
  if (config.is_kimi_linear()) return read_kimi_experts(c, config);
  if (config.mapping->architecture == "glm4moe") {
    read_glm4_experts(c, config);
  } else if (config.is_nemotron_h()) {
    read_nemotron_experts(c, config);
  } else {
    config.n_expert =
        c.integer(c.has("num_experts") ? "num_experts" : "num_local_experts", 1, kMostExperts);
  }
  config.n_expert_used = c.integer("num_experts_per_tok", 1, config.n_expert);
  if (config.mapping->architecture == "lfm2moe") read_lfm2_experts(c, config);
  if (config.mapping->architecture.starts_with("qwen")) read_qwen_experts(c, config);
  if (config.mapping->architecture == "gpt-oss") read_gpt_oss_experts(c, config);
  if (config.is_phimoe()) read_phi_experts(c, config);
  if (config.mapping->architecture == "mellum") read_mellum_experts(c, config);
  if (config.is_llama4()) read_llama4_experts(c, config);
  if (config.mapping->architecture == "granitemoe" || config.is_granite_hybrid()) {
    config.n_ff_shared = c.integer("shared_intermediate_size", 0, 1 << 22, 0);
  }
  if (config.mapping->architecture == "olmoe") {
    config.normalizes_experts = c.flag("norm_topk_prob", false);
  }
}

/// Experts, rotation and attention of the classes that have no reader of their own.
void read_layers(const JsonFields& c, Config& config) {
  read_experts(c, config);
  if (config.is_kimi_linear()) {  // which does not rotate
    read_kimi_linear(c, config);
  } else {
    read_rope(c, config);
  }
  if (config.has_linear_attention()) {
    read_linear_attention(c, config);
  } else if (config.is_granite_hybrid()) {
    read_granite_hybrid(c, config);
  } else if (config.is_nemotron_h()) {
    read_nemotron_h(c, config);
  } else if (config.is_falcon_h1()) {
    read_falcon_h1(c, config);
  } else if (config.is_jamba()) {
    read_jamba(c, config);
  } else if (config.is_lfm2()) {
    read_convolutions(c, config);
  } else if (config.is_llama4()) {
    read_llama4_attention(c, config);
  } else if (!config.is_kimi_linear()) {
    read_windows(c, config);
  }
}

void read_granite_scales(const JsonFields& c, Config& config) {
  config.attention_scale = c.positive("attention_multiplier", 1.0);
  config.embedding_scale = c.positive("embedding_multiplier", 1.0);
  config.residual_scale = c.positive("residual_multiplier", 1.0);
  config.logit_scale = c.positive("logits_scaling", 1.0);
}

/// The scale of gemma3's scores is not among GGUF's keys: it follows from the sizes.
void check_gemma3(const JsonFields& c, const Config& config) {
  const bool largest = config.n_layer == 62;  // Gemma 3 27B
  const double expected = largest ? static_cast<double>(config.n_embd) / config.n_head
                                  : static_cast<double>(config.head_dim);
  const double scalar = c.positive("query_pre_attn_scalar", 256);
  if (scalar != expected) {
    c.bad("query_pre_attn_scalar", "is {}, supported is {} for these sizes", scalar, expected);
  }
  if (c.has("attn_logit_softcapping")) {
    c.bad("attn_logit_softcapping", "is {}, supported is null",
          shown(*c.find("attn_logit_softcapping")));
  }
}

}  // namespace

Config read_config(const JsonFields& root) {
  Config config;
  find_mapping(root, config);
  const auto nested = config.multimodal ? root.object("text_config") : std::nullopt;
  // folders of Qwen 2 VL and some others have the text model's fields among the others
  const bool flat = config.mapping->architecture == "qwen2vl" || config.is_chameleon() ||
                    (config.mapping->dense != nullptr && config.mapping->dense->may_be_flat);
  if (config.multimodal && !nested && !flat) root.bad("text_config", "is missing");
  const JsonFields c = nested ? *nested : root;
  const GgufMapping& mapping = *config.mapping;
  refuse_unsupported(root, c, config);
  const std::string_view activation_key =
      mapping.dense == nullptr
          ? mapping.activation_key
          : present_key(c, mapping.activation_key, mapping.dense->older_activation_key);
  const std::string activation = c.text(activation_key, mapping.activation);
  const bool is_silu = activation == "swish" && mapping.activation == "silu";
  const bool known = mapping.dense != nullptr ? set_activation(activation, config)
                                              : activation == mapping.activation || is_silu;
  if (!known) {
    c.bad(activation_key, "is \"{}\", supported is \"{}\"", printable(activation),
          mapping.activation);
  }
  if (mapping.read_own_sizes != nullptr) {
    mapping.read_own_sizes(c, config);
  } else {
    read_sizes(c, config);
  }
  if (mapping.read_own != nullptr) {
    mapping.read_own(c, config);
  } else {
    read_layers(c, config);
  }
  if (config.is_gemma3n()) read_gemma3n_layers(c, config);
  if (config.is_gemma4()) read_gemma4_layers(c, config);
  if (mapping.architecture == "lfm2") read_lfm2_width(c, config);
  if (mapping.architecture.starts_with("granite") && !config.is_bamba()) {
    read_granite_scales(c, config);
  }
  if (mapping.architecture == "olmoe" && c.has("clip_qkv")) {
    c.bad("clip_qkv", "is {}, supported is null", shown(*c.find("clip_qkv")));
  }
  if (config.is_olmo() && c.has("clip_qkv")) config.qkv_limit = c.positive("clip_qkv");
  if (mapping.architecture == "gemma3") {
    check_gemma3(c, config);
    if (c.has("final_logit_softcapping")) {
      config.final_softcap = c.positive("final_logit_softcapping");
    }
  }
  config.ties_embeddings =
      root.flag("tie_word_embeddings", c.flag("tie_word_embeddings", mapping.ties_embeddings));
  if (mapping.dense != nullptr) check_dense_output(c, config);
  return config;
}

void add_config_keys(const Config& config, Keys& keys) {
  const std::string architecture(config.mapping->architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  keys.text("general.architecture", architecture);
  keys.u32(key("block_count"), config.n_layer);
  keys.u32(key("context_length"), config.n_ctx);
  keys.u32(key("embedding_length"), config.n_embd);
  if (config.parts.empty()) {
    keys.u32(key("feed_forward_length"), config.n_ff_dense > 0 ? config.n_ff_dense : config.n_ff);
  }
  if (config.n_expert > 0) {
    keys.u32(key("expert_count"), config.n_expert);
    keys.u32(key("expert_used_count"), config.n_expert_used);
    keys.flag(key("expert_weights_norm"), config.normalizes_experts);
  }
  const bool has_dense = config.n_ff_dense > 0 && (config.n_expert > 0 || !config.is_gemma4());
  if (has_dense) keys.u32(key("expert_feed_forward_length"), config.n_ff);
  if (architecture == "glm4moe" || config.is_kimi_linear() || config.mixture.counts_shared) {
    keys.u32(key("expert_shared_count"), config.n_ff_shared / config.n_ff);
  } else if (config.n_ff_shared > 0) {
    keys.u32(key("expert_shared_feed_forward_length"), config.n_ff_shared);
  }
  if (config.n_dense_layers > 0) {
    keys.u32(key("leading_dense_block_count"), config.n_dense_layers);
  }
  if (config.sigmoid_scores || config.mixture.states_score) {
    keys.u32(key("expert_gating_func"), config.sigmoid_scores ? 2 : 1);
  }
  if (config.router_jitter > 0) keys.f32("snapkv.router_jitter_noise", config.router_jitter);
  if (config.n_group > 1) {
    keys.u32(key("expert_group_count"), config.n_group);
    keys.u32(key("expert_group_used_count"), config.n_group_used);
    if (config.n_group_best != 2) keys.u32("snapkv.expert_group_best", config.n_group_best);
  }
  if (config.expert_scale != 1) keys.f32(key("expert_weights_scale"), config.expert_scale);
  if (config.mixture.n_head.empty()) {
    keys.u32(key("attention.head_count"), config.n_head);
  } else {
    keys.i32s(key("attention.head_count"), config.mixture.n_head);
  }
  if (config.has_linear_attention()) add_linear_attention_keys(config, keys);
  if (config.mamba2.n_head > 0) add_mamba2_keys(config, keys);
  if (config.is_jamba()) add_jamba_keys(config, keys);
  if (!config.mixture.n_head_kv.empty()) {
    keys.i32s(key("attention.head_count_kv"), config.mixture.n_head_kv);
  } else if (config.has_attention.empty() || config.has_linear_attention()) {
    keys.u32(key("attention.head_count_kv"), config.n_head_kv);
  } else {
    std::vector<int64_t> heads;
    for (const bool attends : config.has_attention) heads.push_back(attends ? config.n_head_kv : 0);
    keys.i32s(key("attention.head_count_kv"), std::move(heads));
    if (config.is_lfm2()) keys.u32(key("shortconv.l_cache"), config.conv_kernel);
    keys.u32(key("vocab_size"), config.n_vocab);
  }
  const bool layer_epsilon = config.mapping->layer_epsilon || config.mixture.layer_norms;
  keys.f32(key(layer_epsilon ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
           config.norm_eps);
  if (config.qkv_limit > 0) keys.f32(key("attention.clamp_kqv"), config.qkv_limit);
  if (config.has_head_dim) {
    keys.u32(key("attention.key_length"), config.head_dim);
    keys.u32(key("attention.value_length"),
             config.mixture.value_dim > 0 ? config.mixture.value_dim : config.head_dim);
  }
  if (architecture == "llama") keys.u32(key("vocab_size"), config.n_vocab);
  if (config.sliding_window > 0 || config.is_phi()) {
    keys.u32(key("attention.sliding_window"), config.sliding_window);
  }
  if (config.sliding_window > 0 && !config.has_window.empty()) {
    keys.flags(key("attention.sliding_window_pattern"), config.has_window);
  }
  if (config.attention_scale > 0) {
    keys.f32(key("attention.scale"), config.attention_scale);
    keys.f32(key("embedding_scale"), config.embedding_scale);
    keys.f32(key("residual_scale"), config.residual_scale);
    keys.f32(key("logit_scale"), config.logit_scale);
  }
  if (config.final_softcap > 0) keys.f32(key("final_logit_softcapping"), config.final_softcap);

  if (config.is_kimi_linear()) {
    add_kimi_linear_keys(config, keys);
  } else if (has_rotation(config) && config.n_rot > 0) {
    add_rope_keys(config, keys);
  }
  if (config.is_gemma3n()) add_gemma3n_keys(config, keys);
  if (config.is_gemma4()) add_gemma4_keys(config, keys);
  if (config.is_llama4()) add_llama4_keys(config, keys);
  if (config.mapping->add_own_keys != nullptr) config.mapping->add_own_keys(config, keys);
}

}  // namespace snapkv::huggingface
