// SPDX-License-Identifier: MIT
// The pages of a text: where each begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "chat/page_mark.h"

namespace snapkv::long_documents {

using chat::PageMark;
using chat::PageMarks;

/// Adds the marks of a document that begins at `begin` and whose pages begin at `pages` in it.
inline void add_pages(PageMarks& marks, const std::vector<size_t>& pages, size_t begin) {
  if (pages.empty() && !marks.empty()) marks.push_back({begin, 0});
  for (size_t i = 0; i < pages.size(); ++i) {
    marks.push_back({begin + pages[i], static_cast<int>(i) + 1});
  }
}

/// The page that a byte is on; 0: none.
inline int page_at(std::span<const PageMark> marks, size_t byte) {
  const auto next = std::upper_bound(marks.begin(), marks.end(), byte,
                                     [](size_t at, const PageMark& m) { return at < m.begin; });
  return next == marks.begin() ? 0 : (next - 1)->number;
}

/// "page 3", "pages 3-5"; empty without pages.
inline std::string page_text(int first, int last) {
  if (first <= 0 || last <= 0) return "";
  if (first == last) return "page " + std::to_string(first);
  return "pages " + std::to_string(first) + "-" + std::to_string(last);
}

/// The bytes of one of several documents in a text.
struct DocumentMark {
  size_t begin = 0, end = 0;
  std::string name;
};
/// In the order of their bytes; empty: the text is one document, whose name nobody needs.
using DocumentMarks = std::vector<DocumentMark>;

/// The document that a byte is in or before; nullptr: there are no marks.
inline const DocumentMark* document_at(std::span<const DocumentMark> marks, size_t byte) {
  for (const DocumentMark& mark : marks) {
    if (byte < mark.end) return &mark;
  }
  return marks.empty() ? nullptr : &marks.back();
}

/// The documents that have bytes in [begin, end).
inline std::span<const DocumentMark> documents_in(std::span<const DocumentMark> marks, size_t begin,
                                                  size_t end) {
  const auto first = std::find_if(marks.begin(), marks.end(),
                                  [&](const DocumentMark& mark) { return mark.end > begin; });
  const auto last =
      std::find_if(first, marks.end(), [&](const DocumentMark& mark) { return mark.begin >= end; });
  return {first, last};
}

}  // namespace snapkv::long_documents
