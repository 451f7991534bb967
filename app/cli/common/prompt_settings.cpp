// SPDX-License-Identifier: MIT
#include "cli/common/prompt_settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/common/documents.h"

namespace snapkv::cli {

void PromptSettings::add_options(CLI::App& command, Parts parts) {
  parts_ = parts;
  const bool both = parts == Parts::document_and_question;
  text_option_ =
      command
          .add_option("-p,--prompt", text_,
                      both ? "The prompt, or the question about the document of -f" : "The prompt")
          ->type_name("TEXT");
  file_option_ =
      command
          .add_option("-f,--file", file_,
                      both
                          ? "Read a document: PDF, EPUB, Word (.docx), HTML or text; - for what is "
                            "piped in. The text of -p follows it"
                          : "Read the prompt from a document: PDF, EPUB, Word (.docx), HTML or "
                            "text; - for what is piped in")
          ->type_name("FILE");
}

bool PromptSettings::is_given() const {
  if (whole_ || text_option_ == nullptr) return whole_.has_value();
  return text_option_->count() > 0 || file_option_->count() > 0;
}

// Without the newline at its end; empty where there is none.
documents::PagedText PromptSettings::document() const {
  if (file_option_->count() == 0) return {};
  documents::PagedText document = read_paged_document(file_);
  if (document.text.back() == '\n') document.text.pop_back();
  return document;
}

bool PromptSettings::leaves_stdin() const {
  return !whole_ && !(file_option_->count() > 0 && file_ == "-") && stdin_has_text();
}

PromptText PromptSettings::read_parts() const {
  if (whole_) return *whole_;
  const bool from_text = text_option_->count() > 0, from_file = file_option_->count() > 0;
  if (from_text && from_file && parts_ == Parts::one) {
    fail(ErrorCode::kUsage, "two prompts: give the prompt either as -p TEXT or as -f FILE");
  }
  if (from_text && text_.empty()) {
    fail(ErrorCode::kUsage, "the prompt is empty: --prompt has no text");
  }
  const documents::PagedText paged = document();
  const std::string& text = paged.text;
  if (text.empty() && !from_text) {
    fail(ErrorCode::kUsage, "no prompt: give it as -p TEXT, as -f FILE{}{}",
         parts_ == Parts::one ? "" : ", or as both: a document and a question about it",
         stdin_is_piped() ? "; -f - reads what is piped in" : " (- for what is piped in)");
  }
  if (text.empty()) return {.text = text_, .document_bytes = text_.size()};
  PromptText prompt = {.text = from_text ? text + "\n\n" + text_ : text,
                       .document_bytes = text.size()};
  long_documents::add_pages(prompt.pages, paged.pages, 0);
  return prompt;
}

}  // namespace snapkv::cli
