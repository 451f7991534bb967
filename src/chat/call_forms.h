// SPDX-License-Identifier: MIT
// The forms in which models write calls, whatever their template asks them for; docs/server.md has
// the table. In each of them a call is one of
//   {"name": ..., "arguments": {...}}, or a list of these    JSON (found_call.h)
//   [NAME(KEY=VALUE, ...), ...]                              Python (python_calls.h)
//   NAME {...}, with marks between                           where the form has names
//   NAME> <parameter=KEY> VALUE </parameter> ...             Qwen3-Coder's (parameter_scanner.h)
#pragma once

#include <span>
#include <string_view>

namespace snapkv::chat {

/// Begins and ends a code block.
inline constexpr std::string_view kFence = "```";

struct CallForm {
  std::string_view name;     ///< for tests and messages
  std::string_view opening;  ///< empty: the call itself begins
  bool begins_line = false;  ///< the opening counts only at the beginning of a line
  bool has_names = false;    ///< a call's name stands before its arguments
  bool ends_at_mark = false;  ///< the first mark after a call is the form's end
  /// Marks that mean nothing: before, between and after calls, and between a name and arguments.
  std::span<const std::string_view> marks = {}, name_marks = {};
};

std::span<const CallForm> call_forms();

/// Where a form may begin in a text.
struct FormOpening {
  enum class State { none, partial, whole };
  State state = State::none;
  const CallForm* form = nullptr;  ///< with State::whole
  size_t size = 0;                 ///< bytes of the opening
};

/// Looks for the form that begins with the first byte of `text`. `begins_line`: only white space
/// stands before it in its line. `ended`: no more text follows.
FormOpening find_opening(std::string_view text, bool begins_line, bool ended);

}  // namespace snapkv::chat
