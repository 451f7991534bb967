// SPDX-License-Identifier: MIT
// DocumentStore: the documents of the server's snapshots that are open. A file is checked when it
// is first named; requests that name it again begin with what is there, unless it has changed. Used
// by the handlers of the API and by the scheduler, in any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "server/document.h"

namespace snapkv::server {

class DocumentStore {
 public:
  /// Files that are kept open, but for those that requests still use; the least recently used goes
  /// first.
  static constexpr size_t kMostFiles = 64;

  explicit DocumentStore(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  /// Throws as open_document().
  std::shared_ptr<const Document> open(const std::string& path);
  /// Lets go of a file that is removed or replaced.
  void forget(const std::string& path);
  size_t size() const;

 private:
  /// What tells a file, and a file that was written to, from another.
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
  /// Those whose files are gone or others keep room on the disk.
  void drop_changed();

  const std::shared_ptr<const Model> model_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
};

}  // namespace snapkv::server
