// SPDX-License-Identifier: MIT
#include "cli/common/chat_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/harmony.h"
#include "chat/harmony_prompt.h"
#include "cli/common/terminal.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

/// Parses the model's template `name`; its errors are reported as errors of the model file.
ChatTemplate model_template(const ModelChat& chat, const std::string& name,
                            const std::string& model_path) {
  const std::string label = name == "default"
                                ? fmt::format("'{}': its chat template", model_path)
                                : fmt::format("'{}': its chat template '{}'", model_path, name);
  try {
    return ChatTemplate::parse(chat.templates.at(name), label);
  } catch (const Error& e) {
    fail(ErrorCode::kBadModel, "{}\nanother one can be given with --chat-template", e.what());
  }
}

}  // namespace

void ChatSettings::add_options(CLI::App& command, CLI::Option* needed) {
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    CLI::Option* option = command.add_option(name, value, help)->type_name(type)->group("Chat");
    if (needed != nullptr) option->needs(needed);
    return option;
  };
  add("--chat-template", template_,
      "Write the chat in this format instead of the model's own: a built-in name (chatml, llama3 "
      "...), a file with a Jinja template, or the template itself",
      "NAME|FILE");
  add("--chat-template-kwargs", variables_,
      "Variables for the template, as in '{\"enable_thinking\": false}'", "JSON");
  add("--system", system_, "The system message", "TEXT")->check([](const std::string& text) {
    return utf8::is_valid(text) ? std::string() : std::string("the text is not valid UTF-8");
  });
}

void ChatSettings::add_prompt_options(CLI::App& command, bool& as_chat) {
  CLI::Option* const chat =
      command
          .add_flag("--chat", as_chat,
                    "Write the prompt as a user's message, through the model's chat template")
          ->group("Chat");
  add_options(command, chat);
}

void ChatSettings::add_default_prompt_options(CLI::App& command, bool& as_chat, bool& as_text) {
  CLI::Option* const chat =
      command
          .add_flag("--chat", as_chat,
                    "Write the prompt as a user's message, through the model's chat template; the "
                    "default where it has one")
          ->group("Chat");
  CLI::Option* const text =
      command
          .add_flag("--no-chat", as_text, "Read the prompt as it is: the model continues the text")
          ->group("Chat")
          ->excludes(chat);
  add_options(command);
  for (const char* name : {"--chat-template", "--chat-template-kwargs", "--system"}) {
    command.get_option(name)->excludes(text);
  }
}

bool ChatSettings::is_given() const {
  return !template_.empty() || !variables_.empty() || !system_.empty();
}

ChatTemplate read_template(const std::string& path) {
  return ChatTemplate::parse(read_text(path), path);
}

ChatTemplate ChatSettings::choose(const ModelChat& chat, const std::string& model_path,
                                  bool has_tools) const {
  if (template_.empty()) {
    if (has_tools && chat.templates.count("tool_use") > 0) {
      return model_template(chat, "tool_use", model_path);
    }
    if (chat.templates.count("default") > 0) return model_template(chat, "default", model_path);
    fail(ErrorCode::kUsage,
         "'{0}' has no chat template, so it is a base model most likely: it continues texts, and "
         "was not trained to answer messages\n"
         "snapkv generate -m {0} -p \"The text so far\" continues a text\n"
         "--chat-template NAME|FILE is for models that were trained for chats after all, and says "
         "in which format; --chat-template help lists the names",
         model_path);
  }
  if (chat.templates.count(template_) > 0) return model_template(chat, template_, model_path);
  const std::vector<std::string> names = ChatTemplate::built_in_names();
  if (template_ == "help") {
    fail(ErrorCode::kUsage, "--chat-template: built in are {}", fmt::join(names, ", "));
  }
  if (std::find(names.begin(), names.end(), template_) != names.end()) {
    return ChatTemplate::built_in(template_);
  }
  if (template_.find("{{") != std::string::npos || template_.find("{%") != std::string::npos) {
    return ChatTemplate::parse(template_, "--chat-template");
  }
  std::error_code error;
  if (std::filesystem::exists(template_, error)) return read_template(template_);
  fail(ErrorCode::kUsage, "--chat-template {}: neither a file nor one of {}", template_,
       fmt::join(names, ", "));
}

Json ChatSettings::messages(const std::string& user) const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  messages.push_back({{"role", "user"}, {"content", user}});
  return messages;
}

std::vector<int32_t> ChatSettings::tokenize(const Model& model, const std::string& model_path,
                                            const std::string& prompt, bool add_bos,
                                            bool at_once) const {
  if (!utf8::is_valid(prompt)) fail(ErrorCode::kUsage, "--chat: the prompt is not valid UTF-8");
  const ModelChat chat = model.chat();
  const ChatTemplate chat_template = choose(chat, model_path, false);
  Json all = variables();
  add_token_texts(chat, all);
  all["messages"] = messages(prompt);
  all["add_generation_prompt"] = true;
  RenderedChat rendered = chat_template.render(all.dump());
  if (chat::writes_harmony(chat_template.source())) {
    rendered.text += chat::harmony_opening({}, at_once, /*continues=*/false);
  }
  return model.tokenize(rendered, add_bos);
}

Json ChatSettings::variables() const {
  if (variables_.empty()) return Json::object();
  Json parsed = eval::parse_json(variables_);
  if (!parsed.is_object()) {
    fail(ErrorCode::kUsage,
         "--chat-template-kwargs must be a JSON object of at most {} levels, not: {}",
         eval::kMostJsonLevels, variables_);
  }
  return parsed;
}

void add_token_texts(const ModelChat& chat, Json& variables) {
  if (!variables.contains("bos_token") && !chat.bos_token.empty()) {
    variables["bos_token"] = chat.bos_token;
  }
  if (!variables.contains("eos_token") && !chat.eos_token.empty()) {
    variables["eos_token"] = chat.eos_token;
  }
}

}  // namespace snapkv::cli
