// SPDX-License-Identifier: MIT
// Names of files below --snapshot-dir, the only folder that clients can reach.
#pragma once

#include <string>

#include "server/api/api_error.h"

namespace snapkv::server {

inline constexpr const char* kSnapshotEnding = ".kv";

/// Returns the file of a snapshot; its name may have the file's ending or not. Throws ApiError:
/// 400, naming `field`, for a name with characters other than [A-Za-z0-9._-], with a leading dot or
/// longer than 128; 501 if the server has no such folder.
std::string snapshot_path(const std::string& folder, const std::string& name, const char* field);
/// Returns the snapshot's name without the file's ending, as in lists.
std::string snapshot_name(const std::string& name);
/// The answer to an error about a file of this folder: 400 if the file is damaged or no snapshot.
/// Its message has neither paths nor bytes of the file.
ApiError snapshot_error(const Error& error, const std::string& folder);
/// Returns the file of a slot, whose name must not be a snapshot's.
std::string slot_path(const std::string& folder, const std::string& name, const char* field);

}  // namespace snapkv::server
