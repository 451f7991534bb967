// SPDX-License-Identifier: MIT
// The tensors of a Hugging Face folder under their names in GGUF.
#pragma once

#include <string>
#include <vector>

#include "huggingface/config.h"
#include "huggingface/mapped_tensor.h"
#include "huggingface/shards.h"

namespace snapkv::huggingface {

/// All tensors of the model, in the order in which it uses them. Throws Error{kBadModel} if one is
/// missing, unknown, of an unsupported type, or of another shape than `config` says.
std::vector<MappedTensor> map_tensors(const Config& config, const Shards& shards,
                                      const std::string& folder);

}  // namespace snapkv::huggingface
