// SPDX-License-Identifier: MIT
// HttpClient: HTTP and HTTPS requests by libcurl, for snapkv pull. It follows redirects itself, so
// that a token goes to the server it is for and to no other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace snapkv::cli {

struct HttpReply {
  long status = 0;           ///< of the last server that was asked; 0: none answered
  std::string problem;       ///< why there is no answer, or why it broke off; empty: it is whole
  bool may_recover = false;  ///< whether the same request may succeed later
  std::map<std::string, std::string> headers;  ///< of that answer; names in lower case
  std::string text;  ///< the body of get(), and of an error (its first bytes)

  /// A header's value; empty without it.
  std::string header(const std::string& name) const;
  /// The seconds that Retry-After asks for; negative without it.
  double retry_after() const;
};

class HttpClient {
 public:
  /// Sends `token`, unless it is empty, to the server of the URL `trusted`. Throws Error{kUsage}
  /// for a token that no header can hold, or a SSL_CERT_FILE that can't be read.
  HttpClient(const std::string& trusted, const std::string& token);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool has_token() const { return !token_.empty(); }

  /// The whole body, at most kMostText bytes of it, in `text`.
  HttpReply get(const std::string& url);

  /// Receives the body of an answer with status 200 or 206; returns false to stop.
  using Begin = std::function<bool(const HttpReply&)>;
  using Sink = std::function<bool(std::string_view)>;
  /// Asks for the bytes from `first` on, or for [first, first + count) if `count` is not 0. Calls
  /// `begin` before the first byte; what either function throws is thrown here.
  HttpReply stream(const std::string& url, uint64_t first, uint64_t count, const Begin& begin,
                   const Sink& sink);

 private:
  struct Transfer;
  HttpReply follow(const std::string& url, Transfer& transfer);
  /// One request; returns the URL of a redirect, else an empty text.
  std::string ask(const std::string& url, Transfer& transfer);

  std::string trusted_, token_;
  std::string authorities_;  // a file of certificates; empty: those that libcurl knows
  void* curl_ = nullptr;  // a CURL handle, which keeps connections open
};

constexpr size_t kMostText = 64 << 20;  // of a listing: 200,000 files

/// Whether both URLs have the same scheme, host and port.
bool same_server(const std::string& a, const std::string& b);
/// The parts of a URL that libcurl can fetch: {"https", "host", "/path?query"}; false for others.
struct UrlParts {
  std::string scheme, host, path, query;
};
bool split_url(const std::string& url, UrlParts& parts);
/// Escapes what may not stand in a URL's path, but no slashes.
std::string escape_path(std::string_view path);

}  // namespace snapkv::cli
