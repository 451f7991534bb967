// SPDX-License-Identifier: MIT
#include "server/api/conversation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/answer_watch.h"
#include "chat/field_error.h"
#include "chat/harmony.h"
#include "server/api/custom_tools.h"
#include "server/api/grammars.h"
#include "server/api/kv_fields.h"
#include "server/api/long_reading.h"
#include "snapkv/sources.h"

namespace snapkv::server {
namespace {

constexpr size_t kPromptEnd = 64;  // bytes that may hold the tag which opens reasoning

std::string text_of_part(const Fields& part, std::initializer_list<std::string_view> text_types) {
  const std::string type = part.needed_text("type");
  if (std::find(text_types.begin(), text_types.end(), type) == text_types.end()) {
    part.refuse("type", fmt::format("this model reads text only: parts of type {} are possible, "
                                    "not {}",
                                    fmt::join(text_types, ", "), short_text(Json(type))));
  }
  return part.needed_text(type == "refusal" ? "refusal" : "text");
}

/// Returns a call's arguments, which the API passes as a string that holds JSON.
Json arguments_object(const Fields& function) {
  const Json& arguments = function.need("arguments");
  if (arguments.is_object()) return arguments;
  if (!arguments.is_string()) {
    function.refuse("arguments", "a string that holds a JSON object", arguments);
  }
  const std::string& text = arguments.get_ref<const std::string&>();
  if (text.empty()) return Json::object();
  Json parsed = parse_held(text);
  return parsed.is_object() ? parsed : Json(text);
}

Json call_json(const std::string& id, const std::string& name, Json arguments) {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

Json call_of(const Fields& function, const std::string& id) {
  return call_json(id, function.needed_text("name"), arguments_object(function));
}

/// Throws FieldError for `function_call`, which was there before tools.
Json read_tool_calls(const Fields& message, const std::string& path) {
  Json all = Json::array();
  const Json* calls = message.array("tool_calls");
  for (size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    const std::string name = fmt::format("{}tool_calls[{}].", path, i);
    const Fields call((*calls)[i], name);
    const std::string id = call.text("id").value_or("");
    if (call.text("type").value_or("function") == "custom") {
      const Fields custom(call.need("custom"), name + "custom.");
      all.push_back(
          call_json(id, custom.needed_text("name"), custom_arguments(custom.needed_text("input"))));
    } else {
      all.push_back(call_of(Fields(call.need("function"), name + "function."), id));
    }
  }
  if (message.has("function_call")) {
    message.refuse("function_call", "calls are in 'tool_calls', and their results have an id");
  }
  return all;
}

Json read_message(const Json& json, const std::string& path) {
  const Fields fields(json, path);
  std::string role = fields.needed_text("role");
  if (role == "developer") role = "system";  // templates know it by this name only
  static const std::vector<std::string> kRoles = {"system", "user", "assistant", "tool"};
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    fields.refuse("role", "system, developer, user, assistant or tool", Json(role));
  }
  Json message = {{"role", role}};
  const Json calls = role == "assistant" ? read_tool_calls(fields, path) : Json::array();
  const bool is_null = json.contains("content") && json["content"].is_null();
  if (is_null || (!fields.has("content") && !calls.empty())) {
    message["content"] = "";
  } else {
    message["content"] = content_text(fields, "content", {"text", "refusal"});
  }
  if (!calls.empty()) message["tool_calls"] = calls;
  for (const char* name : {"name", "tool_call_id", "reasoning_content"}) {
    if (const auto text = fields.text(name)) message[name] = *text;
  }
  return message;
}

bool may_reason(const Json& variables) {
  const auto thinking = variables.find("enable_thinking");
  return thinking == variables.end() || *thinking != false;
}

}  // namespace

std::string content_text(const Fields& owner, const char* name,
                         std::initializer_list<std::string_view> text_types) {
  const Json& content = owner.need(name);
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) owner.refuse(name, "a string or an array of parts", content);
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    text +=
        text_of_part(Fields(content[i], fmt::format("{}[{}].", owner.name(name), i)), text_types);
  }
  return text;
}

Json read_messages_field(const Fields& body, const char* name) {
  (void)body.need(name);
  const Json& list = *body.array(name);
  if (list.empty()) body.refuse(name, "there must be at least one message");
  Json messages = Json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    messages.push_back(read_message(list[i], fmt::format("{}[{}].", name, i)));
  }
  return messages;
}

Json read_template_variables(const Fields& body) {
  const Json* variables = body.object("chat_template_kwargs");
  if (variables == nullptr) return Json::object();
  for (const char* reserved : {"messages", "tools", "add_generation_prompt"}) {
    if (variables->contains(reserved)) {
      body.refuse("chat_template_kwargs", fmt::format("'{}' is the request's own", reserved));
    }
  }
  return *variables;
}

bool read_begins_turn(const Fields& body) {
  const std::optional<bool> continues = body.boolean("continue_final_message");
  const std::optional<bool> begins = body.boolean("add_generation_prompt");
  return continues ? !*continues : begins.value_or(false);
}

namespace {

/// Runs `make`, and reports errors in fields of the conversation as the API's.
template <typename Make>
auto with_api_errors(Make make) {
  try {
    return make();
  } catch (const chat::FieldError& e) {
    throw bad_request(e.field, e.what());
  }
}

chat::ConversationDefaults defaults_of(const ApiOptions& options) {
  return {options.chat_template, options.tool_template, options.template_variables, options.system};
}

}  // namespace

RenderedChat render(const Conversation& conversation, const ApiContext& context,
                    std::vector<std::string>& warnings) {
  const chat::ConversationDefaults defaults = defaults_of(context.options);
  if (chat::template_of(conversation, defaults) == nullptr) {
    throw ApiError(400,
                   "the model has no chat template: use /v1/completions, or start the server with "
                   "--chat-template",
                   "no_chat_template");
  }
  return with_api_errors([&] { return chat::render(conversation, defaults, warnings); });
}

namespace {

/// Makes the answers end where their calls end them, and their calls obey Request::call_grammar.
void set_watch(const AnswerSyntax& syntax, Request& request) {
  request.make_watch = [syntax] {
    const auto watch = std::make_shared<chat::AnswerWatch>(syntax);
    return [watch](std::string_view text) {
      watch->push(text);
      return Watched{watch->ended(), watch->begun_call()};
    };
  };
}

/// The grammar of calls that nobody has asked for: what can't be said in one is only noted.
void set_call_grammar(const Tools& tools, ToolFormat format, Request& request) {
  try {
    request.call_grammar =
        compile_tool_grammar(chat::begun_call_grammar(tools, format, request.notes));
  } catch (const std::exception& e) {  // of one tool: the schema's; of all: too large
    request.notes.push_back(std::string("no grammar holds in calls: ") + e.what());
  }
}

/// The grammar of an answer that may call tools, or must.
void set_tool_grammar(const Tools& tools, ToolFormat format, Request& request) {
  std::string gbnf;
  if (tools.choice == Tools::Choice::required) {
    if (request.grammar != nullptr) {
      request.warnings.emplace_back(
          "the answer's format or grammar: a call must be made, which has its own");
    }
    gbnf = chat::tool_grammar(tools, format, request.warnings);
  } else if (request.grammar != nullptr) {
    gbnf = chat::answer_or_call_grammar(request.grammar->source(), tools, format, request.warnings);
  } else if (format == ToolFormat::generic) {
    gbnf = chat::text_or_call_grammar(tools, format, request.warnings);
  } else {
    return;
  }
  request.grammar = compile_tool_grammar(gbnf);
}

/// What an answer may be taken from: the messages of users and tools, of the last one without its
/// last paragraph, which is the question.
std::vector<CitableText> citable_texts(const Json& messages) {
  std::vector<CitableText> texts;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string role = messages[i].value("role", "");
    const auto content = messages[i].find("content");
    const bool is_text = content != messages[i].end() && content->is_string();
    if (!is_text || (role != "user" && role != "tool")) continue;
    std::string text = content->get<std::string>();
    if (i + 1 == messages.size()) text = text_before_question(text);
    if (!text.empty()) texts.push_back({static_cast<int64_t>(i), std::move(text)});
  }
  return texts;
}

/// Whether the model answers in messages with channels.
bool writes_harmony(const Conversation& conversation, const ApiContext& context) {
  const ChatTemplate* const found = chat::template_of(conversation, defaults_of(context.options));
  return found != nullptr && chat::writes_harmony(found->source());
}

/// What the parser of the answer must know of the prompt.
std::string prompt_end(const std::string& text, bool is_harmony) {
  if (is_harmony) return std::string(chat::harmony_message(text));
  return text.substr(text.size() - std::min(text.size(), kPromptEnd));
}

void set_prompt(const Conversation& conversation, const ApiContext& context, Request& request) {
  const bool is_first = request.document == nullptr;
  request.prompt.chat =
      is_first
          ? render(conversation, context, request.warnings)
          : with_api_errors([&] { return chat::render_after(*request.document, conversation); });
  request.prompt.tokens = context.model().tokenize(request.prompt.chat, /*add_bos=*/is_first);
  if (reports_sources(request.kv_report)) {
    request.citable = citable_texts(conversation.messages);
    if (!is_first) cite_snapshot(context.model(), request);
  }
  if (is_first && request.long_mode != LongMode::refuse) {
    request.long_reading = LongReading::begin(conversation, context, request);
  }
}

}  // namespace

AnswerSyntax prepare(const Conversation& given, const ApiContext& context, Request& request) {
  const bool is_harmony = writes_harmony(given, context);
  const Tools& tools = given.tools;
  const ToolFormat format =
      tools.offered() ? chat::tool_format_or_generic(context.options.tool_template->source())
                      : ToolFormat::none;
  const bool is_required = tools.choice == Tools::Choice::required;
  Conversation conversation = given;
  conversation.answers_at_once =
      request.grammar != nullptr || is_required || format == ToolFormat::generic;
  set_prompt(conversation, context, request);
  AnswerSyntax syntax;
  syntax.is_harmony = is_harmony;
  syntax.prompt_end = prompt_end(request.prompt.chat.text, is_harmony);
  // a grammar applies from the first token on, so the answer has no reasoning; harmony has a
  // channel for it, which nothing turns off
  const bool may_begin_so =
      may_reason(conversation.template_variables) && request.grammar == nullptr && !is_required;
  syntax.has_reasoning = conversation.splits_reasoning && (may_begin_so || is_harmony);
  if (!tools.offered()) return syntax;
  syntax.tools = format;
  syntax.functions = tools.schemas();
  request.shows_control_tokens = true;  // in some vocabularies the marks of calls are such tokens
  syntax.one_call = !tools.parallel;
  // a grammar allows calls of the template's form only
  syntax.any_form = tools.any_form && request.grammar == nullptr && !is_required;
  if (syntax.one_call || syntax.any_form || is_harmony) set_watch(syntax, request);
  with_api_errors([&] { set_tool_grammar(tools, format, request); });
  const bool is_free = syntax.any_form && request.grammar == nullptr;
  if (is_free) set_call_grammar(tools, format, request);
  return syntax;
}

RenderedChat read_chat_prompt(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Conversation conversation;
  conversation.messages = read_messages_field(body, "messages");
  conversation.tools = read_tools(body);
  conversation.template_variables = read_template_variables(body);
  conversation.begins_turn = read_begins_turn(body);
  std::vector<std::string> warnings;
  return render(conversation, context, warnings);
}

AnswerOptions answer_options(const Request& request, bool stream, const ApiContext& context) {
  AnswerOptions options;
  options.id = request.id;
  options.model = context.options.model_name;
  options.created = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  options.n = request.n;
  options.stream = stream;
  options.has_logprobs = request.top_logprobs >= 0;
  options.kv_report = request.kv_report;
  options.snapshot = request.snapshot;
  options.warnings = request.warnings;
  options.notes = request.notes;
  return options;
}

}  // namespace snapkv::server
