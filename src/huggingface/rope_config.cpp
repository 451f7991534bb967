// SPDX-License-Identifier: MIT
#include "huggingface/rope_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "huggingface/dense_config.h"
#include "huggingface/dense_traits.h"
#include "huggingface/latent_config.h"
#include "huggingface/linear_attention_config.h"
#include "huggingface/window_config.h"

namespace snapkv::huggingface {
namespace {

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

/// LongRoPE (arXiv 2402.13753) scales scores for longer contexts. `scale`: how many times as long
/// as the original one.
double longrope_attention_factor(double scale, int64_t original_context) {
  return scale > 1 ? std::sqrt(1 + std::log(scale) / std::log(original_context)) : 1.0;
}

/// The factors of scores of Phi's mixtures, one for contexts of each kind.
void read_magnitudes(const JsonFields& rope, Config& config) {
  config.rope.attention_factor = rope.positive("short_mscale");
  const double longer = rope.positive("long_mscale");
  if (config.n_ctx > config.rope.original_context && longer != config.rope.attention_factor) {
    rope.bad("long_mscale", "is {}, supported is {}, as short_mscale is", longer,
             config.rope.attention_factor);
  }
}

void read_longrope(const JsonFields& rope, Config& config) {
  RopeConfig& r = config.rope;
  if (r.original_context < 2) {
    rope.bad("original_max_position_embeddings", "is {}, expected at least 2", r.original_context);
  }
  const double scale = static_cast<double>(config.n_ctx) / static_cast<double>(r.original_context);
  r.factor = rope.positive("factor", scale);
  if (config.is_phimoe()) {
    read_magnitudes(rope, config);
  } else {
    r.attention_factor =
        rope.positive("attention_factor", longrope_attention_factor(r.factor, r.original_context));
  }
  r.short_factors = read_factors(rope, "short_factor", config.n_rot / 2);
  r.long_factors = read_factors(rope, "long_factor", config.n_rot / 2);
  if (config.n_ctx > r.original_context) {
    log_warn(
        "'{}': LongRoPE: a session uses the long factors if its context (--ctx-size) exceeds {} "
        "tokens; transformers uses them if the prompt and the answer so far do",
        rope.file(), r.original_context);
  }
}

/// Ministral 3's YaRN multiplies scores by no more than what two multipliers differ by.
void read_magnitude(const JsonFields& rope, Config& config) {
  const double multiplier = rope.positive("mscale"), of_all = rope.positive("mscale_all_dim");
  if (multiplier != of_all && multiplier != 1) {
    rope.bad("mscale", "is {}, supported are 1 and {}, as mscale_all_dim is", multiplier, of_all);
  }
  config.rope.log_multiplier = multiplier == of_all ? 1 : of_all;
  const double log_factor = 0.1 * std::log(config.rope.factor);
  rope.expect("attention_factor", (1 + log_factor) / (1 + config.rope.log_multiplier * log_factor));
}

void read_scaling(const JsonFields& rope, Config& config) {
  const std::string_view architecture = config.mapping->architecture;
  RopeConfig& r = config.rope;
  r.type = rope.text("rope_type", rope.text("type", "default"));
  if (r.type == "su") r.type = "longrope";
  const DenseTraits* const dense = config.mapping->dense;
  const bool has_sections = config.is_qwen_vl() || (dense != nullptr && dense->has_sections);
  if (r.type == "mrope" && has_sections) r.type = "default";  // by its mrope_section
  r.theta = rope.positive("rope_theta", r.theta);
  const int64_t original = r.original_context;  // beside these parameters
  r.original_context = rope.integer("original_max_position_embeddings", 1, kMaxContext, original);
  const bool uses_original = r.type == "llama3" || r.type == "yarn" || r.type == "longrope";
  if (uses_original && original > 0 && r.original_context != original) {
    rope.bad("original_max_position_embeddings", "is {}, but that of the model is {}",
             r.original_context, original);
  }
  if (r.type == "dynamic" && architecture.starts_with("hunyuan-")) {
    // of Hunyuan, a fixed stretch of the base
    const auto n = static_cast<double>(config.head_dim);
    r.theta *= std::pow(rope.positive("alpha"), n / (n - 2));
    r.type = "default";
  }
  if (config.mapping->architecture == "hunyuan_vl" && (r.type == "dynamic" || r.type == "xdrope")) {
    config.dense.alpha = rope.positive("alpha");  // the same, which GGUF has as a key
    r.type = "default";
  }
  // up to the context of config.json this is no scaling, and longer ones are not scaled here
  const bool ignores_dynamic =
      config.class_name == "InternLM3ForCausalLM" || (dense != nullptr && dense->ignores_dynamic);
  if (r.type == "dynamic" && ignores_dynamic) r.type = "default";
  if (r.type == "default") return;
  if (r.type == "linear") {
    r.factor = rope.positive("factor");
  } else if (r.type == "llama3") {
    r.factor = rope.positive("factor");
    r.low_freq_factor = rope.positive("low_freq_factor");
    r.high_freq_factor = rope.positive("high_freq_factor");
    // Llama 4's are the same: no frequency is slowed down by a part of the factor
    const bool may_equal = config.is_llama4() && r.high_freq_factor == r.low_freq_factor;
    if (r.high_freq_factor <= r.low_freq_factor && !may_equal) {
      rope.bad("high_freq_factor", "is {}, expected more than low_freq_factor, {}",
               r.high_freq_factor, r.low_freq_factor);
    }
    if (r.original_context == 0) rope.bad("original_max_position_embeddings", "is missing");
  } else if (r.type == "yarn") {
    r.factor = rope.positive("factor");
    if (r.original_context == 0) r.original_context = config.n_ctx;
    r.beta_fast = rope.positive("beta_fast", r.beta_fast);
    r.beta_slow = rope.positive("beta_slow", r.beta_slow);
    r.truncate = rope.flag("truncate", true);
    if (config.latent.rank > 0) {
      read_latent_growth(rope, config);
    } else if (architecture == "mistral3" && rope.has("mscale") && rope.has("mscale_all_dim")) {
      read_magnitude(rope, config);
    } else {
      rope.expect("attention_factor", 0.1 * std::log(r.factor) + 1);
      if (rope.has("mscale") && rope.has("mscale_all_dim")) {  // one alone changes nothing
        rope.bad("mscale", "is there, beside mscale_all_dim, which is not supported");
      }
    }
  } else if (r.type == "proportional" && architecture == "gemma4") {
    r.factor = rope.positive("factor", 1.0);
  } else if (r.type == "longrope" && config.may_have_longrope()) {
    read_longrope(rope, config);
  } else {
    rope.bad("rope_type", "is \"{}\", supported are default, linear, llama3, yarn{}",
             printable(r.type), config.may_have_longrope() ? ", longrope" : "");
  }
}

}  // namespace

void read_rope(const JsonFields& c, Config& config) {
  const bool gemma =
      config.mapping->architecture == "gemma3" || config.is_gemma3n() || config.is_gemma4();
  const DenseTraits* const dense = config.mapping->dense;
  const ConfigNames names = dense != nullptr ? dense->names : ConfigNames();
  const ConfigNames older = dense != nullptr ? dense->older_names : ConfigNames();
  const std::string_view share_key = present_key(c, names.rotated_share, older.rotated_share);
  const double partial = c.positive(share_key, dense != nullptr ? dense->rotated_share
                                               : config.has_linear_attention()           ? 0.25
                                               : config.is_gemma4()                      ? 0.25
                                               : config.is_solar() || config.is_sarvam() ? 1.0
                                               : config.is_glm4()                        ? 0.5
                                               : config.is_bamba()                       ? 0.5
                                                                                         : 1.0);
  const bool lfm2 = config.is_lfm2();
  const bool gpt_oss = config.mapping->architecture == "gpt-oss";
  config.rope.theta =
      c.positive(present_key(c, names.theta, older.theta), gemma || lfm2 || config.is_phimoe() ? 1e6
                                                           : config.is_llama4()                ? 5e5
                                                           : gpt_oss ? 150000
                                                                     : config.mapping->rope_theta);
  if (gemma) config.rope_theta_local = c.positive("rope_local_base_freq", 1e4);
  config.rope.original_context = c.integer("original_max_position_embeddings", 1, kMaxContext, 0);
  auto rope = c.object(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (!rope && (gpt_oss || (dense != nullptr && dense->needs_rope)))
    c.bad("rope_parameters", "is missing");
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
  const std::string_view named = rope && rope->has("partial_rotary_factor")
                                     ? std::string_view("partial_rotary_factor")
                                     : share_key;
  double share = rope ? rope->positive("partial_rotary_factor", partial) : partial;
  if (config.is_gemma4()) {  // of layers without a window; the others rotate all
    const bool proportional = !rope || rope->text("rope_type", "default") == "proportional";
    config.gemma4.rotated_share = proportional ? std::exchange(share, 1.0) : 1.0;
    share = 1.0;
    if (config.gemma4.rotated_share > 1) {
      c.bad("partial_rotary_factor", "is {}, expected at most 1", config.gemma4.rotated_share);
    }
  }
  config.n_rot = static_cast<int64_t>(share * static_cast<double>(config.head_dim));
  if (share > 1 || config.n_rot % 2 != 0 || config.n_rot < 2) {
    c.bad(named,
          "is {}, which rotates {} of {} values of a head, expected an "
          "even number",
          share, config.n_rot, config.head_dim);
  }
  if (config.n_rot != config.head_dim && config.mapping->architecture != "phi3" &&
      !config.has_linear_attention() && !config.is_glm4() && !config.may_rotate_part) {
    c.bad(named, "is {}, supported is 1", share);
  }
  const bool has_sections =
      config.is_qwen35() || config.is_qwen_vl() || (dense != nullptr && dense->has_sections);
  if (has_sections) read_rope_sections(rope, config);
  if (rope) read_scaling(*rope, config);
}

void read_query_growth(const JsonFields& c, Config& config) {
  const auto rope = c.object(c.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (!rope) c.bad("rope_parameters", "is missing");
  config.query_growth = rope->positive("llama_4_scaling_beta");
  if (config.rope.original_context == 0) {
    rope->bad("original_max_position_embeddings", "is missing");
  }
}

void add_rope_keys(const Config& config, Keys& keys) {
  const std::string architecture(config.mapping->architecture);
  const auto key = [&](const char* name) { return architecture + "." + name; };
  if (architecture.starts_with("llama") || config.is_phi() || config.is_glm4() ||
      config.has_linear_attention() || config.may_rotate_part) {
    keys.u32(key("rope.dimension_count"), config.n_rot);
  }
  if (!config.rope_sections.empty()) {
    std::vector<int64_t> sections = config.rope_sections;
    if (sections.size() == 3) sections.push_back(0);
    keys.i32s(key("rope.dimension_sections"), std::move(sections));
  }
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
    if (!rope.truncate) keys.flag("snapkv.rope.yarn_truncate", false);
    if (rope.log_multiplier > 0) {
      keys.f32(key("rope.scaling.yarn_log_multiplier"), rope.log_multiplier);
    }
  }
  const bool of_minicpm = rope.type == "longrope" && architecture == "minicpm";
  if (rope.type == "yarn" || of_minicpm || config.is_phi()) {
    keys.u32(key("rope.scaling.original_context_length"),
             rope.original_context > 0 ? rope.original_context : config.n_ctx);
  }
  if (rope.type == "longrope") keys.f32(key("rope.scaling.attn_factor"), rope.attention_factor);
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
    const double range = r.high_freq_factor - r.low_freq_factor;
    const double above = turns - r.low_freq_factor;
    const double smooth = range > 0 ? std::clamp(above / range, 0.0, 1.0) : above >= 0 ? 1.0 : 0.0;
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / r.factor + smooth)));
  }
  return factors;
}

}  // namespace snapkv::huggingface
