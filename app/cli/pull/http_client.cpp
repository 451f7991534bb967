// SPDX-License-Identifier: MIT
#include "cli/pull/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/parse_number.h"
#include "cli/common/signals.h"
#include "cli/pull/certificates.h"
#include "snapkv/engine.h"

namespace snapkv::cli {
namespace {

constexpr int kMostRedirects = 10;
constexpr size_t kMostErrorText = 4096;
constexpr long kConnectSeconds = 30;
constexpr long kStallSeconds = 60;  // without a byte, after which the connection counts as broken

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

UrlHandle parse_url(const std::string& url) {
  UrlHandle handle(curl_url(), curl_url_cleanup);
  if (handle == nullptr) throw std::bad_alloc();
  if (curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) handle.reset();
  return handle;
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin));
}

/// Failures of a connection, which another try may not meet.
bool is_passing(CURLcode code) {
  constexpr CURLcode kPassing[] = {
      CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,  CURLE_HTTP2,      CURLE_PARTIAL_FILE,
      CURLE_OPERATION_TIMEDOUT,   CURLE_GOT_NOTHING,      CURLE_SEND_ERROR, CURLE_RECV_ERROR,
      CURLE_HTTP2_STREAM,         CURLE_SSL_CONNECT_ERROR};
  return std::find(std::begin(kPassing), std::end(kPassing), code) != std::end(kPassing);
}

bool is_untrusted(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
}

bool is_passing_status(long status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

void start_libcurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) fail(ErrorCode::kRuntime, "libcurl: {}", curl_easy_strerror(code));
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

double HttpReply::retry_after() const {
  const std::optional<double> seconds = parse_real(header("retry-after"));
  return seconds && *seconds >= 0 ? *seconds : -1;  // a date counts as none
}

/// A request's answer while it arrives. Exceptions may not pass through libcurl, which is C.
struct HttpClient::Transfer {
  uint64_t first = 0, count = 0;
  const Begin* begin = nullptr;
  const Sink* sink = nullptr;  // null: the body is kept as text
  CURL* curl = nullptr;
  HttpReply reply;
  bool begun = false, stopped = false;
  std::exception_ptr error;

  bool receive(std::string_view bytes) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
    if (is_redirect(reply.status)) return true;
    const bool is_body = reply.status == 200 || reply.status == 206;
    if (!is_body || sink == nullptr) {
      const size_t most = is_body ? kMostText : kMostErrorText;
      reply.text += bytes.substr(0, most - std::min(most, reply.text.size()));
      return true;
    }
    if (!begun && !(*begin)(reply)) return false;
    begun = true;
    return (*sink)(bytes);
  }

  static size_t on_body(char* data, size_t, size_t n, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      transfer.stopped = !transfer.receive({data, n});
    } catch (...) {
      transfer.error = std::current_exception();
    }
    return transfer.stopped || transfer.error ? 0 : n;
  }

  static size_t on_header(char* data, size_t, size_t n, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      const std::string_view line(data, n);
      const size_t colon = line.find(':');
      if (line.starts_with("HTTP/")) {
        transfer.reply.headers.clear();
      } else if (colon != std::string_view::npos) {
        transfer.reply.headers[lower_case(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
      }
    } catch (...) {
      transfer.error = std::current_exception();
      return 0;
    }
    return n;
  }

  static int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return interrupted() ? 1 : 0;
  }
};

HttpClient::HttpClient(const std::string& trusted, const std::string& token)
    : trusted_(trusted), token_(token) {
  const auto is_plain = [](char c) { return c > ' ' && c < 127; };
  if (!std::all_of(token.begin(), token.end(), is_plain)) {
    fail(ErrorCode::kUsage,
         "HF_TOKEN: expected a token of letters and digits, such as hf_..., "
         "found other characters in it");
  }
  start_libcurl();
  authorities_ = certificate_file();
  curl_ = curl_easy_init();
  if (curl_ == nullptr) throw std::bad_alloc();
}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_); }

HttpReply HttpClient::get(const std::string& url) {
  Transfer transfer;
  return follow(url, transfer);
}

HttpReply HttpClient::stream(const std::string& url, uint64_t first, uint64_t count,
                             const Begin& begin, const Sink& sink) {
  Transfer transfer;
  transfer.first = first;
  transfer.count = count;
  transfer.begin = &begin;
  transfer.sink = &sink;
  return follow(url, transfer);
}

HttpReply HttpClient::follow(const std::string& url, Transfer& transfer) {
  std::string at = url;
  for (int i = 0; i <= kMostRedirects; ++i) {
    const std::string next = ask(at, transfer);
    if (next.empty()) return std::move(transfer.reply);
    if (lower_case(at).starts_with("https:") && !lower_case(next).starts_with("https:")) {
      fail(ErrorCode::kRuntime,
           "{}: redirected from https to {}, which anybody on the way can read", url, next);
    }
    at = next;
  }
  fail(ErrorCode::kRuntime, "{}: redirected more than {} times", url, kMostRedirects);
}

std::string HttpClient::ask(const std::string& url, Transfer& transfer) {
  CURL* const curl = curl_;
  curl_easy_reset(curl);
  char error_text[CURL_ERROR_SIZE] = "";
  transfer.curl = curl;
  transfer.reply = {};
  transfer.begun = false;
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  if (!authorities_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, authorities_.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, fmt::format("snapkv/{}", version()).c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  std::string range;
  if (transfer.first > 0 || transfer.count > 0) {
    range = fmt::format("{}-", transfer.first);
    if (transfer.count > 0) range += fmt::format("{}", transfer.first + transfer.count - 1);
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  }
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(nullptr, curl_slist_free_all);
  if (has_token() && same_server(url, trusted_)) {
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + token_).c_str()));
    if (headers == nullptr) throw std::bad_alloc();
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  }
  const CURLcode code = curl_easy_perform(curl);
  if (transfer.error) std::rethrow_exception(transfer.error);
  HttpReply& reply = transfer.reply;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  if (code != CURLE_OK && !transfer.stopped) {
    reply.problem = error_text[0] != '\0' ? error_text : curl_easy_strerror(code);
    if (is_untrusted(code)) reply.problem += "; " + certificate_advice(authorities_);
    reply.may_recover = is_passing(code);
    return "";
  }
  reply.may_recover = is_passing_status(reply.status);
  if (!is_redirect(reply.status)) return "";
  char* next = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &next);
  if (next == nullptr) return "";
  return next;
}

bool split_url(const std::string& url, UrlParts& parts) {
  const UrlHandle handle = parse_url(url);
  if (handle == nullptr) return false;
  parts = {lower_case(url_part(handle.get(), CURLUPART_SCHEME)),
           lower_case(url_part(handle.get(), CURLUPART_HOST)),
           url_part(handle.get(), CURLUPART_PATH), url_part(handle.get(), CURLUPART_QUERY)};
  return (parts.scheme == "http" || parts.scheme == "https") && !parts.host.empty();
}

bool same_server(const std::string& a, const std::string& b) {
  const UrlHandle one = parse_url(a), other = parse_url(b);
  if (one == nullptr || other == nullptr) return false;
  const auto is_same = [&](CURLUPart part, unsigned flags) {
    return lower_case(url_part(one.get(), part, flags)) ==
           lower_case(url_part(other.get(), part, flags));
  };
  return is_same(CURLUPART_SCHEME, 0) && is_same(CURLUPART_HOST, 0) &&
         is_same(CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string escape_path(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

}  // namespace snapkv::cli
