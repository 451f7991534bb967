// SPDX-License-Identifier: MIT
// What `snapkv chat` does, for commands that begin a chat too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/chat_settings.h"
#include "cli/common/settings.h"
#include "cli/document/document_rows.h"
#include "cli/generate/generation.h"

namespace snapkv::cli {

struct ChatCommandSettings {
  ModelSettings model;
  CacheSettings cache;
  // another seed each time, since /regenerate is there for other answers
  SamplerConfig sampler = {.seed = SamplerConfig::kRandomSeed};
  GeneratorOptions limits;
  int64_t n_ctx = 0;
  ChatSettings chat;
  std::vector<std::string> documents;  // which the first message begins with
  bool no_history = false;
  bool cites = false;
  /// Where the documents are stored for further questions; nothing: nowhere.
  std::optional<StoreSettings> store = {};
  /// A file of compress or of a snapshot that the chat is about; empty: none.
  std::string stored_document = {};
};

int run_chat(const ChatCommandSettings& settings, const CommonSettings& common);

}  // namespace snapkv::cli
