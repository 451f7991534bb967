// SPDX-License-Identifier: MIT
#include "chat/call_forms.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace snapkv::chat {
namespace {

constexpr size_t kMostFenceInfo = 16;  // bytes of "json", "tool_call" and the like

using Text = std::string_view;

constexpr std::array<Text, 1> kFenceMarks = {kFence};
constexpr std::array<Text, 2> kHermesMarks = {"<tool_call>", "</tool_call>"};
constexpr std::array<Text, 2> kToolsMarks = {"<tools>", "</tools>"};
constexpr std::array<Text, 2> kResponseMarks = {"<tool_response>", "</tool_response>"};
constexpr std::array<Text, 2> kPhiMarks = {"<|tool_call|>", "<|/tool_call|>"};
constexpr std::array<Text, 1> kMistralMarks = {"[TOOL_CALLS]"};
constexpr std::array<Text, 1> kMistralNameMarks = {"[ARGS]"};
constexpr std::array<Text, 2> kLfmMarks = {"<|tool_call_start|>", "<|tool_call_end|>"};
constexpr std::array<Text, 4> kFunctionMarks = {"<function=", "</function>", "<tool_call>",
                                                "</tool_call>"};
constexpr std::array<Text, 1> kFunctionNameMarks = {">"};
constexpr std::array<Text, 5> kDeepSeekMarks = {"<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>",
                                                "```", "<｜tool▁call▁end｜>",
                                                "<｜tool▁calls▁end｜>"};
constexpr std::array<Text, 2> kDeepSeekNameMarks = {"<｜tool▁sep｜>", "```json"};

constexpr std::array<CallForm, 11> kForms = {{
    {.name = "bare", .opening = "", .begins_line = true},
    {.name = "fenced",
     .opening = kFence,
     .begins_line = true,
     .ends_at_mark = true,
     .marks = kFenceMarks},
    {.name = "tool_call", .opening = "<tool_call>", .marks = kHermesMarks},
    {.name = "tools", .opening = "<tools>", .marks = kToolsMarks},
    {.name = "tool_response", .opening = "<tool_response>", .marks = kResponseMarks},
    {.name = "phi, granite", .opening = "<|tool_call|>", .marks = kPhiMarks},
    {.name = "mistral",
     .opening = "[TOOL_CALLS]",
     .has_names = true,
     .marks = kMistralMarks,
     .name_marks = kMistralNameMarks},
    {.name = "python_tag", .opening = "<|python_tag|>"},
    {.name = "lfm2", .opening = "<|tool_call_start|>", .marks = kLfmMarks},
    {.name = "function",
     .opening = "<function=",
     .has_names = true,
     .marks = kFunctionMarks,
     .name_marks = kFunctionNameMarks},
    {.name = "deepseek",
     .opening = "<｜tool▁calls▁begin｜>",
     .has_names = true,
     .marks = kDeepSeekMarks,
     .name_marks = kDeepSeekNameMarks},
}};

/// The opening of a code block: the fence, a word at most, and the end of the line.
FormOpening fence_opening(const CallForm& form, std::string_view text) {
  using State = FormOpening::State;
  size_t end = kFence.size();
  const auto is_info = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  while (end < text.size() && is_info(text[end])) ++end;
  if (end - kFence.size() > kMostFenceInfo) return {};
  while (end < text.size() && (text[end] == ' ' || text[end] == '\r')) ++end;
  if (end == text.size()) return {State::partial};
  if (text[end] != '\n') return {};
  return {State::whole, &form, end + 1};
}

}  // namespace

std::span<const CallForm> call_forms() { return kForms; }

FormOpening find_opening(std::string_view text, bool begins_line, bool ended) {
  using State = FormOpening::State;
  FormOpening found;
  for (const CallForm& form : kForms) {
    if (form.begins_line && !begins_line) continue;
    if (form.opening.empty()) {
      if (text[0] == '{' || text[0] == '[') found = {State::whole, &form, 0};
    } else if (text.starts_with(form.opening)) {
      return form.opening == kFence ? fence_opening(form, text)
                                    : FormOpening{State::whole, &form, form.opening.size()};
    } else if (form.opening.starts_with(text) && !ended) {
      return {State::partial};
    }
  }
  return found;
}

}  // namespace snapkv::chat
