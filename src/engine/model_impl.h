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

/// Copies the sizes that ModelInfo and ModelConfig both hold, from either to the other.
template <typename From, typename To>
void copy_sizes(const From& from, To& to) {
  to.n_layer = from.n_layer;
  to.n_embd = from.n_embd;
  to.n_ff = from.n_ff;
  to.n_vocab = from.n_vocab;
  to.n_ctx_train = from.n_ctx_train;
  to.n_head = from.n_head;
  to.n_head_kv = from.n_head_kv;
  to.head_dim = from.head_dim;
}

/// A ModelInfo from header and configuration.
ModelInfo make_info(const GgufFile& file, const ModelConfig& config);

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
