// SPDX-License-Identifier: MIT
#include "cli/common/prompt_settings.h"

#include <fmt/core.h>

#include "base/error.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {

void PromptSettings::add_options(CLI::App& command) {
  text_option_ = command.add_option("-p,--prompt", text_, "The prompt")->type_name("TEXT");
  file_option_ = command
                     .add_option("-f,--file", file_,
                                 "Read the prompt from a file, - for stdin; one newline at its "
                                 "end is dropped")
                     ->type_name("FILE");
}

bool PromptSettings::is_given() const {
  return text_option_->count() > 0 || file_option_->count() > 0;
}

std::string PromptSettings::read() const {
  const bool from_text = text_option_->count() > 0, from_file = file_option_->count() > 0;
  if (from_text == from_file) {
    fail(ErrorCode::kUsage, "{}: give the prompt either as -p TEXT or as -f FILE (- for stdin)",
         from_text ? "two prompts" : "no prompt");
  }
  std::string text = from_text ? text_ : read_text(file_);
  if (from_file && !text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) {
    fail(ErrorCode::kUsage, "the prompt is empty: {}",
         from_text ? "--prompt has no text" : fmt::format("there is no text in {}", file_));
  }
  return text;
}

}  // namespace snapkv::cli
