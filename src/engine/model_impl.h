// SPDX-License-Identifier: MIT
// Model::Impl: what a loaded model consists of. Shared by the engine's files only.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "backend/backend.h"
#include "engine/weight_pages.h"
#include "format/gguf.h"
#include "model/architecture.h"
#include "snapkv/engine.h"
#include "snapkv/tokenizer.h"

namespace snapkv {

/// A ModelInfo from header and specification.
ModelInfo make_info(const GgufFile& file, const ModelSpec& spec);
/// The chat templates of a header. Throws kBadModel for keys of other types.
ModelChat chat_of(const GgufFile& file);

struct Model::Impl {
  GgufFile file;                            // maps the weights: outlives everything below
  std::optional<WeightPages> weight_pages;  // atomics can't be moved into place
  ModelInfo info;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Architecture> architecture;
  std::once_flag fingerprinted;
  uint64_t fingerprint = 0;

  explicit Impl(GgufFile opened) : file(std::move(opened)) {}
};

}  // namespace snapkv
