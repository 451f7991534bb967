// SPDX-License-Identifier: MIT
// StoredDocuments: the folder in which `snapkv run` keeps the rows of documents that it has read,
// so that a further question about one need not read it again. Its size is bounded: the documents
// that were used least recently leave first. `snapkv documents` lists and clears it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace snapkv::cli {

struct StoredDocument {
  std::string path;
  std::string name;     ///< the files' names as they were given, without folders
  std::string model;    ///< the model's name
  std::string problem;  ///< why it can't be used; empty: it can
  int64_t n_tokens = 0;
  uint64_t bytes = 0;
  int64_t used = 0;  ///< seconds since 1970
};

class StoredDocuments {
 public:
  /// $XDG_CACHE_HOME/snapkv/documents or ~/.cache/snapkv/documents; empty without a home.
  static std::string default_folder();

  explicit StoredDocuments(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string path_of(uint64_t key) const;
  /// The most recently used first; empty where there is no folder.
  std::vector<StoredDocument> list() const;
  /// Makes the folder, for its owner alone, and room in it for `bytes` within `limit`, by removing
  /// documents. Returns false where that many are beyond the limit, or would leave the disk full.
  /// Throws kRuntime where there can be no folder.
  bool make_room(uint64_t bytes, uint64_t limit) const;
  /// Notes that a document has been used just now.
  static void touch(const std::string& path);
  /// Removes a document; true if it was there.
  static bool remove(const std::string& path);
  /// Removes what killed processes have left behind.
  void remove_abandoned() const;

 private:
  std::string folder_;
};

/// What a stored document says of itself, in the notes of its file.
std::string stored_notes(const std::string& name);

}  // namespace snapkv::cli
