// SPDX-License-Identifier: MIT
// Model::Impl: what a loaded model consists of. Shared by the engine's files only.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "format/gguf.h"
#include "model/architecture.h"
#include "snapkv/engine.h"
#include "text/tokenizer.h"

namespace snapkv {

/// A ModelInfo from header and configuration.
ModelInfo make_info(const GgufFile& file, const ModelConfig& config);

struct Model::Impl {
  GgufFile file;  // maps the weights: outlives everything below
  ModelInfo info;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Architecture> architecture;

  explicit Impl(GgufFile opened) : file(std::move(opened)) {}
};

}  // namespace snapkv
