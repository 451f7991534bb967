// SPDX-License-Identifier: MIT
// DocumentRows: what a command that reads a prompt about documents asks the folder of stored
// documents (stored_documents.h) for, and what it leaves there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"
#include "cli/document/stored_documents.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {

struct StoreSettings {
  bool off = false;
  uint64_t limit = uint64_t{4} << 30;  // bytes of the whole folder
};

/// What notes call several documents: their names without folders.
std::string names_of(const std::vector<std::string>& paths);

/// Adds --no-store and --store-limit.
void add_store_options(CLI::App& app, StoreSettings& settings);

/// How many of the prompt's first tokens can be taken from `rows`: the policy's window must be
/// read, and a few are computed as fast as they are copied. 0: none.
int64_t usable_rows(const KvPrefix& rows, std::span<const int32_t> prompt, const PolicyConfig& kv);

/// Whether an error of reading a prompt after stored rows is one of their file: damage, or a
/// context for which the model rotates keys otherwise.
bool is_of_file(const Error& error);

class DocumentRows {
 public:
  /// Shows a line for the user.
  using NoteFn = std::function<void(const std::string& text)>;

  /// `name`: what notes call the documents. `model_options`: those that the model was loaded with;
  /// `session`: those of the sessions that read.
  DocumentRows(const StoreSettings& settings, std::shared_ptr<const Model> model,
               const ModelOptions& model_options, const SessionOptions& session, std::string name,
               NoteFn note);

  /// Names the documents by the tokens of a prompt that holds nothing else. Until this has been
  /// called, and for documents that are read as fast as they are loaded, the functions below find
  /// and store nothing.
  void set_document(std::vector<int32_t> tokens);
  /// The stored rows; null where there are none. Says why a file that is there can't be used.
  std::shared_ptr<const KvPrefix> load();
  /// Says that the rows of `n_tokens` came from the store.
  void note_use(int64_t n_tokens) const;
  /// Removes a stored document that turned out to be damaged while it was used, and says so.
  void drop(const Error& error);
  /// Whether the rows of a prompt of `n_prompt` tokens should be kept for save(). Says what stands
  /// in the way of a document that is worth it.
  bool wants_rows(int64_t n_prompt, const SessionOptions& options);
  /// Stores the document's part of the rows of a prompt, and says so. A failure is a note: the
  /// answer needs no file.
  void save(const KvPrefix& rows);

 private:
  bool is_usable() const { return path_.has_value(); }
  void note(const std::string& text) const;

  StoreSettings settings_;
  std::shared_ptr<const Model> model_;
  uint64_t options_key_;
  std::string name_;
  NoteFn note_;
  StoredDocuments folder_;
  std::vector<int32_t> document_;
  std::optional<std::string> path_;  // of the document's file
};

/// Reads a prompt that begins with documents into a session that has seen nothing: the documents'
/// rows come from the store where it has them, and go there where it has not. Returns how many came
/// from there.
int64_t read_with_store(Session& session, std::span<const int32_t> prompt, DocumentRows& store,
                        const ProgressFn& progress);

}  // namespace snapkv::cli
