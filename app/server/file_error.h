// SPDX-License-Identifier: MIT
// What clients are told about the server's files: their names, but not where they are, nor what a
// file that is not a snapshot holds.
#pragma once

#include <string>

#include "snapkv/error.h"

namespace snapkv::server {

/// Leaves the last part of every path in a message about files: "'/srv/a.kv'" becomes "'a.kv'".
std::string without_paths(const std::string& message);

/// The message of an error about a file: without paths and, if the file is damaged or of another
/// kind, without the bytes in it that the message quotes.
std::string file_error_text(const Error& error);

}  // namespace snapkv::server
