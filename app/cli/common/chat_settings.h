// SPDX-License-Identifier: MIT
// Which chat template a command uses, and the variables it gets besides the messages. Used by
// apply-template, generate --chat and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "snapkv/chat.h"

namespace snapkv::cli {

using Json = nlohmann::ordered_json;

class ChatSettings {
 public:
  /// --chat-template, --chat-template-kwargs, --system
  void add_options(CLI::App& command);

  /// Whether --chat-template names one.
  bool names_template() const { return !template_.empty(); }
  const std::string& system() const { return system_; }

  /// The template that --chat-template names: a built-in one, one of the model's variants, a file,
  /// or Jinja itself; without the option the model's own, "tool_use" where there are tools. `chat`
  /// is what the model file at `model_path` says; empty for no model. Throws kUsage when there is
  /// none, kBadModel when the model's own can't be used.
  ChatTemplate choose(const ModelChat& chat, const std::string& model_path, bool has_tools) const;

  /// The variables of --chat-template-kwargs; an object. Throws kUsage.
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
