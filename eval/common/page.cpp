// SPDX-License-Identifier: MIT
#include "eval/common/page.h"

#include <filesystem>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/write_file.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

extern const char* const kPageTemplate;  // generated: cmake/SnapkvPages.cmake; "" without pages

namespace {

constexpr std::string_view kMarker = "SNAPKV_PAGE_DATA";

// Escapes JSON for a script element, so that `</script` in a prompt does not end it and `<!--` does
// not begin a comment. A < occurs only in strings, where \u003c is the same character.
std::string escape_for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

bool has_pages() { return kPageTemplate[0] != '\0'; }

void check_page(const std::string& path) {
  if (!has_pages()) {
    fail(ErrorCode::kUsage,
         "{}: this snapkv was built without pages: install Node.js 18 or later with npm and build "
         "again with -DSNAPKV_PAGES=ON (docs/pictures.md)",
         path);
  }
  const std::filesystem::path file(path);
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    fail(ErrorCode::kUsage, "{}: a folder, expected the name of the page to write", path);
  }
  const std::filesystem::path folder = file.parent_path().empty() ? "." : file.parent_path();
  if (!std::filesystem::is_directory(folder, error)) {
    fail(ErrorCode::kUsage, "{}: there is no folder {}", path, folder.string());
  }
}

std::string make_page(const Json& data) {
  const std::string_view page = kPageTemplate;
  const size_t at = page.find(kMarker);
  SNAPKV_CHECK(at != std::string_view::npos);
  std::string out(page.substr(0, at));
  out += escape_for_script(to_line(data));
  out += page.substr(at + kMarker.size());
  return out;
}

void write_page(const std::string& path, const Json& data) { write_file(path, make_page(data)); }

Json records_page(const std::string& kind, Json records) {
  return {{"kind", kind}, {"version", version()}, {"records", std::move(records)}};
}

}  // namespace snapkv::eval
