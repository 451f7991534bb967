// SPDX-License-Identifier: MIT
// What `snapkv ask` does, for commands that answer about stored documents too.
#pragma once

#include <cstdint>
#include <string>

#include "chat/document.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/settings.h"
#include "cli/generate/generation.h"

namespace snapkv::cli {

struct AskSettings {
  std::string document;
  ModelSettings model;
  CacheSettings cache;
  SamplerConfig sampler;
  PromptSettings question;
  GeneratorOptions limits;
  int64_t n_ctx = 0;
  bool cites = false;
  bool no_history = false;  // of a chat
};

/// Answers the question about the document; without one, a chat about it begins.
int run_ask(const AskSettings& settings, const CommonSettings& common);

/// Returns the document's own cache settings when its rows have already been chosen; loading
/// refuses typed options that differ. Settings from the environment or the configuration file are
/// ignored, since they may be meant for documents that keep every row.
CacheSettings document_cache(const CacheSettings& given, const chat::DocumentFile& file,
                             const std::string& path);

}  // namespace snapkv::cli
