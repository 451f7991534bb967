// SPDX-License-Identifier: MIT
// Documents that are read once and asked about later: how document and questions are written, and
// the files that hold them, compressed (Session::save) or with every row (KvPrefix::save). Used by
// the commands compress and ask, and by the server's snapshots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/json.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

/// How a document and what follows it become a prompt: the document begins the first message of the
/// user, through a chat template, or is plain text that the question continues.
struct DocumentForm {
  std::string template_source;  ///< empty: plain text
  std::string template_name;
  Json variables = Json::object();  ///< of the template, bos_token and eos_token among them
  std::string system;               ///< the system message; empty: none
};

/// The prompt up to the end of the document. Throws Error as ChatTemplate::render().
RenderedChat document_part(const DocumentForm& form, const std::string& text);
/// The rest of it: `messages` begin with the user's first message, which is the question. Throws
/// kUsage where they do not, or where plain text is to be continued by more than one message.
RenderedChat question_part(const DocumentForm& form, const Json& messages);

/// Level of zstd where a document is to be stored with it and none is named: that of its makers.
inline constexpr int kZstdLevel = 3;

/// Bytes up to which a document is stored with every row where nobody says what is kept of it: it
/// then answers as well as the full cache (docs/quality.md).
inline constexpr uint64_t kFullLimit = uint64_t{1} << 30;
/// Whether a document of `n_tokens` takes no more than `limit` bytes with every row. Not on a
/// device, whose documents are compressed.
bool stores_every_row(const Model& model, int64_t n_tokens, uint64_t limit);

/// A file that holds a document.
struct DocumentFile {
  bool keeps_all = false;  ///< every row, from which each question selects
  uint64_t fingerprint = 0;
  std::string model;       ///< its name, for people
  std::string model_path;  ///< where its file was; empty: not known
  int64_t n_tokens = 0;
  SessionOptions options = {};  ///< of compressed ones: what the file is bound to
  DocumentForm form = {};
  std::string notes;  ///< whatever the maker wanted to keep
};

/// What goes into a document's file beside the rows.
std::string document_notes(const DocumentForm& form, const std::string& model_path,
                           const std::string& notes);

/// A document's file that is open: questions begin with it. Immutable.
struct Document {
  DocumentFile file;
  std::shared_ptr<const SavedSessionFile> compressed;  ///< null where every row is there
  std::shared_ptr<const KvPrefix> rows;                ///< else this, once the model is known
};
/// `model`: null where it is not known yet; a document with every row then has no `rows`. Throws
/// kRuntime when the file can't be read, kBadModel when it holds no document or is damaged, kUsage
/// where it has every row of another model.
Document open_document(const std::string& path, const std::shared_ptr<const Model>& model);

}  // namespace snapkv::server
