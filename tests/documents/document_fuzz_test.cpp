// SPDX-License-Identifier: MIT
// Damaged documents: mutations of small ones from a fixed seed. Each is read or ends in an Error
// that names the file, in bounded time.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "documents/document_reader.h"
#include "documents/sample_documents.h"
#include "snapkv/error.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::documents {
namespace {

/// Whether the bytes have a text, which must be UTF-8.
bool is_read(const std::string& bytes) {
  const test::TimeLimit limit;
  try {
    const std::string text = document_text(bytes, "mutated.file", {.most_text_bytes = 1 << 20});
    EXPECT_TRUE(utf8::is_valid(text));
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("mutated.file"), 0U) << e.what();
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.what();
    return false;
  }
}

TEST(DocumentFuzz, MutatedDocuments) {
  constexpr const char* kPieces[] = {"<",        ">",          "</p>",       "<!--",     "-->",
                                     "&amp;",    "&#x110000;", "<![CDATA[",  "]]>",      "<pre>",
                                     "<script>", "<table>",    "\xff\xfe",   "\xef\xbb", "%",
                                     "<html>",   "PK\x03\x04", "PK\x01\x02", "<?xml?>",  "../"};
  const std::vector<std::string> seeds = {
      "<!DOCTYPE html><html><meta charset=iso-8859-2><body><p>A <b>page</b>.<pre>x\n y</pre>"
      "<ul><li>one<li>two</ul><script>no</script><table><tr><td>1<td>2</table>",
      test::make_epub({"<h1>One</h1><p>It began.</p>", "<p>It went on.</p>"}),
      test::make_docx({"First.", "Second."}),
      "Gr\xf6\xdf"
      "e und Caf\xe9",
      "plain text, größer"};
  const int n_tries = 10000;
  const int n_read = test::replay_mutations(seeds, kPieces, n_tries, is_read);
  EXPECT_GT(n_read, n_tries / 10);
  EXPECT_LT(n_read, n_tries * 9 / 10);
}

/// Mutations of the XML itself: in an archive few would reach it.
TEST(DocumentFuzz, MutatedLists) {
  constexpr const char* kPieces[] = {"<w:lvl w:ilvl='8'>",
                                     "</w:lvl>",
                                     "<w:num w:numId='1'>",
                                     "</w:num>",
                                     "<w:isLgl/>",
                                     "w:val='2147483647'",
                                     "-1",
                                     "%9",
                                     "<w:basedOn w:val='A'/>",
                                     "<w:start/>",
                                     "Fallback",
                                     "upperRoman"};
  const std::string document =
      "<w:document xmlns:w='w'><w:p><w:pPr><w:numPr><w:ilvl w:val='1'/><w:numId w:val='1'/>"
      "</w:numPr></w:pPr><w:r><w:t>one</w:t></w:r></w:p><w:p><w:pPr><w:pStyle w:val='A'/></w:pPr>"
      "<w:r><w:t>two</w:t></w:r></w:p></w:document>";
  const std::string numbering =
      "<w:numbering xmlns:w='w'><w:abstractNum w:abstractNumId='3'><w:lvl w:ilvl='0'>"
      "<w:start w:val='4'/><w:numFmt w:val='lowerLetter'/><w:lvlText w:val='%1)'/></w:lvl>"
      "<w:lvl w:ilvl='1'><w:start w:val='1'/><w:lvlText w:val='%1.%2'/><w:pStyle "
      "w:val='A'/></w:lvl>"
      "</w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='3'/><w:lvlOverride w:ilvl='0'>"
      "<w:startOverride w:val='2'/></w:lvlOverride></w:num></w:numbering>";
  const std::string styles =
      "<w:styles xmlns:w='w'><w:style w:type='paragraph' w:styleId='A'><w:basedOn w:val='B'/>"
      "</w:style><w:style w:styleId='B'><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>"
      "</w:style></w:styles>";
  const std::string all = document + "|" + numbering + "|" + styles;
  const int n_tries = 5000;
  const int n_read = test::replay_mutations({all}, kPieces, n_tries, [](const std::string& text) {
    const size_t first = std::min(text.find('|'), text.size());
    const size_t second = std::min(text.find('|', first + 1), text.size());
    return is_read(
        test::make_zip({{"word/document.xml", text.substr(0, first)},
                        {"word/numbering.xml", text.substr(std::min(first + 1, text.size()),
                                                           second - std::min(first + 1, second))},
                        {"word/styles.xml", text.substr(std::min(second + 1, text.size()))}}));
  });
  EXPECT_GT(n_read, n_tries / 50);
}

TEST(DocumentFuzz, MutatedPdfs) {
  constexpr const char* kPieces[] = {"obj", "endstream", "<<", ">>", "0 R", "/Kids", "-1", "99999"};
  const int n_tries = 40;  // a process each
  const int n_read =
      test::replay_mutations({test::make_pdf({"A page.", "Another."})}, kPieces, n_tries, is_read);
  EXPECT_GT(n_read, n_tries / 10);
}

}  // namespace
}  // namespace snapkv::documents
