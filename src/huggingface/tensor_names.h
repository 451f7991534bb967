// SPDX-License-Identifier: MIT
// What the names of a Hugging Face folder's tensors say: of which part of the model they are.
#pragma once

#include <string>
#include <string_view>

#include "huggingface/config.h"

namespace snapkv::huggingface {

/// The name of a tensor without the prefix that multimodal models give their text model:
/// "language_model.model.layers..." and "model.language_model.layers..." both become
/// "model.layers...".
std::string without_wrapper(std::string name);

/// Whether a tensor belongs to a part that the text model does not use: one of a multimodal model's
/// others, or layers that guess further tokens.
bool is_of_another_part(const Config& config, std::string_view name);

}  // namespace snapkv::huggingface
