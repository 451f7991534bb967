// SPDX-License-Identifier: MIT
// The prompt of a command: -p TEXT, -f FILE (or a folder; - for what is piped in), or a document
// with a question. Nothing else reads stdin, so that a loop which reads its own lines from there
// keeps them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/documents.h"
#include "documents/document_reader.h"
#include "long_documents/pages.h"

namespace snapkv::cli {

/// A prompt that begins with a document, or is one as a whole; a question may follow.
struct PromptText {
  std::string text;
  size_t document_bytes = 0;
  long_documents::PageMarks pages = {};          ///< of the document
  long_documents::DocumentMarks documents = {};  ///< where it is several
};

documents::PagedText without_newlines_at_end(documents::PagedText document);

/// What is read before a question. Several documents get their names.
PromptText join_documents(std::vector<NamedDocument> documents);

/// The documents in a text that join_documents() made of several; of other texts none.
long_documents::DocumentMarks find_documents(std::string_view text);

class PromptSettings {
 public:
  enum class Parts {
    one,                    ///< -p TEXT or -f FILE, not both
    document_and_question,  ///< both: the document first, then the text
  };

  void add_options(CLI::App& command, Parts parts);
  bool is_given() const;
  /// Takes this for the prompt, instead of what options say.
  void set_text(PromptText text) { whole_ = std::move(text); }
  /// The text. Throws kUsage unless it is given and not empty, and as read_documents() for a
  /// file.
  std::string read() const { return read_parts().text; }
  PromptText read_parts() const;
  /// Whether something is piped in that this prompt does not read.
  bool leaves_stdin() const;

 private:
  PromptText documents() const;

  Parts parts_ = Parts::one;
  std::optional<PromptText> whole_;
  std::string text_;
  std::string file_;
  CLI::Option* text_option_ = nullptr;
  CLI::Option* file_option_ = nullptr;
};

}  // namespace snapkv::cli
