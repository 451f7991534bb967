// SPDX-License-Identifier: MIT
// What `snapkv generate` does, for commands that answer a prompt too.
#pragma once

#include <optional>
#include <string>

#include "cli/common/chat_settings.h"
#include "cli/common/cli_types.h"
#include "cli/common/grammar_settings.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/settings.h"
#include "cli/document/document_rows.h"
#include "cli/generate/generation.h"
#include "cli/generate/saved_cache.h"
#include "long_documents/plan.h"

namespace snapkv::cli {

struct GenerateSettings {
  ModelSettings model;
  CacheSettings cache;
  SamplerConfig sampler;
  GrammarSettings grammar;
  PromptSettings prompt;
  GeneratorOptions limits;
  CLI::Option* length_option = nullptr;
  int64_t n_ctx = 0;
  bool no_bos = false;
  bool plain_text = false;
  SavedCache saved;
  std::string compare;                    // policy of a second answer; empty: one answer
  bool as_chat = false, as_text = false;  // where neither, as the model has a template
  ChatSettings chat;
  bool cites = false;
  long_documents::LongMode long_mode = long_documents::LongMode::refuse;
  bool json = false;
  bool show_timings = false;
  /// Where documents are stored for further questions, and what notes call them; nothing: nowhere.
  std::optional<StoreSettings> store;
  std::string documents;
};

/// Adds --compare; the command has --cite already.
CLI::Option* add_compare_option(CLI::App& app, std::string& policy);

int run_generate(const GenerateSettings& settings, const CommonSettings& common);

}  // namespace snapkv::cli
