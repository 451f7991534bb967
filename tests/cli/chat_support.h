// SPDX-License-Identifier: MIT
// A chat with the needle model, which answers one kind of question and knows no chat format: a
// template that writes messages one after the other makes a conversation of questions. Used by the
// tests of the chat command.
#pragma once

#include <string>
#include <vector>

#include "run_process.h"

namespace snapkv::test {

/// The messages, a newline between them, and `at_end` where the answer begins.
std::string plain_template(const std::string& at_end = "");
/// The arguments of a greedy chat with that template and answers of 7 tokens; `more` after them,
/// with a -n of their own if they have one.
std::vector<std::string> chat_args(const std::vector<std::string>& more = {},
                                   const std::string& template_text = plain_template());
/// A text that says "The secret number of Rome is 48213." among others, as a file.
std::string facts_file();
/// The question for the number, which the model answers with " 48213.", as a line.
std::string question();

}  // namespace snapkv::test
