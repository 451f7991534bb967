// SPDX-License-Identifier: MIT
// open_model(): a model's files by whatever format they have. Used wherever the engine takes a
// path.
#pragma once

#include <string>

#include "format/gguf.h"

namespace snapkv {

/// A GGUF file (of a split one the first part), or a folder as Hugging Face's transformers saves
/// it. Throws as GgufFile::open() and huggingface::open_folder().
GgufFile open_model(const std::string& path, const ReadOptions& options = {});

}  // namespace snapkv
