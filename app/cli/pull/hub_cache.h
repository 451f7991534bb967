// SPDX-License-Identifier: MIT
// A repository in the cache of Hugging Face's programs: contents by their hash, and for each commit
// a folder of links to them.
//   models--ORG--NAME/blobs/SHA256                 content
//   models--ORG--NAME/blobs/SHA256.incomplete      content that is being fetched
//   models--ORG--NAME/snapshots/COMMIT/FILE        link to ../../blobs/SHA256
//   models--ORG--NAME/refs/main                    the commit of a branch
//   .locks/models--ORG--NAME/SHA256.lock           held while a content is fetched
#pragma once

#include <filesystem>
#include <string>

#include "cli/pull/hub.h"

namespace snapkv::cli {

class HubCache {
 public:
  /// `repo`: "org/name". Makes nothing.
  HubCache(const std::filesystem::path& hub, const std::string& repo);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path blob(const HubFile& file) const;
  std::filesystem::path incomplete(const HubFile& file) const;
  std::filesystem::path lock(const HubFile& file) const;
  std::filesystem::path snapshot(const std::string& commit, const HubFile& file) const;
  /// Whether the whole content is there.
  bool has(const HubFile& file) const;

  /// Throw Error{kRuntime} naming the file.
  void make_folders() const;
  /// Puts a link to the content into the commit's folder, unless it is there.
  void link(const std::string& commit, const HubFile& file) const;
  /// Notes the commit of a branch.
  void set_ref(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path hub_, folder_;
};

}  // namespace snapkv::cli
