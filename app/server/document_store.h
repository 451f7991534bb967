// SPDX-License-Identifier: MIT
// DocumentStore: the open documents of the server's snapshots. A file is checked when a request
// first names it; later requests reuse the open document, unless the file has changed. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "snapkv/engine.h"
#include "snapkv/lent_file.h"

namespace snapkv::chat {
struct Document;  // chat/document.h
}

namespace snapkv::server {

using chat::Document;

class DocumentStore {
 public:
  /// Limit on open files, not counting those that requests still use; the least recently used is
  /// closed first.
  static constexpr size_t kMostFiles = 64;

  explicit DocumentStore(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  /// Throws as open_document().
  std::shared_ptr<const Document> open(const std::string& path);
  /// The document of a file that is open and has not changed; else null.
  std::shared_ptr<const Document> find(const std::string& path);
  /// Closes a file that is being removed or replaced.
  void forget(const std::string& path);
  size_t size() const;

  /// Makes a cache in memory known by a name: a document, or a prompt that was read for this server
  /// (read_prompt.h). It is read where it is, and given back when it has been withdrawn and no
  /// request uses it any more. A name that is known gets the new one. Throws as open_document(),
  /// kUsage for a prompt of another model.
  void lend(const std::string& name, const LentFile& file);
  /// Returns whether the name was known.
  bool withdraw(const std::string& name);
  /// Null: no document, or no prompt, has this name.
  std::shared_ptr<const Document> lent_document(const std::string& name) const;
  std::shared_ptr<const SavedSessionFile> lent_prompt(const std::string& name) const;

 private:
  /// Identifies a file and its state, so that a file which was replaced or written to is noticed.
  struct Identity {
    uint64_t device = 0, inode = 0;
    int64_t bytes = -1, modified_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Entry {
    std::string path;
    Identity identity;
    std::shared_ptr<const Document> document;
  };
  static Identity identity_of(const std::string& path);
  struct Lent {
    std::shared_ptr<const Document> document;
    std::shared_ptr<const SavedSessionFile> prompt;
  };
  Lent find_lent(const std::string& name) const;
  /// Needs mutex_.
  std::list<Entry>::iterator find_entry(const std::string& path, const Identity& identity);
  /// Drops the entries whose files were replaced or removed: open ones still take up disk space.
  void drop_changed();

  const std::shared_ptr<const Model> model_;
  mutable std::mutex mutex_;
  std::map<std::string, Lent> lent_;  // guarded by mutex_
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
};

}  // namespace snapkv::server
