// SPDX-License-Identifier: MIT
#include "huggingface/tensor_names.h"

#include <charconv>
#include <cstdint>

#include "huggingface/dense_traits.h"
#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {
namespace {

/// The number of the layer that a tensor is of, or -1.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return -1;
  name.remove_prefix(kLayers.size());
  int64_t il = -1;
  std::from_chars(name.data(), name.data() + name.size(), il);
  return il;
}

/// Whether a tensor is of a layer after the others: "model.layers.46..." of 46.
bool is_after_layers(const Config& config, std::string_view name) {
  return layer_of(name) >= config.n_layer;
}

/// Whether a tensor is of the layers that guess further tokens, of which config.json gives the
/// number.
bool is_draft(const Config& config, std::string_view name) {
  if (name.starts_with("mtp.") || name.starts_with("model.mtp")) return true;
  const int64_t il = layer_of(name);
  return il >= config.n_layer && il < config.n_layer + config.mixture.n_draft_layers;
}

}  // namespace

std::string without_wrapper(std::string name) {
  constexpr std::string_view kWrapper = "language_model.";
  const size_t at = name.find(kWrapper);
  if (at != std::string::npos) name.erase(at, kWrapper.size());
  return name;
}

bool is_of_another_part(const Config& config, std::string_view name) {
  const bool may_guess = config.linear.n_head > 0 || config.is_nemotron_h();
  if (may_guess && name.starts_with("mtp.")) return true;
  if (config.mapping->architecture == "glm4moe" && is_after_layers(config, name)) return true;
  if (config.mixture.n_draft_layers > 0 && is_draft(config, name)) return true;
  for (const std::string_view part : config.mapping->other_parts) {
    if (name.starts_with(part)) return true;
  }
  if (!config.multimodal) return false;
  if (name.starts_with("model.")) name.remove_prefix(6);
  if (config.mapping->dense != nullptr) {
    for (const std::string_view part : config.mapping->dense->other_parts) {
      if (name.starts_with(part)) return true;
    }
  }
  return name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.") ||
         name.starts_with("visual.") || (config.is_llama4() && name.starts_with("vision_model.")) ||
         (config.mapping->architecture == "step35" &&
          (name.starts_with("vision_model.") || name.starts_with("vit_large_projector."))) ||
         (config.is_chameleon() && name.starts_with("vqmodel.")) ||
         ((config.is_gemma3n() || config.is_gemma4()) &&
          (name.starts_with("audio_tower.") || name.starts_with("embed_vision.") ||
           name.starts_with("embed_audio.")));
}

}  // namespace snapkv::huggingface
