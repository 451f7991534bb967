// SPDX-License-Identifier: MIT
// Which authorities may vouch for a server (TLS). A program that brings its own libcurl runs on systems
// that keep their certificates in other places than the one it was built on.
#pragma once

#include <string>

namespace snapkv::cli {

/// The file of the authorities to trust: the one that SSL_CERT_FILE names; else none if libcurl knows a
/// file or folder that is there; else the first of those that Linux systems use. Empty: none.
/// Throws Error{kUsage} if SSL_CERT_FILE can't be read.
std::string certificate_file();

/// What a user can do about a server whose certificate is not trusted.
std::string certificate_advice(const std::string& file);

}  // namespace snapkv::cli
