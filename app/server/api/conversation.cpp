// SPDX-License-Identifier: MIT
#include "server/api/conversation.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api/grammars.h"
#include "server/document.h"

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

Json read_tool_calls(const Fields& message, const std::string& path) {
  Json all = Json::array();
  const Json* calls = message.array("tool_calls");
  for (size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    const std::string name = fmt::format("{}tool_calls[{}].", path, i);
    const Fields call((*calls)[i], name);
    const Fields function(call.need("function"), name + "function.");
    all.push_back(
        {{"id", call.text("id").value_or("")},
         {"type", "function"},
         {"function",
          {{"name", function.needed_text("name")}, {"arguments", arguments_object(function)}}}});
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
  if (fields.has("content") || calls.empty()) {
    message["content"] = content_text(fields, "content", {"text", "refusal"});
  } else {
    message["content"] = "";
  }
  if (!calls.empty()) message["tool_calls"] = calls;
  for (const char* name : {"name", "tool_call_id", "reasoning_content"}) {
    if (const auto text = fields.text(name)) message[name] = *text;
  }
  return message;
}

bool writes_calls(const std::string& template_source) {
  return template_source.find("tool_calls") != std::string::npos;
}

bool has_calls(const Json& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const Json& message) { return message.contains("tool_calls"); });
}

void refuse_calls(const std::string& template_name) {
  throw bad_request("messages",
                    fmt::format("'messages': the assistant has called tools, and the chat template "
                                "'{}' writes no calls",
                                template_name));
}

/// Returns the template. Calls in earlier answers need the template for tools if the other one
/// can't write them, whether or not tools are offered.
const ChatTemplate& template_of(const ApiContext& context, const Conversation& conversation) {
  const auto& plain = context.options.chat_template;
  const bool calls = has_calls(conversation.messages);
  const auto& with_tools = context.options.tool_template;
  const bool needs_tools = calls && plain && with_tools && !writes_calls(plain->source());
  const auto& tmpl = conversation.tools.offered() || needs_tools ? with_tools : plain;
  if (!tmpl) {
    throw ApiError(400,
                   "the model has no chat template: use /v1/completions, or start the server with "
                   "--chat-template",
                   "no_chat_template");
  }
  if (calls && !writes_calls(tmpl->source())) refuse_calls(tmpl->name());
  return *tmpl;
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

RenderedChat render(const Conversation& conversation, const ApiContext& context) {
  const ApiOptions& options = context.options;
  const bool has_tools = conversation.tools.offered();
  const ChatTemplate& tmpl = template_of(context, conversation);
  if (has_tools && tool_format(tmpl.source()) == ToolFormat::none) {
    throw bad_request("tools",
                      fmt::format("'tools': the chat template '{}' writes no tools, or calls "
                                  "of them in no known format",
                                  tmpl.name()));
  }
  Json variables = options.template_variables;
  for (const auto& [name, value] : conversation.template_variables.items()) variables[name] = value;
  Json messages = conversation.messages;
  if (!options.system.empty() && messages[0]["role"] != "system") {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", options.system}});
  }
  variables["messages"] = messages;
  if (has_tools) variables["tools"] = conversation.tools.list;
  variables["add_generation_prompt"] = true;
  return tmpl.render(to_text(variables));
}

namespace {

/// Renders the conversation as the continuation of a document.
RenderedChat render_after(const Document& document, const Conversation& conversation) {
  if (conversation.tools.offered()) {
    throw bad_request("tools", "'tools': what a document's snapshot begins with names none");
  }
  DocumentForm form = document.file.form;
  if (has_calls(conversation.messages) && !writes_calls(form.template_source)) {
    refuse_calls(form.template_name);
  }
  if (conversation.template_variables.empty()) return question_part(form, conversation.messages);
  const std::string stored = document_part(form, "").text;
  for (const auto& [name, value] : conversation.template_variables.items()) {
    form.variables[name] = value;
  }
  if (document_part(form, "").text != stored) {
    throw bad_request("chat_template_kwargs",
                      "'chat_template_kwargs', 'thinking' or the reasoning effort: they change "
                      "what the template writes before the document, which is stored as it was "
                      "read");
  }
  return question_part(form, conversation.messages);
}

/// Makes the answers end after their first complete call.
void end_after_call(AnswerSyntax& syntax, Request& request) {
  syntax.one_call = true;
  request.make_end_finder = [syntax] {
    const auto parser = std::make_shared<AnswerParser>(syntax);
    return [parser](std::string_view text) {
      (void)parser->push(text);
      return parser->ended();
    };
  };
}

}  // namespace

AnswerSyntax prepare(const Conversation& conversation, const ApiContext& context,
                     Request& request) {
  const bool is_first = request.document == nullptr;
  request.prompt.chat =
      is_first ? render(conversation, context) : render_after(*request.document, conversation);
  request.prompt.tokens = context.model().tokenize(request.prompt.chat, /*add_bos=*/is_first);
  AnswerSyntax syntax;
  const std::string& text = request.prompt.chat.text;
  syntax.prompt_end = text.substr(text.size() - std::min(text.size(), kPromptEnd));
  // a grammar applies from the first token on, so the answer has no reasoning
  const bool is_required = conversation.tools.choice == Tools::Choice::required;
  syntax.has_reasoning = conversation.splits_reasoning &&
                         may_reason(conversation.template_variables) &&
                         request.grammar == nullptr && !is_required;
  if (!conversation.tools.offered()) return syntax;
  syntax.tools = tool_format(context.options.tool_template->source());
  syntax.functions = conversation.tools.schemas();
  request.shows_control_tokens = true;  // in some vocabularies the marks of calls are such tokens
  if (!conversation.tools.parallel) end_after_call(syntax, request);
  if (!is_required) return syntax;
  if (request.grammar != nullptr) {
    throw bad_request("tool_choice",
                      "'tool_choice' and 'response_format' or 'grammar' both say what "
                      "the answer must look like; only one can be obeyed");
  }
  request.grammar =
      compile_grammar(tool_grammar(conversation.tools, syntax.tools), "tool_choice", "tools");
  return syntax;
}

RenderedChat read_chat_prompt(const Json& json, const ApiContext& context) {
  const Fields body(json);
  Conversation conversation;
  conversation.messages = read_messages_field(body, "messages");
  conversation.tools = read_tools(body);
  conversation.template_variables = read_template_variables(body);
  return render(conversation, context);
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
  return options;
}

}  // namespace snapkv::server
