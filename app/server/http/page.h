// SPDX-License-Identifier: MIT
// The page at "/": one HTML file, web/server.html, embedded into the program. Used by Service and
// given to it by the command `serve`.
#pragma once

#include <httplib.h>

#include <string>
#include <string_view>

namespace snapkv::server {

/// Generated (cmake/SnapkvEmbed.cmake); empty in a build without pages.
extern const char* const kChatPage;

/// The Content-Security-Policy of a page whose scripts and styles are all inline: nothing else may
/// run, and the page may ask this server only. A script is named by its hash, so that markup which
/// got into the page by mistake could not run.
std::string content_security_policy(std::string_view html);

/// Answers with a page and its headers. `policy`: as above.
void write_page(httplib::Response& response, const std::string& html, const std::string& policy);

}  // namespace snapkv::server
