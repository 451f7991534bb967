// SPDX-License-Identifier: MIT
// What a GGUF file is if it is no model that writes text: an adapter, a projector, embeddings.
#pragma once

#include <string>

namespace snapkv {

class GgufFile;

/// Says what the file is and what is wanted instead: 'a LoRA adapter (adapter.type is "lora"), not
/// a model that writes text: ...'. Empty for models that write text, of whatever architecture.
std::string foreign_kind(const GgufFile& file);
/// Throws Error{kBadModel} with the file's path and foreign_kind(), unless that is empty.
void check_file_kind(const GgufFile& file);

}  // namespace snapkv
