// SPDX-License-Identifier: MIT
#include "huggingface/window_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace snapkv::huggingface {

std::string read_layer_types(const JsonFields& c, const Config& config) {
  const Json* list = c.find("layer_types");
  if (list == nullptr) return "";
  if (!list->is_array() || std::ssize(*list) != config.n_layer) {
    c.bad("layer_types", "is {}, expected an array of {} texts", shown(*list), config.n_layer);
  }
  std::string types;
  for (const Json& type : *list) {
    if (type == "full_attention") {
      types += 'f';
    } else if (type == "sliding_attention") {
      types += 's';
    } else {
      c.bad("layer_types", "holds {}, supported are full_attention and sliding_attention",
            shown(type));
    }
  }
  return types;
}

namespace {

void read_gemma3_windows(const JsonFields& c, Config& config) {
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 4096);
  if (const int64_t period = c.integer("sliding_window_pattern", 0, 4096, 6); period != 6) {
    c.bad("sliding_window_pattern", "is {}, supported is 6", period);
  }
  const std::string types = read_layer_types(c, config);
  for (size_t il = 0; il < types.size(); ++il) {
    if ((types[il] == 'f') != (il % 6 == 5)) {
      c.bad("layer_types", "has {} as layer {}; supported is full_attention as every sixth one",
            types[il] == 'f' ? "full_attention" : "sliding_attention", il);
    }
  }
}

/// All layers but every second one have a window.
void read_gpt_oss_windows(const JsonFields& c, Config& config) {
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 128);
  const std::string types = read_layer_types(c, config);
  for (size_t il = 0; il < types.size(); ++il) {
    if ((types[il] == 'f') != (il % 2 == 1)) {
      c.bad("layer_types", "has {} as layer {}; supported is full_attention as every second one",
            types[il] == 'f' ? "full_attention" : "sliding_attention", il);
    }
  }
}

/// EXAONE 4 and Mellum 2: layers with windows are those of layer_types; the smaller models have
/// none.
void read_exaone4_windows(const JsonFields& c, Config& config) {
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 0);
  if (config.sliding_window == 0) return;
  const std::string types = read_layer_types(c, config);
  if (types.empty()) c.bad("layer_types", "is missing, which models with sliding_window need");
  for (const char type : types) config.has_window.push_back(type == 's');
}

/// All layers but every sixth one have a window, unless layer_types says otherwise; never the last.
void read_gemma4_windows(const JsonFields& c, Config& config) {
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 512);
  const std::string types = read_layer_types(c, config);
  for (int64_t il = 0; il < config.n_layer; ++il) {
    const bool windowed = types.empty() ? il % 6 != 5 : types[il] == 's';
    config.has_window.push_back(windowed && il + 1 < config.n_layer);
  }
}

/// All layers but every fifth one have a window, unless layer_types says otherwise.
void read_gemma3n_windows(const JsonFields& c, Config& config) {
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 512);
  const std::string types = read_layer_types(c, config);
  for (int64_t il = 0; il < config.n_layer; ++il) {
    config.has_window.push_back(types.empty() ? il % 5 != 4 : types[il] == 's');
  }
}

/// Windows of Mistral's and Qwen's layers, some or all of them.
void read_other_windows(const JsonFields& c, Config& config) {
  const bool mistral =
      config.class_name == "MistralForCausalLM" || config.class_name == "MixtralForCausalLM";
  if (config.class_name == "LlamaForCausalLM" || !c.has("sliding_window") ||
      !c.flag("use_sliding_window", mistral)) {
    return;
  }
  config.sliding_window = c.integer("sliding_window", 1, kMaxContext);
  const std::string types = read_layer_types(c, config);
  const int64_t n_full = mistral ? 0 : c.integer("max_window_layers", 0, 4096, 28);
  for (int64_t il = 0; il < config.n_layer; ++il) {
    config.has_window.push_back(types.empty() ? il >= n_full : types[il] == 's');
  }
  const auto begin = config.has_window.begin(), end = config.has_window.end();
  if (std::find(begin, end, true) == end) config.sliding_window = 0;
  if (std::find(begin, end, false) == end) config.has_window.clear();  // as without a pattern
}

}  // namespace

void read_windows(const JsonFields& c, Config& config) {
  const std::string_view architecture = config.mapping->architecture;
  if (architecture == "gemma3") {
    read_gemma3_windows(c, config);
  } else if (architecture == "gemma3n") {
    read_gemma3n_windows(c, config);
  } else if (architecture == "gemma4") {
    read_gemma4_windows(c, config);
  } else if (architecture == "gpt-oss") {
    read_gpt_oss_windows(c, config);
  } else if (architecture == "exaone4" || architecture == "mellum") {
    read_exaone4_windows(c, config);
  } else if (config.is_phi()) {
    config.sliding_window = c.integer("sliding_window", 1, kMaxContext, 0);
  } else {
    read_other_windows(c, config);
  }
}

}  // namespace snapkv::huggingface
