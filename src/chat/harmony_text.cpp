// SPDX-License-Identifier: MIT
#include "chat/harmony_text.h"

#include <utility>

namespace snapkv::chat {
namespace {

/// What HarmonyText shows of a whole answer.
std::string parts_of(std::string_view header, std::string_view answer, bool with_reasoning) {
  std::string all;
  HarmonyText text(header, [&](std::string_view part, bool is_reasoning) {
    if (with_reasoning || !is_reasoning) all += part;
  });
  text.push(answer);
  text.finish();
  return all;
}

}  // namespace

std::string harmony_header(std::string_view prompt) {
  const std::string_view last = harmony_message(prompt);
  constexpr std::string_view kAnswer = "<|start|>assistant", kContent = "<|message|>";
  const bool has_begun =
      last.starts_with(kAnswer) && last.ends_with(kContent) && prompt.ends_with(last);
  return std::string(has_begun || last == kAnswer ? last : "");
}

HarmonyText::HarmonyText(std::string_view header, Show show)
    : show_(std::move(show)),
      stream_(header, {},
              {.text =
                   [this](std::string_view text) {
                     close_reasoning();
                     show_(text, false);
                   },
               .reasoning =
                   [this](std::string_view text) {
                     if (!std::exchange(in_reasoning_, true)) show_("<think>\n", true);
                     show_(text, true);
                   },
               .begin = {},  // without functions there are no calls
               .arguments = {}}) {}

void HarmonyText::finish() {
  stream_.finish();
  close_reasoning();
}

void HarmonyText::close_reasoning() {
  if (std::exchange(in_reasoning_, false)) show_("\n</think>\n\n", true);
}

std::string harmony_shown(std::string_view header, std::string_view answer) {
  return parts_of(header, answer, true);
}

std::string harmony_answer(std::string_view header, std::string_view answer) {
  return parts_of(header, answer, false);
}

}  // namespace snapkv::chat
