// SPDX-License-Identifier: MIT
#include "cli/document/stored_documents.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "eval/common/json_field.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStoredKind = "snapkv-stored-document";
constexpr const char* kCacheEnding = ".kv";

std::string text_of(const Json& notes, const char* field) {
  const bool is_text = notes.is_object() && notes.contains(field) && notes[field].is_string();
  return is_text ? notes[field].get<std::string>() : "";
}

struct FileUse {
  fs::path path;
  uint64_t bytes = 0;
  timespec used = {};
};

/// Sets when a file was used, and not when it was changed: by that, those who have mapped it notice
/// that it is another one.
void set_used(const std::string& path, timespec used) {
  const timespec times[2] = {used, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return;  // it only leaves a little earlier
}

StoredDocument describe_stored(const FileUse& file) {
  StoredDocument document;
  document.path = file.path.string();
  document.bytes = file.bytes;
  document.used = file.used.tv_sec;
  try {
    const SavedPrefix saved = describe_prefix(document.path);
    document.model = saved.model;
    document.n_tokens = std::ssize(saved.tokens);
    const Json notes = eval::parse_json(saved.notes);
    document.name = text_of(notes, "name");
    if (text_of(notes, "kind") != kStoredKind) document.problem = "no document that run has stored";
  } catch (const Error& e) {
    document.problem = e.what();
  }
  set_used(document.path, file.used);  // to look at it is not to use it
  return document;
}

/// The files that run may remove: those with names as path_of() makes them.
bool has_our_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  return path.extension() == kCacheEnding && stem.size() == 16 &&
         stem.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The folder's documents, the most recently used first.
std::vector<FileUse> files_in(const std::string& folder) {
  std::vector<FileUse> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!has_our_name(at->path())) continue;
    struct stat file = {};
    if (stat(at->path().c_str(), &file) != 0) continue;  // another process has removed it
    files.push_back({at->path(), static_cast<uint64_t>(file.st_size), file.st_atim});
  }
  std::sort(files.begin(), files.end(), [](const FileUse& a, const FileUse& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) > std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return files;
}

}  // namespace

std::string StoredDocuments::default_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/snapkv/documents";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return std::string(home) + "/.cache/snapkv/documents";
}

std::string StoredDocuments::path_of(uint64_t key) const {
  return fmt::format("{}/{:016x}{}", folder_, key, kCacheEnding);
}

std::vector<StoredDocument> StoredDocuments::list() const {
  std::vector<StoredDocument> all;
  for (const FileUse& file : files_in(folder_)) all.push_back(describe_stored(file));
  return all;
}

bool StoredDocuments::make_room(uint64_t bytes, uint64_t limit) const {
  if (bytes > limit) return false;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) fs::permissions(folder_, fs::perms::owner_all, error);
  if (error) fail(ErrorCode::kRuntime, "can't make the folder {}: {}", folder_, error.message());
  std::vector<FileUse> files = files_in(folder_);
  uint64_t total = bytes;
  for (const FileUse& file : files) total += file.bytes;
  for (; total > limit && !files.empty(); files.pop_back()) {
    if (fs::remove(files.back().path, error)) total -= files.back().bytes;
  }
  const fs::space_info disk = fs::space(folder_, error);
  return error || disk.available / 2 >= bytes;
}

void StoredDocuments::touch(const std::string& path) {
  set_used(path, {.tv_sec = 0, .tv_nsec = UTIME_NOW});
}

bool StoredDocuments::remove(const std::string& path) {
  std::error_code error;
  return fs::remove(path, error);
}

void StoredDocuments::remove_abandoned() const {
  std::error_code error;
  if (fs::is_directory(folder_, error)) remove_abandoned_files(folder_);
}

std::string stored_notes(const std::string& name) {
  return Json{{"kind", kStoredKind}, {"name", name}}.dump(-1, ' ', false,
                                                          Json::error_handler_t::replace);
}

}  // namespace snapkv::cli
