// SPDX-License-Identifier: MIT
#include "cli/pull/hub_cache.h"

#include <system_error>

#include "base/error.h"
#include "base/write_file.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail(ErrorCode::kRuntime, "{}: can't make the folder: {}", folder.string(), error.message());
  }
}

}  // namespace

HubCache::HubCache(const fs::path& hub, const std::string& repo) : hub_(hub) {
  std::string name = "models--" + repo;
  name.replace(name.find('/'), 1, "--");
  folder_ = hub_ / name;
}

fs::path HubCache::blob(const HubFile& file) const { return folder_ / "blobs" / file.sha256; }

fs::path HubCache::incomplete(const HubFile& file) const {
  return folder_ / "blobs" / (file.sha256 + ".incomplete");
}

fs::path HubCache::lock(const HubFile& file) const {
  return hub_ / ".locks" / folder_.filename() / (file.sha256 + ".lock");
}

fs::path HubCache::snapshot(const std::string& commit, const HubFile& file) const {
  return folder_ / "snapshots" / commit / fs::path(file.path);
}

bool HubCache::has(const HubFile& file) const {
  std::error_code error;
  return fs::file_size(blob(file), error) == file.bytes && !error;
}

void HubCache::make_folders() const { make_folder(folder_ / "blobs"); }

void HubCache::link(const std::string& commit, const HubFile& file) const {
  const fs::path path = snapshot(commit, file);
  make_folder(path.parent_path());
  std::error_code error;
  if (fs::exists(path, error)) return;
  fs::remove(path, error);  // a link to nothing
  fs::create_symlink(blob(file).lexically_relative(path.parent_path()), path, error);
  if (error && error != std::errc::file_exists) {
    fail(ErrorCode::kRuntime, "{}: can't make the link: {}", path.string(), error.message());
  }
}

void HubCache::set_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const fs::path path = folder_ / "refs" / fs::path(revision);
  make_folder(path.parent_path());
  write_file(path.string(), commit);
}

}  // namespace snapkv::cli
