// SPDX-License-Identifier: MIT
// The text of every kind of document, and what is refused.
#include "documents/document_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "documents/sample_documents.h"
#include "tests/support/expect_error.h"

namespace snapkv::documents {
namespace {

using namespace std::string_literals;

std::string text_of(const std::string& bytes, const std::string& name = "document") {
  return document_text(bytes, name);
}

TEST(DocumentReader, TextAndMarkdownStayAsTheyAre) {
  EXPECT_EQ(text_of("# Title\n\nA *word*, ünïcode.\r\n"), "# Title\n\nA *word*, ünïcode.\r\n");
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(text_of("\xef\xbb\xbfmarked"), "marked");
  EXPECT_EQ(text_of("GGUF is a format, ID3 another."), "GGUF is a format, ID3 another.");
}

TEST(DocumentReader, OtherEncodingsBecomeUtf8) {
  EXPECT_EQ(text_of("Gr\xf6\xdf"
                    "e und \x84"
                    "Caf\xe9\x93 in M\xfcnchen"),
            "Größe und „Café“ in München");
  EXPECT_EQ(text_of("\xff\xfeG\0r\0\xf6\0\xdf\0"s), "Größ");
  EXPECT_EQ(text_of("\xfe\xff\0G\0r\0\xf6\0\xdf"s), "Größ");
  EXPECT_EQ(text_of("h\0e\0l\0l\0o\0!\0"s), "hello!");  // UTF-16 without a mark
  EXPECT_EQ(text_of("\0h\0e\0l\0l\0o\0!"s), "hello!");
  EXPECT_EQ(text_of("\xff\xfe\0\0G\0\0\0\xf6\0\0\0"s), "Gö");
  EXPECT_EQ(text_of("\0\0\xfe\xff\0\0\0G\0\0\0\xf6"s), "Gö");
}

TEST(DocumentReader, AFileThatIsCutInACharacterIsUtf8) {
  EXPECT_EQ(text_of("h\xc3\xa9llo \xc3"), "héllo ");  // as head -c makes it
  EXPECT_EQ(text_of("\x9a\x80 na\xc3\xafve \xe2\x82"), " naïve ");
  EXPECT_EQ(text_of("caf\xe9"), "café") << "Latin-1";
}

TEST(DocumentReader, RefusesTextOfUnknownEncodings) {
  const auto refuses = [](const std::string& bytes, std::string_view words) {
    test::expect_error(ErrorCode::kUsage, {"letter.txt", words},
                       [&] { text_of(bytes, "letter.txt"); });
  };
  refuses("\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0!", "neither UTF-8, UTF-16 nor Latin-1");
  refuses("\x83\x65\x83\x58\x83\x67 and \x93\xfa\x96\x7b", "neither UTF-8");  // Shift-JIS
  refuses("ünïcode, größer, \xff schöner",
          "not valid UTF-8, from byte 21 on; iconv leaves out what is not: iconv -c -f UTF-8");
  refuses("h\xc3\xa9llo \xff", "not valid UTF-8, from byte 7 on");
  refuses("\xff\xfe\0\xdc"s, "not valid UTF-16LE");
  refuses("\x01\x02\x03\xff\x04\0\x05"s, "data, not a document");
}

TEST(DocumentReader, OtherFilesAreRefusedByName) {
  const auto refuses = [](const std::string& bytes, std::string_view what) {
    test::expect_error(ErrorCode::kUsage, {"photo.jpg: ", what, "not a document snapkv can read"},
                       [&] { text_of(bytes, "photo.jpg"); });
  };
  refuses("\xff\xd8\xff\xe0\0\x10JFIF"s, "a JPEG image");
  refuses("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"s, "a PNG image");
  refuses("GGUF\3\0\0\0"s, "a model (GGUF)");
  refuses("SNAPKVC\n\1\0\0\0"s, "snapkv ask");
  refuses("SNAPKVP\n\1\0\0\0"s, "an older snapkv");
  refuses("{\\rtf1\\ansi text}", "an RTF document");
  refuses(test::make_zip({{"xl/workbook.xml", "<x/>"}}), "an Excel workbook");
  refuses(test::make_zip({{"notes.txt", "text"}}), "a zip archive");
  test::expect_error(ErrorCode::kRuntime, {"a folder, not a document"},
                     [] { read_document(testing::TempDir()); });
  test::expect_error(ErrorCode::kRuntime, {"can't read no-such-file"},
                     [] { read_document("no-such-file"); });
}

TEST(DocumentReader, HtmlIsItsVisibleText) {
  EXPECT_EQ(text_of("<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body>\n"
                    "<h1>A\n heading</h1><p>One <b>bold</b>word &amp; caf&eacute;.<p>Two<br>lines."
                    "<script>if (a < b) x('<p>');</script><ul><li>first<li>second</ul>"
                    "<pre>a\n  b</pre><div hidden>no</div><div style='display: none'>no</div>"
                    "<table><tr><td>1</td><td>2</td></tr><tr><td>3<td>4</table></body></html>"),
            "A heading\n\nOne boldword & café.\n\nTwo\nlines.\n\n- first\n- second\n\na\n  b\n\n"
            "1\t2\n3\t4\n");
  EXPECT_EQ(text_of("<html><ol><li>one<li value=7>seven<ul><li>dot</ul><li>eight</ol>"
                    "<ol start=3><li>three</li></ol><ul><li>dot</ul>so&shy;ft"),
            "1. one\n7. seven\n\n- dot\n\n8. eight\n\n3. three\n\n- dot\n\nsoft\n");
  EXPECT_EQ(text_of("text <b>only</b>", "page.HTM"), "text only\n");
  EXPECT_EQ(text_of("text <b>only</b>", "page.txt"), "text <b>only</b>");
  EXPECT_EQ(text_of("<html><meta charset=iso-8859-2><p>\xb3\xf3\xbf"), "łóż\n");
  EXPECT_EQ(text_of("<html><meta charset=latin1><p>caf\xe9"), "café\n");
}

TEST(DocumentReader, WordDocumentsAreTheirParagraphs) {
  EXPECT_EQ(text_of(test::make_docx({"First &amp; foremost.", " second ", "ünï"})),
            "First & foremost.\n\n second \n\nünï\n");
  const std::string table =
      "</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p>"
      "<w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p>"
      "</w:tc></w:tr></w:tbl><w:p><mc:AlternateContent><mc:Choice><w:r><w:t>once</w:t></w:r>"
      "</mc:Choice><mc:Fallback><w:r><w:t>twice</w:t></w:r></mc:Fallback></mc:AlternateContent>"
      "<w:r><w:t>";
  EXPECT_EQ(text_of(test::make_docx({"Table:" + table, "end"})),
            "Table:\n\na\tb\nc\n\nonce\n\nend\n");
}

TEST(DocumentReader, WordDocumentsHaveTheirNotesAtTheEnd) {
  const auto note = [](const char* kind, int id, const std::string& text) {
    return "<w:" + std::string(kind) + " w:id=\"" + std::to_string(id) + "\"><w:p><w:r><w:t>" +
           text + "</w:t></w:r></w:p></w:" + kind + ">";
  };
  const std::string document =
      "<w:document xmlns:w=\"urn:w\"><w:body><w:p><w:r><w:t>The price</w:t></w:r><w:r>"
      "<w:endnoteReference w:id=\"2\"/></w:r><w:r><w:t> is 300</w:t></w:r><w:r>"
      "<w:footnoteReference w:id=\"2\"/><w:footnoteReference "
      "w:id=\"2\"/></w:r><w:r><w:t>.</w:t></w:r>"
      "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
      "<w:r><w:rPr><w:vanish w:val=\"0\"/></w:rPr><w:t>so\xc2\xad"
      "ft</w:t></w:r></w:p></w:body></w:document>";
  EXPECT_EQ(
      text_of(test::make_zip(
          {{"word/document.xml", document},
           {"word/footnotes.xml", "<w:footnotes xmlns:w=\"urn:w\">" + note("footnote", 1, "?") +
                                      note("footnote", 2, "Without tax.") + "</w:footnotes>"},
           {"word/endnotes.xml", "<w:endnotes xmlns:w=\"urn:w\">" +
                                     note("endnote", 2, "As of May.") + "</w:endnotes>"}})),
      "The price[1] is 300[2][2].soft\n\n[1] As of May.\n\n[2] Without tax.\n");
}

TEST(DocumentReader, BooksAreTheirChaptersInOrder) {
  EXPECT_EQ(text_of(test::make_epub({"<h1>One</h1><p>It began.</p>", "<p>It went on.</p>"})),
            "One\n\nIt began.\n\nIt went on.\n");
}

TEST(DocumentReader, PdfsAreTheirText) {
  const std::string text = text_of(test::make_pdf({"The first page.", "The second page."}));
  EXPECT_EQ(text, "The first page.\n\nThe second page.\n");
  EXPECT_EQ(text_of(test::make_pdf({"Contents . . . . . . . 7 and so on..."})),
            "Contents ... 7 and so on...\n");
  // a soft hyphen, and Hebrew letters, around which pdftotext puts marks of their direction
  const std::string marked = text_of(test::make_pdf({"hy\1phen \2\3 end"}));
  EXPECT_TRUE(marked.starts_with("hyphen ")) << marked;
  EXPECT_EQ(marked.find("\xe2\x80"), std::string::npos) << marked;
  test::expect_error(ErrorCode::kUsage, {"scan.pdf", "2 pages without text", "ocrmypdf"}, [] {
    text_of(test::make_pdf({"", ""}), "scan.pdf");
  });
  test::expect_error(ErrorCode::kUsage, {"broken.pdf: a damaged PDF"},
                     [] { text_of("%PDF-1.4\nnothing\n", "broken.pdf"); });
}

TEST(DocumentReader, SaysWhatReadsPdfsWhereThatIsMissing) {
  const char* const set = std::getenv("PATH");
  const std::string path = set == nullptr ? "" : set;
  setenv("PATH", "/nowhere", 1);
  test::expect_error(ErrorCode::kRuntime, {"a.pdf", "pdftotext", "poppler-utils"},
                     [] { text_of(test::make_pdf({"page"}), "a.pdf"); });
  setenv("PATH", path.c_str(), 1);
}

TEST(DocumentReader, DamagedArchivesAreErrorsThatNameTheFile) {
  const auto refuses = [](const std::string& bytes, std::string_view words) {
    test::expect_error(ErrorCode::kUsage, {"book.epub", words},
                       [&] { text_of(bytes, "book.epub"); });
  };
  const std::string book = test::make_epub({"<p>text</p>"});
  refuses(book.substr(0, book.size() / 2), "a damaged archive");
  refuses(test::make_zip({{"word/document.xml", "<w><t>text</w>"}}), "damaged XML");
  refuses(test::make_zip({{"META-INF/container.xml", "<a/>"}}), "names no book");
  refuses(test::make_zip({{"META-INF/container.xml", "<a><rootfile full-path='b.opf'/></a>"},
                          {"b.opf", "<p><spine><itemref idref='x'/></spine></p>"}}),
          "its chapter 'x' has no file");
}

TEST(DocumentReader, NothingExpandsWithoutBounds) {
  ReadLimits limits;
  limits.most_text_bytes = 1 << 20;
  const std::string bomb = test::make_docx({std::string(4 << 20, 'a')});
  ASSERT_LT(bomb.size(), 20000U);
  test::expect_error(ErrorCode::kUsage, {"bomb.docx", "expands to more than 1048576 bytes"},
                     [&] { document_text(bomb, "bomb.docx", limits); });
  const std::string laughs =
      "<!DOCTYPE w [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]><w><p><t>x&b;y</t></p></w>";
  EXPECT_EQ(text_of(test::make_zip({{"word/document.xml", laughs}})), "xy\n");
  limits.most_text_bytes = 1000;
  test::expect_error(ErrorCode::kUsage, {"more than 1000 bytes of text"},
                     [&] { document_text("<html>" + std::string(70000, 'a'), "a.html", limits); });
  test::expect_error(ErrorCode::kUsage, {"more than 1000 bytes of text"}, [&] {
    std::string words;
    for (int i = 0; i < 400; ++i) words += "word ";
    document_text(test::make_pdf({words}), "a.pdf", limits);
  });
}

TEST(DocumentReader, ReadsFilesUpToALimitAndStopsWhenAsked) {
  const std::string path = testing::TempDir() + "/text.txt";
  std::ofstream(path) << "0123456789";
  EXPECT_EQ(read_document(path), "0123456789");
  test::expect_error(ErrorCode::kUsage, {path, "larger than 5 bytes"},
                     [&] { read_document(path, {.most_bytes = 5}); });
  test::expect_error(ErrorCode::kCancelled, {"cancelled"},
                     [&] { read_document(path, {.keep_going = [] { return false; }}); });
}

}  // namespace
}  // namespace snapkv::documents
