// SPDX-License-Identifier: MIT
// Parts of documents that the program's own tables make. `make generated` writes them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace snapkv::test {

/// Compares what stands in a document between the line `begin` and "<!-- end -->" with `text`; with
/// the environment variable SNAPKV_UPDATE, puts `text` there.
inline void expect_marked_part(const std::string& path, const std::string& begin,
                               const std::string& text) {
  std::ifstream in(path);
  std::string document{std::istreambuf_iterator<char>(in), {}};
  const size_t mark = document.find(begin + "\n");
  ASSERT_NE(mark, std::string::npos) << path << " has no line " << begin;
  const size_t from = mark + begin.size() + 1, to = document.find("<!-- end -->\n", from);
  ASSERT_NE(to, std::string::npos) << path << ": nothing ends " << begin;
  if (std::getenv("SNAPKV_UPDATE") != nullptr) {
    std::ofstream(path) << document.replace(from, to - from, text);
  } else {
    EXPECT_EQ(document.substr(from, to - from), text) << "`make generated` writes " << path;
  }
}

}  // namespace snapkv::test
