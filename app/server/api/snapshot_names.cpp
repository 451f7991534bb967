// SPDX-License-Identifier: MIT
#include "server/api/snapshot_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/file_error.h"

namespace snapkv::server {
namespace {

constexpr size_t kMostSnapshotName = 128;

bool is_allowed(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string without_folder(std::string message, const std::string& folder) {
  if (folder.empty()) return message;
  const std::string path = folder.back() == '/' ? folder : folder + "/";
  for (size_t at = message.find(path); at != std::string::npos; at = message.find(path, at)) {
    message.erase(at, path.size());
  }
  return message;
}

void check(const std::string& folder, const std::string& name, const char* field) {
  if (folder.empty()) {
    throw ApiError(501, "this server keeps no files: it was started without --snapshot-dir",
                   "not_supported", field);
  }
  if (name.empty() || name.size() > kMostSnapshotName || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), is_allowed)) {
    throw bad_request(field,
                      fmt::format("'{}' must be 1 to {} of the characters A-Z a-z 0-9 . _ - "
                                  "and not begin with a dot, not {}",
                                  field, kMostSnapshotName, to_text(Json(name.substr(0, 60)))));
  }
}

}  // namespace

std::string snapshot_path(const std::string& folder, const std::string& name, const char* field) {
  check(folder, name, field);
  return folder + "/" + name + (name.ends_with(kSnapshotEnding) ? "" : kSnapshotEnding);
}

std::string snapshot_name(const std::string& name) {
  const std::string_view ending = kSnapshotEnding;
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

ApiError snapshot_error(const Error& error, const std::string& folder) {
  const Error named(error.code(), without_folder(error.what(), folder));
  const std::string text = file_error_text(named);
  if (error.code() == ErrorCode::kBadModel) return ApiError(400, text, "bad_snapshot");
  return api_error(Error(error.code(), text));
}

std::string slot_path(const std::string& folder, const std::string& name, const char* field) {
  check(folder, name, field);
  if (name.ends_with(kSnapshotEnding)) {
    throw bad_request(field, fmt::format("'{}': names that end in {} are those of snapshots", field,
                                         kSnapshotEnding));
  }
  return folder + "/" + name;
}

}  // namespace snapkv::server
