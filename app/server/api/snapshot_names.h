// SPDX-License-Identifier: MIT
// Names of files below --snapshot-dir, the one folder that clients reach. Used wherever a request
// names a snapshot or a slot's file.
#pragma once

#include <string>

namespace snapkv::server {

inline constexpr const char* kSnapshotEnding = ".kv";

/// The file of a snapshot, whose name may have its ending or not. Throws ApiError (400, naming
/// `field`) for a name with other characters than [A-Za-z0-9._-], with a leading dot or longer than
/// 128, and (501) where the server has no such folder.
std::string snapshot_path(const std::string& folder, const std::string& name, const char* field);
/// The snapshot's name without the file's ending, as lists have it.
std::string snapshot_name(const std::string& name);
/// A message without the folder's path, which is the server's own affair.
std::string without_folder(std::string message, const std::string& folder);
/// The file of a slot. Its name must not be a snapshot's.
std::string slot_path(const std::string& folder, const std::string& name, const char* field);

}  // namespace snapkv::server
