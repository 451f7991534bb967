// SPDX-License-Identifier: MIT
// Small documents of every format, made in memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace snapkv::test {

/// A zip archive of files: (name, content).
std::string make_zip(const std::vector<std::pair<std::string, std::string>>& files);

/// A PDF of one page for each text, in lines of at most a few words; ASCII without brackets.
std::string make_pdf(const std::vector<std::string>& pages);

/// A text on a page of 595 x 842 points; y: from the top.
struct PlacedText {
  int x = 0, y = 0;
  std::string text;
};

/// A PDF of pages with texts at places of their own; ASCII without brackets.
std::string make_placed_pdf(const std::vector<std::vector<PlacedText>>& pages);

/// A Word document of paragraphs; XML may be in them.
std::string make_docx(const std::vector<std::string>& paragraphs);

/// An EPUB of chapters, which are XHTML bodies; the archive holds them in another order.
std::string make_epub(const std::vector<std::string>& chapters);

}  // namespace snapkv::test
