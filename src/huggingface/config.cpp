// SPDX-License-Identifier: MIT
#include "huggingface/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "huggingface/lfm2_config.h"
#include "huggingface/linear_attention_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

std::string supported_classes() {
  std::string names;
  for (const GgufMapping& mapping : gguf_mappings()) {
    for (const std::string_view name : mapping.classes) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
  }
  return names;
}

void find_mapping(const JsonFields& root, Config& config) {
  const Json* list = root.find("architectures");
  if (list == nullptr) root.bad("architectures", "is missing");
  if (!list->is_array() || list->size() != 1 || !(*list)[0].is_string()) {
    root.bad("architectures", "is {}, expected an array of one text", shown(*list));
  }
  config.class_name = (*list)[0].get<std::string>();
  for (const GgufMapping& mapping : gguf_mappings()) {
    const auto& classes = mapping.classes;
    if (std::find(classes.begin(), classes.end(), config.class_name) == classes.end()) continue;
    config.mapping = &mapping;
    config.multimodal = config.class_name.ends_with("ForConditionalGeneration");
    return;
  }
  root.bad("architectures", "is [\"{}\"], which is not supported; supported are {}",
           printable(config.class_name), supported_classes());
}

/// What the classes can do beside what is read here.
void refuse_unsupported(const JsonFields& root, const JsonFields& text, bool has_experts) {
  for (const JsonFields* fields : {&root, &text}) {
    if (const auto quantization = fields->object("quantization_config")) {
      fields->bad("quantization_config", "is there ({}): quantized weights are not supported",
                  printable(quantization->text("quant_method", "no quant_method")));
    }
  }
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    if (has_experts && std::string_view(key) != "n_routed_experts") continue;
    if (text.integer(key, 0, INT32_MAX, 0) > 0) {
      text.bad(key, "is {}: mixtures of experts are not supported", shown(*text.find(key)));
    }
  }
  for (const char* key : {"use_bidirectional_attention", "is_encoder_decoder"}) {
    if (text.flag(key, false)) text.bad(key, "is true, which is not supported");
  }
}

/// Dense or with experts.
bool is_lfm2(const Config& config) { return config.mapping->architecture.starts_with("lfm2"); }

bool is_qwen35(const Config& config) { return config.mapping->architecture.starts_with("qwen35"); }
bool has_linear_attention(const Config& config) {
  return is_qwen35(config) || config.mapping->architecture == "qwen3next";
}

void read_sizes(const JsonFields& c, Config& config) {
  // The limits are the same as for GGUF's keys.
  config.n_layer = c.integer("num_hidden_layers", 1, 4096);
  config.n_embd = c.integer("hidden_size", 1, 1 << 20);
  config.n_ff = config.mapping->architecture == "qwen35moe"  // all layers have experts
                    ? c.integer("intermediate_size", 1, 1 << 22,
                                c.integer("moe_intermediate_size", 1, 1 << 22))
                    : c.integer("intermediate_size", 1, 1 << 22);
  const bool gemma = config.mapping->architecture == "gemma3";  // its folders rely on defaults
  config.n_head = gemma ? c.integer("num_attention_heads", 1, 1 << 14, 8)
                        : c.integer("num_attention_heads", 1, 1 << 14);
  config.n_head_kv = c.integer("num_key_value_heads", 1, 1 << 14, gemma ? 4 : config.n_head);
  if (config.n_head % config.n_head_kv != 0) {
    c.bad("num_attention_heads", "is {}, which is no multiple of num_key_value_heads, {}",
          config.n_head, config.n_head_kv);
  }
  const bool qwen3 = config.mapping->architecture == "qwen3";
  config.has_head_dim = c.has("head_dim") || gemma || qwen3 || has_linear_attention(config);
  if (config.has_head_dim) {
    config.head_dim = c.integer("head_dim", 2, 4096, qwen3 ? 128 : 256);
  } else {
    if (config.n_embd % config.n_head != 0) {
      c.bad("hidden_size",
            "is {}, which is no multiple of num_attention_heads, {}, and head_dim is "
            "missing",
            config.n_embd, config.n_head);
    }
    config.head_dim = config.n_embd / config.n_head;
  }
  config.n_vocab =
      gemma ? c.integer("vocab_size", 1, INT32_MAX, 262208) : c.integer("vocab_size", 1, INT32_MAX);
  config.n_ctx = gemma ? c.integer("max_position_embeddings", 1, kMaxContext, 131072)
                       : c.integer("max_position_embeddings", 1, kMaxContext);
  const bool lfm2 = is_lfm2(config);
  config.rms_eps = lfm2    ? c.positive("norm_eps", 1e-5)
                   : gemma ? c.positive("rms_norm_eps", 1e-6)
                           : c.positive("rms_norm_eps");
}

/// Those of Qwen 2, 3 and 3.5.
void read_qwen_experts(const JsonFields& c, Config& config) {
  config.n_ff_dense = config.n_ff;
  config.n_ff = c.integer("moe_intermediate_size", 1, 1 << 22);
  config.normalizes_experts = c.flag("norm_topk_prob", has_linear_attention(config));
  if (is_qwen35(config) && !config.normalizes_experts) {
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
  config.n_ff_shared = c.integer("shared_expert_intermediate_size", 1, 1 << 22);
  if (c.flag("use_sliding_window", false)) {  // in other layers than those of dense models
    c.bad("use_sliding_window", "is true, which is not supported");
  }
}

/// Experts of the families that have them.
void read_experts(const JsonFields& c, Config& config) {
  if (config.mapping->experts.empty()) return;
  constexpr int64_t kMostExperts = 1024;  // as of GGUF's key
  config.n_expert =
      c.integer(c.has("num_experts") ? "num_experts" : "num_local_experts", 1, kMostExperts);
  config.n_expert_used = c.integer("num_experts_per_tok", 1, config.n_expert);
  if (config.mapping->architecture == "lfm2moe") read_lfm2_experts(c, config);
  if (config.mapping->architecture.starts_with("qwen")) read_qwen_experts(c, config);
}

/// `factors` [n_rot / 2], numbers.
std::vector<float> read_factors(const JsonFields& rope, std::string_view key, int64_t n) {
  const Json* list = rope.find(key);
  if (list == nullptr) rope.bad(key, "is missing");
  if (!list->is_array() || std::ssize(*list) != n) {
    rope.bad(key, "is {}, expected an array of {} numbers", shown(*list), n);
  }
  std::vector<float> factors;
  for (const Json& item : *list) {
    const double value = item.is_number() ? item.get<double>() : 0;
    if (!(value > 1e-6 && value < 1e6)) {
      rope.bad(key, "holds {}, expected numbers greater than 0", shown(item));
    }
    factors.push_back(static_cast<float>(value));
  }
  return factors;
}

/// Fails if a field has another value than `expected`, which GGUF files of these families cannot
/// express.
void expect_default(const JsonFields& rope, std::string_view key, double expected) {
  const double value = rope.positive(key, expected);
  if (std::abs(value - expected) > 1e-6 * expected) {
    rope.bad(key, "is {}, supported is {}", value, expected);
  }
}

double longrope_attention_factor(const Config& config) {
  const auto original = static_cast<double>(config.rope.original_context);
  const double scale = static_cast<double>(config.n_ctx) / original;
  return scale > 1 ? std::sqrt(1 + std::log(scale) / std::log(original)) : 1.0;
}

void read_scaling(const JsonFields& rope, Config& config) {
  RopeConfig& r = config.rope;
  r.type = rope.text("rope_type", rope.text("type", "default"));
  if (r.type == "su") r.type = "longrope";
  r.theta = rope.positive("rope_theta", r.theta);
  r.original_context =
      rope.integer("original_max_position_embeddings", 1, kMaxContext, r.original_context);
  if (r.type == "default") return;
  const std::string_view architecture = config.mapping->architecture;
  if (r.type == "linear") {
    r.factor = rope.positive("factor");
  } else if (r.type == "llama3") {
    r.factor = rope.positive("factor");
    r.low_freq_factor = rope.positive("low_freq_factor");
    r.high_freq_factor = rope.positive("high_freq_factor");
    if (r.high_freq_factor <= r.low_freq_factor) {
      rope.bad("high_freq_factor", "is {}, expected more than low_freq_factor, {}",
               r.high_freq_factor, r.low_freq_factor);
    }
    if (r.original_context == 0) rope.bad("original_max_position_embeddings", "is missing");
  } else if (r.type == "yarn") {
    r.factor = rope.positive("factor");
    if (r.original_context == 0) r.original_context = config.n_ctx;
    r.beta_fast = rope.positive("beta_fast", r.beta_fast);
    r.beta_slow = rope.positive("beta_slow", r.beta_slow);
    expect_default(rope, "attention_factor", 0.1 * std::log(r.factor) + 1);
    if (rope.has("mscale") || rope.has("mscale_all_dim")) {
      rope.bad("mscale", "is there, which is not supported");
    }
  } else if (r.type == "longrope" && architecture == "phi3") {
    if (r.original_context < 2) {
      rope.bad("original_max_position_embeddings", "is {}, expected at least 2",
               r.original_context);
    }
    expect_default(rope, "attention_factor", longrope_attention_factor(config));
    r.short_factors = read_factors(rope, "short_factor", config.n_rot / 2);
    r.long_factors = read_factors(rope, "long_factor", config.n_rot / 2);
  } else {
    rope.bad("rope_type", "is \"{}\", supported are default, linear, llama3, yarn{}",
             printable(r.type), architecture == "phi3" ? ", longrope" : "");
  }
}

void read_rope(const JsonFields& c, Config& config) {
  const bool gemma = config.mapping->architecture == "gemma3";
  const double partial =
      c.positive("partial_rotary_factor", has_linear_attention(config) ? 0.25 : 1.0);
  const bool lfm2 = is_lfm2(config);
  config.rope.theta = c.positive("rope_theta", gemma || lfm2 ? 1e6 : 1e4);
  if (gemma) config.rope_theta_local = c.positive("rope_local_base_freq", 1e4);
  config.rope.original_context = c.integer("original_max_position_embeddings", 1, kMaxContext, 0);
  auto rope = c.object(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (rope && rope->has("full_attention")) {  // one set of parameters for each kind of layer
    if (const auto local = rope->object("sliding_attention")) {
      if (const std::string type = local->text("rope_type", "default"); type != "default") {
        local->bad("rope_type", "is \"{}\", supported is default", printable(type));
      }
      config.rope_theta_local = local->positive("rope_theta", config.rope_theta_local);
    }
    auto full = rope->object("full_attention");
    rope.emplace(full->json(), full->file(), "rope_parameters.full_attention.");
  }
  const double share = rope ? rope->positive("partial_rotary_factor", partial) : partial;
  config.n_rot = static_cast<int64_t>(share * static_cast<double>(config.head_dim));
  if (share > 1 || config.n_rot % 2 != 0 || config.n_rot < 2) {
    c.bad("partial_rotary_factor",
          "is {}, which rotates {} of {} values of a head, expected an "
          "even number",
          share, config.n_rot, config.head_dim);
  }
  if (config.n_rot != config.head_dim && config.mapping->architecture != "phi3" &&
      !has_linear_attention(config)) {
    c.bad("partial_rotary_factor", "is {}, supported is 1", share);
  }
  if (is_qwen35(config)) read_rope_sections(rope, config);
  if (rope) read_scaling(*rope, config);
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

int64_t Config::size(Size which) const {
  switch (which) {
    case Size::none:
      return 0;
    case Size::embd:
      return n_embd;
    case Size::embd_thrice:
      return 3 * n_embd;
    case Size::kernel:
      return conv_kernel;
    case Size::ff:
      return n_ff;
    case Size::ff_dense:
      return n_ff_dense;
    case Size::ff_shared:
      return n_ff_shared;
    case Size::ff_twice:
      return 2 * n_ff;
    case Size::head_dim:
      return head_dim;
    case Size::q:
      return n_head * head_dim;
    case Size::kv:
      return n_head_kv * head_dim;
    case Size::qkv:
      return (n_head + 2 * n_head_kv) * head_dim;
    case Size::vocab:
      return n_vocab;
    case Size::expert:
      return n_expert;
    case Size::q_and_gate:
      return 2 * n_head * head_dim;
    case Size::linear_head:
      return linear.n_head;
    case Size::linear_head_twice:
      return 2 * linear.n_head;
    case Size::linear_value:
      return linear.d_v;
    case Size::linear_values:
      return linear.n_values();
    case Size::linear_qkv:
      return linear.n_qkv();
    case Size::linear_qkv_and_gate:
      return linear.n_qkv() + linear.n_values();
  }
  return 0;
}

Config read_config(const JsonFields& root) {
  Config config;
  find_mapping(root, config);
  const auto nested = config.multimodal ? root.object("text_config") : std::nullopt;
  if (config.multimodal && !nested) root.bad("text_config", "is missing");
  const JsonFields c = nested ? *nested : root;
  const GgufMapping& mapping = *config.mapping;
  refuse_unsupported(root, c, !mapping.experts.empty());
  const std::string activation = c.text(mapping.activation_key, mapping.activation);
  const bool is_silu = activation == "swish" && mapping.activation == "silu";
  if (activation != mapping.activation && !is_silu) {
    c.bad(mapping.activation_key, "is \"{}\", supported is \"{}\"", printable(activation),
          mapping.activation);
  }
  read_sizes(c, config);
  read_experts(c, config);
  read_rope(c, config);
  if (has_linear_attention(config)) {
    read_linear_attention(c, config);
  } else if (is_lfm2(config)) {
    read_convolutions(c, config);
  } else {
    read_windows(c, config);
  }
  if (mapping.architecture == "lfm2") read_lfm2_width(c, config);
  if (mapping.architecture == "gemma3") {
    check_gemma3(c, config);
    if (c.has("final_logit_softcapping")) {
      config.final_softcap = c.positive("final_logit_softcapping");
    }
  }
  config.ties_embeddings =
      root.flag("tie_word_embeddings", c.flag("tie_word_embeddings", mapping.ties_embeddings));
  return config;
}

void add_config_keys(const Config& config, Keys& keys) {
  const std::string architecture(config.mapping->architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  keys.text("general.architecture", architecture);
  keys.u32(key("block_count"), config.n_layer);
  keys.u32(key("context_length"), config.n_ctx);
  keys.u32(key("embedding_length"), config.n_embd);
  keys.u32(key("feed_forward_length"), config.n_ff_dense > 0 ? config.n_ff_dense : config.n_ff);
  if (config.n_expert > 0) {
    keys.u32(key("expert_count"), config.n_expert);
    keys.u32(key("expert_used_count"), config.n_expert_used);
    keys.flag(key("expert_weights_norm"), config.normalizes_experts);
  }
  if (config.n_ff_dense > 0) keys.u32(key("expert_feed_forward_length"), config.n_ff);
  if (config.n_ff_shared > 0) {
    keys.u32(key("expert_shared_feed_forward_length"), config.n_ff_shared);
  }
  if (config.n_dense_layers > 0) {
    keys.u32(key("leading_dense_block_count"), config.n_dense_layers);
  }
  if (config.sigmoid_scores) keys.u32(key("expert_gating_func"), 2);
  if (config.expert_scale != 1) keys.f32(key("expert_weights_scale"), config.expert_scale);
  keys.u32(key("attention.head_count"), config.n_head);
  if (config.linear.n_head > 0) {
    add_linear_attention_keys(config, keys);
  }
  if (config.has_attention.empty() || config.linear.n_head > 0) {
    keys.u32(key("attention.head_count_kv"), config.n_head_kv);
  } else {
    std::vector<int64_t> heads;
    for (const bool attends : config.has_attention) heads.push_back(attends ? config.n_head_kv : 0);
    keys.i32s(key("attention.head_count_kv"), std::move(heads));
    keys.u32(key("shortconv.l_cache"), config.conv_kernel);
    keys.u32(key("vocab_size"), config.n_vocab);
  }
  keys.f32(key("attention.layer_norm_rms_epsilon"), config.rms_eps);
  if (config.has_head_dim) {
    keys.u32(key("attention.key_length"), config.head_dim);
    keys.u32(key("attention.value_length"), config.head_dim);
  }
  if (architecture == "llama") keys.u32(key("vocab_size"), config.n_vocab);
  if (architecture == "llama" || architecture == "phi3" || config.linear.n_head > 0) {
    keys.u32(key("rope.dimension_count"), config.n_rot);
  }
  if (config.sliding_window > 0 || architecture == "phi3") {
    keys.u32(key("attention.sliding_window"), config.sliding_window);
  }
  if (config.sliding_window > 0 && !config.has_window.empty()) {
    keys.flags(key("attention.sliding_window_pattern"), config.has_window);
  }
  if (config.final_softcap > 0) keys.f32(key("final_logit_softcapping"), config.final_softcap);

  const RopeConfig& rope = config.rope;
  keys.f32(key("rope.freq_base"), rope.theta);
  if (config.rope_theta_local > 0) keys.f32(key("rope.freq_base_swa"), config.rope_theta_local);
  if (rope.type == "linear" || rope.type == "yarn" || rope.type == "longrope") {
    keys.text(key("rope.scaling.type"), rope.type);
  }
  if (rope.type == "linear" || rope.type == "yarn") {
    keys.f32(key("rope.scaling.factor"), rope.factor);
  }
  if (rope.type == "yarn") {
    keys.f32(key("rope.scaling.yarn_beta_fast"), rope.beta_fast);
    keys.f32(key("rope.scaling.yarn_beta_slow"), rope.beta_slow);
  }
  if (rope.type == "yarn" || architecture == "phi3") {
    keys.u32(key("rope.scaling.original_context_length"),
             rope.original_context > 0 ? rope.original_context : config.n_ctx);
  }
  if (rope.type == "longrope") {  // LongRoPE (arXiv 2402.13753) scales scores for longer contexts
    keys.f32(key("rope.scaling.attn_factor"), longrope_attention_factor(config));
  }
}

std::vector<float> llama3_factors(const Config& config) {
  const RopeConfig& r = config.rope;
  const auto context = static_cast<double>(r.original_context);
  std::vector<float> factors;
  for (int64_t i = 0; i < config.n_rot; i += 2) {
    const double wavelength =
        2 * std::numbers::pi *
        std::pow(r.theta, static_cast<double>(i) / static_cast<double>(config.n_rot));
    // 1 for short waves, `factor` for long ones, and interpolated between them.
    const double turns = context / wavelength;
    const double smooth = std::clamp(
        (turns - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / r.factor + smooth)));
  }
  return factors;
}

}  // namespace snapkv::huggingface
