// SPDX-License-Identifier: MIT
#include "server/http/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "server/api/api_error.h"

namespace snapkv::server {
namespace {

std::array<unsigned char, 32> digest_of(const std::string& key) {
  std::array<unsigned char, 32> digest = {};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

/// Returns "localhost" for "http://localhost:5173" or "LOCALHOST:5173", as names of hosts may have
/// capitals (RFC 9110, 4.2.3); "[::1]" keeps its brackets.
std::string host_of(const std::string& origin) {
  const size_t scheme = origin.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t bracket = origin[begin] == '[' ? origin.find(']', begin) : begin;
  const size_t end = bracket == std::string::npos ? origin.size() : origin.find(':', bracket);
  std::string host = origin.substr(begin, end == std::string::npos ? end : end - begin);
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return host;
}

bool is_local_host(const std::string& host) {
  const bool is_loopback_address =  // but not a name such as 127.0.0.1.example
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return is_loopback_address || host == "localhost" || host == "[::1]";
}

constexpr const char* kHeaders = "authorization, content-type, x-api-key, anthropic-version";
constexpr size_t kMostHeaders = 4096;  // bytes of the header names; SDKs ask for about 400

/// Whether the text is a list such as "authorization, x-stainless-os".
bool is_list_of_names(const std::string& text) {
  return !text.empty() && text.size() <= kMostHeaders &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                  c == ',' || c == ' ';
         });
}

bool is_open(const std::string& path) {
  return path == "/" || path == "/index.html" || path == "/health" || path == "/v1/health" ||
         path == "/favicon.ico";
}

}  // namespace

Access::Access(const std::vector<std::string>& keys, bool only_local) : only_local_(only_local) {
  for (const std::string& key : keys) keys_.push_back(digest_of(key));
}

bool Access::is_key(const std::string& given) const {
  const Digest digest = digest_of(given);
  int found = 0;
  for (const Digest& key : keys_) {
    found |= static_cast<int>(CRYPTO_memcmp(key.data(), digest.data(), key.size()) == 0);
  }
  return found != 0;
}

bool Access::has_key(const httplib::Request& request) const {
  constexpr std::string_view kBearer = "bearer ";  // case-insensitive, as in RFC 9110
  const std::string authorization = request.get_header_value("Authorization");
  if (strncasecmp(authorization.c_str(), kBearer.data(), kBearer.size()) == 0) {
    const size_t begin = authorization.find_first_not_of(' ', kBearer.size());
    if (begin != std::string::npos && is_key(authorization.substr(begin))) return true;
  }
  return is_key(request.get_header_value("x-api-key"));  // Anthropic's header
}

bool Access::is_allowed_origin(const std::string& origin, const std::string& host) const {
  if (is_local_host(host_of(origin))) return true;
  // the server's own page, unless it was reached by a name that someone pointed at this machine
  const size_t scheme = origin.find("://");
  const bool is_own = scheme != std::string::npos && origin.substr(scheme + 3) == host;
  return is_own && (!only_local_ || !keys_.empty());
}

void Access::check(const httplib::Request& request, httplib::Response& response) const {
  const std::string origin = request.get_header_value("Origin");
  if (!origin.empty()) {
    if (!is_allowed_origin(origin, request.get_header_value("Host"))) {
      throw ApiError(403, "pages of " + origin.substr(0, 200) + " may not use this server",
                     "origin_not_allowed");
    }
    response.set_header("Access-Control-Allow-Origin", origin);
    response.set_header("Vary", "Origin");
  }
  if (request.method == "OPTIONS" || is_open(request.path)) return;
  if (keys_.empty()) {
    // A page whose name was pointed at this machine counts as the same origin: its requests need no
    // Origin, but give its name as the host.
    const std::string host = request.get_header_value("Host");
    if (only_local_ && !host.empty() && !is_local_host(host_of(host))) {
      throw ApiError(403,
                     "this server is asked by the name '" + host.substr(0, 200) +
                         "', but answers to localhost only, as it has no --api-key",
                     "host_not_allowed");
    }
    return;
  }
  if (!has_key(request)) {
    throw ApiError(
        401, "no valid API key: send it as 'Authorization: Bearer KEY', or as 'x-api-key: KEY'",
        "invalid_api_key");
  }
}

void Access::answer_preflight(const httplib::Request& request, httplib::Response& response) {
  const std::string asked = request.get_header_value("Access-Control-Request-Headers");
  response.status = 204;
  response.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE");
  response.set_header("Access-Control-Allow-Headers", is_list_of_names(asked) ? asked : kHeaders);
  response.set_header("Access-Control-Max-Age", "86400");
  response.headers.erase("Vary");
  response.set_header("Vary", "Origin, Access-Control-Request-Headers");
}

std::vector<std::string> read_keys(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kRuntime, "--api-key-file '{}': {}", path, std::strerror(errno));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
      line.pop_back();
    }
    if (!line.empty()) keys.push_back(line);
  }
  if (keys.empty()) fail(ErrorCode::kUsage, "--api-key-file '{}' has no key in it", path);
  return keys;
}

}  // namespace snapkv::server
