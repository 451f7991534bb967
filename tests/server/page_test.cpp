// SPDX-License-Identifier: MIT
// The page at "/": its headers, and the hashes that let a browser run its scripts.
#include "server/http/page.h"

#include <gtest/gtest.h>

namespace snapkv::server {
namespace {

// printf '%s' TEXT | openssl dgst -sha256 -binary | base64
const char* const kOfAlert = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";  // alert(1)
const char* const kOfNothing = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";

std::string policy_of(const std::string& html) { return content_security_policy(html); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Page, NamesScriptsAndStylesByTheirHashes) {
  const std::string policy =
      policy_of("<head><script type=\"module\">alert(1)</script><style></style></head>");
  EXPECT_TRUE(contains(policy, std::string("script-src ") + kOfAlert + ";")) << policy;
  EXPECT_TRUE(contains(policy, std::string("style-src ") + kOfNothing + ";")) << policy;
  EXPECT_TRUE(contains(policy, "default-src 'none'")) << policy;
  EXPECT_TRUE(contains(policy, "connect-src 'self'")) << policy;
  EXPECT_FALSE(contains(policy, "unsafe")) << policy;
}

TEST(Page, NamesEachOfSeveralScripts) {
  const std::string policy =
      policy_of("<script>alert(1)</script>\n<script></script><script>no end");
  EXPECT_TRUE(
      contains(policy, std::string("script-src ") + kOfAlert + " " + kOfNothing + "; style-src"))
      << policy;
}

TEST(Page, WithoutScriptsMayRunNone) {
  EXPECT_TRUE(contains(policy_of("<p>x</p>"), "script-src 'none'; style-src 'none'"));
  EXPECT_TRUE(contains(policy_of(""), "script-src 'none'"));
}

TEST(Page, IsSentWithItsPolicy) {
  httplib::Response response;
  write_page(response, "<p>x</p>", policy_of("<p>x</p>"));
  EXPECT_EQ(response.body, "<p>x</p>");
  EXPECT_EQ(response.get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(response.get_header_value("Content-Security-Policy"), policy_of("<p>x</p>"));
  EXPECT_EQ(response.get_header_value("X-Content-Type-Options"), "nosniff");
}

TEST(Page, OfThisBuildNeedsNothingElse) {
  const std::string page = kChatPage;
  if (page.empty()) GTEST_SKIP() << "built without pages";
  EXPECT_TRUE(contains(page, "<div id=\"page\">"));
  const std::string policy = policy_of(page);
  EXPECT_TRUE(contains(policy, "script-src 'sha256-")) << policy;
  EXPECT_TRUE(contains(policy, "style-src 'sha256-")) << policy;
  EXPECT_FALSE(contains(page, "<script type=\"module\" src=")) << "a script of another file";
  EXPECT_FALSE(contains(page, "<link rel=\"stylesheet\"")) << "styles of another file";
}

}  // namespace
}  // namespace snapkv::server
