// SPDX-License-Identifier: MIT
// HarmonyText: gpt-oss's answers (harmony.h) as the text that other models write: reasoning between
// <think> and </think>, then the answer. For terminals and pipes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "chat/harmony.h"

namespace snapkv::chat {

/// The header in which a prompt ends, or that it begins for the answer; empty: the answer has
/// another form.
std::string harmony_header(std::string_view prompt);

class HarmonyText {
 public:
  /// Called with text that is certain; never empty. The tags are part of the reasoning.
  using Show = std::function<void(std::string_view text, bool is_reasoning)>;

  /// `header`: what harmony_header() finds, or nothing.
  HarmonyText(std::string_view header, Show show);
  HarmonyText(const HarmonyText&) = delete;
  HarmonyText& operator=(const HarmonyText&) = delete;

  void push(std::string_view text) { stream_.push(text); }
  /// Shows the text that is held back.
  void finish();

 private:
  void close_reasoning();

  const Show show_;
  bool in_reasoning_ = false;
  HarmonyStream stream_;
};

/// A whole answer as HarmonyText shows it, and without its reasoning.
std::string harmony_shown(std::string_view header, std::string_view answer);
std::string harmony_answer(std::string_view header, std::string_view answer);

}  // namespace snapkv::chat
