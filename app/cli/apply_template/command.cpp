// SPDX-License-Identifier: MIT
// snapkv apply-template: renders a conversation as the text that a model reads, without running the
// model.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/chat_settings.h"
#include "cli/common/terminal.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

struct ApplyTemplateSettings {
  std::string model;
  std::string template_file;
  std::string conversation;
  bool no_generation_prompt = false;
  ChatSettings chat;
};

void add_options(CLI::App& app, ApplyTemplateSettings& s) {
  app.add_option("-f,--file", s.conversation,
                 "JSON, - for stdin: an object with messages and, as the template knows them, "
                 "tools, add_generation_prompt, bos_token, eos_token and any other variables; or "
                 "the messages alone")
      ->type_name("FILE")
      ->required();
  CLI::Option* model =
      app.add_option("-m,--model", s.model,
                     "GGUF file: its chat template (tool_use where there are tools and it has "
                     "that), and the texts of its BOS and EOS tokens")
          ->type_name("FILE");
  app.add_option("--template", s.template_file, "A file with a Jinja template")
      ->type_name("FILE")
      ->excludes(model);
  app.add_flag("--no-generation-prompt", s.no_generation_prompt,
               "End with the last message; otherwise what begins the assistant's answer follows a "
               "message that is not the assistant's, as when the model reads it");
  s.chat.add_options(app);
}

/// Whether the model's answer comes next, unless the conversation says so itself.
bool awaits_answer(const Json& messages) {
  if (!messages.is_array() || messages.empty() || !messages.back().is_object()) return true;
  const auto role = messages.back().find("role");
  return role == messages.back().end() || *role != "assistant";
}

/// The conversation's variables. Throws kUsage for what is not a conversation.
Json read_conversation(const ApplyTemplateSettings& s) {
  const std::string where = s.conversation == "-" ? "standard input" : s.conversation;
  const std::string text = read_text(s.conversation);
  if (eval::nests_too_deep(text)) {
    fail(ErrorCode::kUsage, "{}: nested deeper than {} levels", where, eval::kMostJsonLevels);
  }
  Json variables;
  try {
    variables = Json::parse(text);
  } catch (const Json::exception& e) {
    fail(ErrorCode::kUsage, "{}: not JSON: {}", where, e.what());
  }
  if (variables.is_array()) variables = Json{{"messages", std::move(variables)}};
  if (!variables.is_object() || !variables.contains("messages")) {
    fail(ErrorCode::kUsage, "{}: an object with 'messages' is expected, or a list of messages",
         where);
  }
  const Json more = s.chat.variables();
  for (const auto& [name, value] : more.items()) variables[name] = value;
  if (s.chat.system().empty()) return variables;
  Json& messages = variables["messages"];
  const bool has_first = messages.is_array() && !messages.empty() && messages[0].is_object();
  const Json role = has_first ? messages[0].value("role", Json("")) : Json("");
  if (!role.is_string()) {
    fail(ErrorCode::kUsage, "{}: the role of the first message is {}, expected a text", where,
         role.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const bool has_system = role == "system";
  if (!messages.is_array() || has_system) {
    fail(ErrorCode::kUsage, "--system: {}",
         has_system ? "the messages begin with a system message already"
                    : "the messages are not a list");
  }
  Json with_system = Json::array();
  with_system.push_back(Json{{"role", "system"}, {"content", s.chat.system()}});
  for (const Json& message : messages) with_system.push_back(message);
  messages = std::move(with_system);
  return variables;
}

ChatTemplate choose_template(const ApplyTemplateSettings& s, const ModelChat& chat,
                             bool has_tools) {
  if (!s.template_file.empty()) {
    if (s.chat.names_template()) {
      fail(ErrorCode::kUsage, "two templates: --template and --chat-template");
    }
    return read_template(s.template_file);
  }
  if (s.model.empty() && !s.chat.names_template()) {
    fail(ErrorCode::kUsage,
         "no template: name a model with -m FILE, a template with --template FILE, or a format "
         "with --chat-template NAME");
  }
  return s.chat.choose(chat, s.model, has_tools);
}

int run_apply_template(const ApplyTemplateSettings& s) {
  Json variables = read_conversation(s);
  ModelChat chat;
  if (!s.model.empty()) chat = read_model_chat(s.model);
  const auto tools = variables.find("tools");
  const bool has_tools = tools != variables.end() && tools->is_array() && !tools->empty();
  const ChatTemplate tmpl = choose_template(s, chat, has_tools);
  add_token_texts(chat, variables);
  if (s.no_generation_prompt) {
    variables["add_generation_prompt"] = false;
  } else if (!variables.contains("add_generation_prompt")) {
    variables["add_generation_prompt"] = awaits_answer(variables["messages"]);
  }
  const std::string text = tmpl.render(variables.dump()).text;
  write_stdout(text);
  if (stdout_is_terminal() && (text.empty() || text.back() != '\n')) write_stdout("\n");
  return 0;
}

}  // namespace

Command add_apply_template_command(CLI::App& root) {
  auto settings = std::make_shared<ApplyTemplateSettings>();
  CLI::App* app =
      root.add_subcommand("apply-template", "Print a conversation as the text that a model reads");
  add_options(*app, *settings);
  return {app, [settings] { return run_apply_template(*settings); }};
}

}  // namespace snapkv::cli
