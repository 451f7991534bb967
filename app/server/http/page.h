// SPDX-License-Identifier: MIT
// The page at "/": one HTML file, web/server.html, embedded in the program.
#pragma once

#include <httplib.h>

#include <string>
#include <string_view>

namespace snapkv::server {

/// Generated (cmake/SnapkvEmbed.cmake); empty in a build without pages.
extern const char* const kChatPage;

/// Returns the Content-Security-Policy for a page whose scripts and styles are all inline: nothing
/// else may run, and the page may contact this server only. Scripts are listed by hash, so that
/// markup which got into the page by mistake can't run.
std::string content_security_policy(std::string_view html);

/// Answers with a page and its headers. `policy`: from content_security_policy().
void write_page(httplib::Response& response, const std::string& html, const std::string& policy);

}  // namespace snapkv::server
