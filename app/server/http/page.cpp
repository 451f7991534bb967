// SPDX-License-Identifier: MIT
#include "server/http/page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

#include "server/http/body.h"

namespace snapkv::server {
namespace {

std::string hash_source(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest = {};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> base64 = {};
  const int n = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return "'sha256-" + std::string(base64.begin(), base64.begin() + n) + "'";
}

/// Returns " 'sha256-...'" for the text of each element of that name; " 'none'" if there is none.
std::string hash_sources(std::string_view html, const std::string& element) {
  const std::string end_tag = "</" + element;
  std::string sources;
  size_t at = 0;
  while ((at = html.find("<" + element, at)) != std::string_view::npos) {
    const size_t begin = html.find('>', at);
    const size_t end = html.find(end_tag, begin);
    if (end == std::string_view::npos) break;
    sources += " " + hash_source(html.substr(begin + 1, end - begin - 1));
    at = end + end_tag.size();
  }
  return sources.empty() ? " 'none'" : sources;
}

}  // namespace

std::string content_security_policy(std::string_view html) {
  return "default-src 'none'; script-src" + hash_sources(html, "script") + "; style-src" +
         hash_sources(html, "style") +
         "; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

void write_page(httplib::Response& response, const std::string& html, const std::string& policy) {
  response.set_header("Content-Security-Policy", policy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cache-Control", "no-cache");  // another version of the program may come
  write_text(response, html, "text/html; charset=utf-8");
}

}  // namespace snapkv::server
