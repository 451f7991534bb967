// SPDX-License-Identifier: MIT
#include "cli/pull/certificates.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/error.h"

namespace snapkv::cli {
namespace {

// Debian, Ubuntu and Arch; Fedora and RHEL, the second from Fedora 43 on; openSUSE
constexpr const char* kCertificateFiles[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem"};

bool is_readable(const char* path) { return path != nullptr && access(path, R_OK) == 0; }

/// Whether libcurl was built to look into a place that is there.
bool libcurl_has_its_own() {
  const curl_version_info_data* const built = curl_version_info(CURLVERSION_NOW);
  return built->age >= CURLVERSION_SEVENTH &&
         (is_readable(built->cainfo) || is_readable(built->capath));
}

}  // namespace

std::string certificate_file() {
  const char* const named = std::getenv("SSL_CERT_FILE");
  if (named != nullptr && *named != '\0') {
    if (!is_readable(named)) {
      fail(ErrorCode::kUsage,
           "SSL_CERT_FILE: expected a file with the certificates of authorities, can't read '{}'",
           named);
    }
    return named;
  }
  if (libcurl_has_its_own()) return "";
  const auto* const at =
      std::find_if(std::begin(kCertificateFiles), std::end(kCertificateFiles), is_readable);
  return at == std::end(kCertificateFiles) ? "" : *at;
}

std::string certificate_advice(const std::string& file) {
  if (file.empty() && !libcurl_has_its_own()) {
    return "this machine has no certificates of authorities to check servers with: install the "
           "package ca-certificates, or name such a file with SSL_CERT_FILE";
  }
  return "if a proxy here has an authority of its own, name a file with its certificate with "
         "SSL_CERT_FILE";
}

}  // namespace snapkv::cli
