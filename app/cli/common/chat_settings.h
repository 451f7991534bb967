// SPDX-License-Identifier: MIT
// The chat template that a command uses, and the variables that it gets besides the messages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

using Json = nlohmann::ordered_json;

class ChatSettings {
 public:
  /// Adds --chat-template, --chat-template-kwargs and --system. `needed`: an option without which
  /// they have no effect and are refused.
  void add_options(CLI::App& command, CLI::Option* needed = nullptr);

  /// Adds --chat, which sets `as_chat` and makes the prompt a user's message, and the options
  /// above.
  void add_prompt_options(CLI::App& command, bool& as_chat);

  /// --chat and --no-chat, and these options, which make a chat of the prompt by themselves.
  void add_default_prompt_options(CLI::App& command, bool& as_chat, bool& as_text);

  /// Whether one of the options is given.
  bool is_given() const;
  /// Whether --chat-template names one.
  bool names_template() const { return !template_.empty(); }
  const std::string& system() const { return system_; }

  /// The template that --chat-template names: one of the model's variants, a built-in one, a file,
  /// or Jinja itself. Without the option: the model's own, "tool_use" when there are tools. `chat`
  /// is what the model file at `model_path` says; empty without a model. Throws kUsage when there
  /// is none, kBadModel when the model's own can't be used.
  ChatTemplate choose(const ModelChat& chat, const std::string& model_path, bool has_tools) const;

  /// The --system message, if given, followed by a user's message.
  Json messages(const std::string& user) const;
  /// Tokens of a prompt as a user's message, after --system and up to where the answer begins.
  /// `at_once`: the answer has no reasoning, as where a grammar holds from the first token. Throws
  /// kUsage when it is not UTF-8, and as choose() and rendering do.
  std::vector<int32_t> tokenize(const Model& model, const std::string& model_path,
                                const std::string& prompt, bool add_bos = true,
                                bool at_once = false) const;
  /// The variables in --chat-template-kwargs; an object. Throws kUsage.
  Json variables() const;

 private:
  std::string template_;
  std::string variables_;
  std::string system_;
};

/// Reads a template from a file. Throws kRuntime, kUsage.
ChatTemplate read_template(const std::string& path);

/// Adds bos_token and eos_token where `variables` lack them and the model has them.
void add_token_texts(const ModelChat& chat, Json& variables);

}  // namespace snapkv::cli
