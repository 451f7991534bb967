// SPDX-License-Identifier: MIT
#include "chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/chat_part.h"
#include "base/check.h"
#include "chat/call_history.h"
#include "chat/call_syntax.h"
#include "chat/field_error.h"
#include "chat/harmony.h"
#include "chat/harmony_prompt.h"
#include "chat/message_forms.h"
#include "chat/reasoning.h"

namespace snapkv::chat {
namespace {

bool writes_calls(const std::string& template_source) {
  return template_source.find("tool_calls") != std::string::npos;
}

bool has_calls(const Json& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    return message.contains("tool_calls") || message["role"] == "tool";
  });
}

/// Whether the answer goes on with the last message. Throws where that is a call, whose result must
/// follow.
bool continues_answer(const Conversation& conversation) {
  const Json& last = conversation.messages.back();
  if (last["role"] != "assistant" || conversation.begins_turn) return false;
  if (last.contains("tool_calls")) {
    throw FieldError("messages",
                     "'messages': the last one is the assistant's and calls tools: their results "
                     "must follow");
  }
  return true;
}

/// What the template makes of the messages. `continues`: up to the end of the last one's text.
RenderedChat render_with(const ChatTemplate& tmpl, Json& variables, Json messages, bool continues) {
  variables["add_generation_prompt"] = !continues;
  if (!continues) {
    variables["messages"] = std::move(messages);
    return tmpl.render(to_text(variables));
  }
  const std::string mark = unused_mark("snapkv-continued", to_text(messages) + tmpl.source());
  messages.back()["content"] = messages.back().value("content", "") + mark;
  variables["messages"] = std::move(messages);
  const RenderedChat chat = tmpl.render(to_text(variables));
  const size_t at = chat.text.rfind(mark);
  if (at == std::string::npos) {
    throw FieldError("messages",
                     fmt::format("'messages': the last one must be the user's: the chat template "
                                 "'{}' does not show an answer that has begun",
                                 tmpl.name()));
  }
  return chat_part(chat, 0, at);
}

/// Templates refuse system messages where they have no place for them: these become the user's.
RenderedChat render_in_any_form(const ChatTemplate& tmpl, Json& variables, const Json& messages,
                                bool continues, std::vector<std::string>& warnings) {
  try {
    return render_with(tmpl, variables, messages, continues);
  } catch (const FieldError&) {
    throw;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    for (const bool keeps_first : {true, false}) {
      const Json others = system_as_user(messages, keeps_first);
      if (others == messages) continue;
      try {
        RenderedChat chat = render_with(tmpl, variables, others, continues);
        warnings.emplace_back(
            "messages: the chat template refuses such system messages: they are "
            "part of the user's");
        return chat;
      } catch (const FieldError&) {
        throw;
      } catch (const Error&) {  // the first reason is the one to show
      }
    }
    throw;
  }
}

}  // namespace

const ChatTemplate* template_of(const Conversation& conversation,
                                const ConversationDefaults& defaults) {
  const auto& plain = defaults.plain;
  const auto& with_tools = defaults.with_tools;
  const bool needs_tools =
      has_calls(conversation.messages) && plain && with_tools && !writes_calls(plain->source());
  const auto& tmpl = conversation.tools.offered() || needs_tools ? with_tools : plain;
  return tmpl ? &*tmpl : nullptr;
}

RenderedChat render(const Conversation& conversation, const ConversationDefaults& defaults,
                    std::vector<std::string>& warnings) {
  const bool has_tools = conversation.tools.offered();
  const ChatTemplate* const found = template_of(conversation, defaults);
  SNAPKV_CHECK(found != nullptr);
  const ChatTemplate& tmpl = *found;
  const bool continues = continues_answer(conversation);
  Json variables = defaults.variables;
  for (const auto& [name, value] : conversation.template_variables.items()) variables[name] = value;
  Json messages = conversation.messages;
  if (!defaults.system.empty() && messages[0]["role"] != "system") {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", defaults.system}});
  }
  const bool is_harmony = writes_harmony(tmpl.source());
  if (is_harmony) {
    fit_harmony_messages(messages, warnings);
    fit_harmony_effort(variables);
  }
  const ToolFormat format = tool_format(tmpl.source());
  const bool is_generic = has_tools && format == ToolFormat::none;
  const bool describes = has_tools && (is_generic || !shows_tools(tmpl.source()));
  if (describes) {
    warnings.emplace_back(
        is_generic ? "tools: the chat template writes none: they are text of the messages "
                     "(generic format)"
                   : "tools: the chat template writes none: the system message describes them");
  } else if (has_tools) {
    variables["tools"] =
        is_harmony ? harmony_tools(conversation.tools.list) : conversation.tools.list;
  }
  if (!describes) {
    fit_tools(tmpl, has_tools ? conversation.tools.list : Json::array(), messages, variables);
  }
  const CallSyntax& generic = *find_syntax(ToolFormat::generic);
  const CallSyntax* const syntax = find_syntax(format);
  const bool has_text_calls = has_calls(messages) && format == ToolFormat::none &&
                              (is_generic || !writes_calls(tmpl.source()));
  if (has_text_calls) {
    messages = calls_as_text(messages, generic, /*user_results=*/true);
    if (!is_generic) {
      warnings.emplace_back(
          "tools: the chat template writes none: they are text of the messages (generic format)");
    }
  } else if (has_calls(messages) && !is_harmony) {
    messages =
        fit_calls(tmpl, variables, messages, syntax == nullptr ? generic : *syntax, warnings);
  }
  if (describes) {
    describe_tools(messages, conversation.tools.list, is_generic ? generic : *syntax);
  }
  RenderedChat chat = render_in_any_form(tmpl, variables, messages, continues, warnings);
  if (is_harmony) {
    chat.text += harmony_opening(is_generic ? Tools{} : conversation.tools,
                                 conversation.answers_at_once, continues);
  } else if (conversation.answers_at_once && !continues) {
    chat.text += reasoning_end(chat.text);
  }
  return chat;
}

namespace {

/// As question_part(), with the messages as the template can show them.
RenderedChat question_after(const DocumentForm& form, Json messages, bool answers_at_once) {
  if (!writes_harmony(form.template_source)) return question_part(form, messages);
  std::vector<std::string> warnings;  // nothing is left out
  fit_harmony_messages(messages, warnings);
  RenderedChat chat = question_part(form, messages);
  chat.text += harmony_opening({}, answers_at_once, /*continues=*/false);
  return chat;
}

}  // namespace

RenderedChat render_after(const Document& document, const Conversation& conversation) {
  if (conversation.tools.offered()) {
    throw FieldError("tools", "'tools': what a document's snapshot begins with names none");
  }
  if (continues_answer(conversation)) {
    throw FieldError("messages",
                     "'messages': the last one must be the user's: an answer that has begun can't "
                     "be continued after a document's snapshot");
  }
  DocumentForm form = document.file.form;
  Json messages = conversation.messages;
  if (has_calls(messages) && !writes_calls(form.template_source)) {
    messages = calls_as_text(messages, *find_syntax(ToolFormat::generic), /*user_results=*/true);
  }
  if (conversation.template_variables.empty()) {
    return question_after(form, messages, conversation.answers_at_once);
  }
  const std::string stored = document_part(form, "").text;
  for (const auto& [name, value] : conversation.template_variables.items()) {
    form.variables[name] = value;
  }
  if (writes_harmony(form.template_source)) fit_harmony_effort(form.variables);
  if (document_part(form, "").text != stored) {
    throw FieldError("chat_template_kwargs",
                     "'chat_template_kwargs', 'thinking' or the reasoning effort: they change "
                     "what the template writes before the document, which is stored as it was "
                     "read");
  }
  return question_after(form, messages, conversation.answers_at_once);
}

}  // namespace snapkv::chat
