// SPDX-License-Identifier: MIT
// Documents that are read once and asked about later: how documents and questions become prompts,
// and the files that hold them, compressed (Session::save) or with every row (KvPrefix::save).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "chat/json.h"
#include "chat/page_mark.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"
#include "snapkv/prefill.h"

namespace snapkv::chat {

/// How a document and a question become a prompt. The document begins the user's first message,
/// through a chat template, or it is plain text that the question continues.
struct DocumentForm {
  std::string template_source;  ///< empty: plain text
  std::string template_name;
  Json variables = Json::object();  ///< of the template, including bos_token and eos_token
  std::string system;               ///< the system message; empty: none
};

/// Returns the prompt up to the end of the document. Throws Error as ChatTemplate::render().
RenderedChat document_part(const DocumentForm& form, const std::string& text);
/// Returns the rest of the prompt: `messages` begin with the user's first message, the question.
/// Throws kUsage if they do not, or if more than one message is to continue plain text.
RenderedChat question_part(const DocumentForm& form, const Json& messages);

/// Returns the text of a document whose prompt, document_part(), has these tokens. Throws kBadModel
/// if they do not begin as the form does.
std::string document_text(const Model& model, const DocumentForm& form,
                          std::span<const int32_t> tokens);

/// Default limit, in bytes, for storing a document with every row: it then answers as well as the
/// full cache (docs/quality.md).
inline constexpr uint64_t kFullLimit = uint64_t{1} << 30;

/// The policy that chooses rows of a larger one, and wherever the question is not known yet: the
/// best one with models that answer (docs/quality.md).
inline constexpr const char* kUnaskedPolicy = "kvzip";
/// Whether a document of `n_tokens` takes at most `limit` bytes with every row. False on a device,
/// where documents are always compressed.
bool stores_every_row(const Model& model, int64_t n_tokens, uint64_t limit);

/// A file that holds a document.
struct DocumentFile {
  bool keeps_all = false;  ///< has every row; each question makes its own selection
  uint64_t fingerprint = 0;
  std::string model;       ///< the model's name, for people
  std::string model_path;  ///< path of the model's file; empty: unknown
  int64_t n_tokens = 0;
  SessionOptions options = {};  ///< the file is bound to these, if compressed
  DocumentForm form = {};
  PageMarks pages = {};  ///< of the document's text
  std::string notes;     ///< arbitrary text from whoever made the file
};

/// Returns the text stored in a document's file besides the rows.
std::string document_notes(const DocumentForm& form, const std::string& model_path,
                           const std::string& notes, const PageMarks& pages = {});

/// An open document file. Questions continue it. Immutable.
struct Document {
  DocumentFile file;
  std::shared_ptr<const SavedSessionFile> compressed;  ///< null if the file has every row
  std::shared_ptr<const KvPrefix> rows;                ///< its rows, once the model is known
};
/// `model`: null if not yet known; a document with every row then has no `rows`. Throws kRuntime
/// when the file can't be read, kBadModel when it holds no document or is damaged, kUsage when it
/// has every row of another model.
Document open_document(const std::string& path, const std::shared_ptr<const Model>& model);
/// The same for a file's content in memory, which is read where it is.
Document open_document(const LentFile& file, const std::shared_ptr<const Model>& model);

}  // namespace snapkv::chat
