// SPDX-License-Identifier: MIT
// open_model(): opens a model's files, whatever their format.
#pragma once

#include <string>

#include "format/gguf.h"

namespace snapkv {

/// `path` is a GGUF file (the first part of a split one) or a folder as Hugging Face's transformers
/// saves it. Throws as GgufFile::open() and huggingface::open_folder() do.
GgufFile open_model(const std::string& path, const ReadOptions& options = {});

}  // namespace snapkv
