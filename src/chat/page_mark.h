// SPDX-License-Identifier: MIT
// PageMark: where a page of a document's text begins.
#pragma once

#include <cstddef>
#include <vector>

namespace snapkv::chat {

struct PageMark {
  size_t begin = 0;  ///< first byte of the page
  int number = 0;    ///< from 1; 0: a text without pages begins here
};
/// In the order of their bytes; empty: no pages.
using PageMarks = std::vector<PageMark>;

}  // namespace snapkv::chat
