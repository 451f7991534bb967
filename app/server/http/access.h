// SPDX-License-Identifier: MIT
// Access: who may use the server: API keys, and pages in browsers, which may only be those of this
// machine or the server's own. Asked before each request is routed.
#pragma once

#include <httplib.h>

#include <array>
#include <string>
#include <vector>

namespace snapkv::server {

class Access {
 public:
  /// `keys`: none means that nobody is asked for one. `only_local`: the server listens on a
  /// loopback address.
  Access(const std::vector<std::string>& keys, bool only_local);

  /// Throws ApiError: 401 without a valid key, 403 for pages from elsewhere, and, without keys on a
  /// loopback address, for requests by another name than localhost. Adds the headers that
  /// let a local page read the answer.
  void check(const httplib::Request& request, httplib::Response& response) const;

  /// What a browser asks before it sends a request of a page that check() has let through: the page
  /// may send the headers that it asks for, as clients have many of their own.
  static void answer_preflight(const httplib::Request& request, httplib::Response& response);

 private:
  using Digest = std::array<unsigned char, 32>;

  bool is_key(const std::string& given) const;
  bool has_key(const httplib::Request& request) const;
  bool is_allowed_origin(const std::string& origin, const std::string& host) const;

  std::vector<Digest> keys_;  // SHA-256: compared in the same time whatever they are
  bool only_local_;
};

/// The keys of a file: one on each line; empty lines are left out. Throws Error.
std::vector<std::string> read_keys(const std::string& path);

}  // namespace snapkv::server
