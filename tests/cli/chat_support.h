// SPDX-License-Identifier: MIT
// A chat with the needle model. The model answers one kind of question and knows no chat format;
// with a template that writes messages one after the other, a conversation is a list of questions.
#pragma once

#include <string>
#include <vector>

#include "run_process.h"

namespace snapkv::test {

/// A template that writes the messages with a newline between them, and `at_end` before the answer.
std::string plain_template(const std::string& at_end = "");
/// The arguments of a greedy chat with that template, and answers of 7 tokens unless `more`, which
/// follows them, has its own -n.
std::vector<std::string> chat_args(const std::vector<std::string>& more = {},
                                   const std::string& template_text = plain_template());
/// Writes a file of text that contains "The secret number of Rome is 48213." and returns its path.
std::string facts_file();
/// A line that asks for the number; the model answers " 48213.".
std::string question();

}  // namespace snapkv::test
