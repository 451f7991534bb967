// SPDX-License-Identifier: MIT
// Access: decides who may use the server. It checks API keys, and for pages in browsers that they
// come from this machine or the server itself.
#pragma once

#include <httplib.h>

#include <array>
#include <string>
#include <vector>

namespace snapkv::server {

class Access {
 public:
  /// `keys`: if empty, no key is required. `only_local`: the server listens on a loopback address.
  Access(const std::vector<std::string>& keys, bool only_local);

  /// Throws ApiError: 401 without a valid key, 403 for pages from elsewhere and, on a loopback
  /// address without keys, for requests by another name than localhost. Adds the headers that let a
  /// local page read the answer.
  void check(const httplib::Request& request, httplib::Response& response) const;

  /// Answers a browser's preflight for a page that check() has let through. The page may send the
  /// headers it asks for, since clients have many of their own.
  static void answer_preflight(const httplib::Request& request, httplib::Response& response);

 private:
  using Digest = std::array<unsigned char, 32>;

  bool is_key(const std::string& given) const;
  bool has_key(const httplib::Request& request) const;
  bool is_allowed_origin(const std::string& origin, const std::string& host) const;

  std::vector<Digest> keys_;  // SHA-256, so that comparing takes the same time for all
  bool only_local_;
};

/// Reads keys from a file, one on each line; skips empty lines. Throws Error.
std::vector<std::string> read_keys(const std::string& path);

}  // namespace snapkv::server
