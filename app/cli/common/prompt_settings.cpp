// SPDX-License-Identifier: MIT
#include "cli/common/prompt_settings.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/common/documents.h"

namespace snapkv::cli {

documents::PagedText without_newlines_at_end(documents::PagedText document) {
  while (document.text.ends_with('\n')) document.text.pop_back();
  return document;
}

PromptText join_documents(std::vector<NamedDocument> documents) {
  PromptText prompt;
  const bool has_names = documents.size() > 1;
  for (NamedDocument& each : documents) {
    const documents::PagedText document = without_newlines_at_end(std::move(each.paged));
    if (!prompt.text.empty()) prompt.text += "\n\n";
    if (has_names) prompt.text += document_opening(each.name);
    const size_t begin = prompt.text.size();
    long_documents::add_pages(prompt.pages, document.pages, begin);
    prompt.text += document.text;
    if (!has_names) break;
    prompt.documents.push_back({begin, prompt.text.size(), each.name});
    prompt.text += kDocumentClosing;
  }
  return prompt;
}

long_documents::DocumentMarks find_documents(std::string_view text) {
  constexpr std::string_view kOpening = "<document title=", kOpeningEnd = "\">\n";
  // a closing tag in a document is no end of it unless the next document follows
  const std::string seam = fmt::format("{}\n\n{}", kDocumentClosing, kOpening);
  long_documents::DocumentMarks marks;
  for (size_t at = 0; at < text.size();) {
    const size_t quote = text.find(kOpeningEnd, at);
    if (!text.substr(at).starts_with(kOpening) || quote == std::string_view::npos) return {};
    const size_t name = at + kOpening.size(), begin = quote + kOpeningEnd.size();
    const auto title = nlohmann::json::parse(text.substr(name, quote + 1 - name), nullptr,
                                             /*allow_exceptions=*/false);
    if (!title.is_string() || !text.ends_with(kDocumentClosing)) return {};
    const size_t end = std::min(text.find(seam, begin), text.size() - kDocumentClosing.size());
    if (end < begin) return {};
    marks.push_back({begin, end, title.get<std::string>()});
    at = end + kDocumentClosing.size();
    if (at < text.size()) at += 2;  // the empty line before the next one
  }
  return marks;
}

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
          .add_option(
              "-f,--file", file_,
              both ? "Read a document: PDF, EPUB, Word (.docx), HTML or text, or a folder of "
                     "them; - for what is piped in. The text of -p follows it"
                   : "Read the prompt from a document: PDF, EPUB, Word (.docx), HTML or "
                     "text, or a folder of them; - for what is piped in")
          ->type_name("FILE");
}

bool PromptSettings::is_given() const {
  if (whole_ || text_option_ == nullptr) return whole_.has_value();
  return text_option_->count() > 0 || file_option_->count() > 0;
}

// What -f names; empty where it is not given. Without the newline at the end of a file.
PromptText PromptSettings::documents() const {
  if (file_option_->count() == 0) return {};
  if (is_folder(file_)) return join_documents(read_documents(file_));
  documents::PagedText document = read_paged_document(file_);
  if (document.text.back() == '\n') document.text.pop_back();
  PromptText prompt;
  long_documents::add_pages(prompt.pages, document.pages, 0);
  prompt.text = std::move(document.text);
  return prompt;
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
  PromptText prompt = documents();
  if (prompt.text.empty() && !from_text) {
    fail(ErrorCode::kUsage, "no prompt: give it as -p TEXT, as -f FILE{}{}",
         parts_ == Parts::one ? "" : ", or as both: a document and a question about it",
         stdin_is_piped() ? "; -f - reads what is piped in" : " (- for what is piped in)");
  }
  if (prompt.text.empty()) return {.text = text_, .document_bytes = text_.size()};
  prompt.document_bytes = prompt.text.size();
  if (from_text) prompt.text += "\n\n" + text_;
  return prompt;
}

}  // namespace snapkv::cli
