// SPDX-License-Identifier: MIT
// Damaged documents: mutations of small ones from a fixed seed. Each is read or ends in an Error
// that names the file, in bounded time.
#include <gtest/gtest.h>

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

TEST(DocumentFuzz, MutatedPdfs) {
  constexpr const char* kPieces[] = {"obj", "endstream", "<<", ">>", "0 R", "/Kids", "-1", "99999"};
  const int n_tries = 40;  // a process each
  const int n_read =
      test::replay_mutations({test::make_pdf({"A page.", "Another."})}, kPieces, n_tries, is_read);
  EXPECT_GT(n_read, n_tries / 10);
}

}  // namespace
}  // namespace snapkv::documents
