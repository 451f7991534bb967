// SPDX-License-Identifier: MIT
// Model::Impl: the parts of a loaded model. Private to the engine.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "backend/backend.h"
#include "engine/core/weight_pages.h"
#include "format/gguf.h"
#include "model/architecture.h"
#include "snapkv/engine.h"
#include "snapkv/tokenizer.h"

namespace snapkv {

/// Makes a ModelInfo from header and specification. `decoder`: null if the model cannot run.
ModelInfo make_info(const GgufFile& file, const ModelSpec& spec,
                    std::shared_ptr<const Architecture> decoder);
/// The chat templates in a header. Throws kBadModel if a key has the wrong type.
ModelChat chat_of(const GgufFile& file);

struct Model::Impl {
  GgufFile file;                            // maps the weights, so it must outlive everything below
  ModelInfo info;
  std::unique_ptr<Backend> backend;
  std::optional<WeightPages> weight_pages;  // not movable, so it is constructed in place
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Architecture> architecture;
  std::shared_ptr<const Model> draft_model;  // null: none
  std::once_flag fingerprinted;
  uint64_t fingerprint = 0;

  explicit Impl(GgufFile opened) : file(std::move(opened)) {}
};

}  // namespace snapkv
