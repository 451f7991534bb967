// SPDX-License-Identifier: MIT
// open_model(): opens a model's files, whatever their format.
#pragma once

#include <string>

#include "format/gguf.h"
#include "snapkv/engine.h"

namespace snapkv {

/// `path` is a GGUF file (the first part of a split one) or a folder as Hugging Face's transformers
/// saves it. Throws as GgufFile::open() and huggingface::open_folder() do.
GgufFile open_model(const std::string& path, const ReadOptions& options = {});
/// The same, with the metadata that ModelOptions::rope_scaling and the like replace. Throws kUsage
/// where they can't work for this model.
GgufFile open_model(const ModelOptions& model, const ReadOptions& options);
/// The options that ModelOptions::draft_model is loaded with.
ModelOptions draft_model_options(const ModelOptions& model);

}  // namespace snapkv
