// SPDX-License-Identifier: MIT
// The text of every kind of document, and what is refused.
#include "documents/document_reader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "documents/pdf_tables.h"
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

TEST(DocumentReader, TablesKeepEmptyCells) {
  EXPECT_EQ(
      text_of("<html>Text<table><tr><th><th>2023<th>2022</tr><tr><td><p>Costs</p></td><td></td>"
              "<td><div>\n 7</div></td></tr><tr><td> </td><td> </td><td>8<br>9</td></tr></table>"
              "<p>end"),
      "Text\n\n\t2023\t2022\nCosts\t\t7\n\t\t8\n9\n\nend\n");
  // a page in a table
  EXPECT_EQ(text_of("<html><table><tr><td><p>One.</p><p>Two.</p></td><td><p>Three.</p>"
                    "<table><tr><td>a</td><td>b</td></tr></table></td></tr></table>end"),
            "One.\n\nTwo.\n\nThree.\n\na\tb\n\nend\n");
  const auto row = [](const std::vector<std::string>& cells) {
    std::string xml = "<w:tr>";
    for (const std::string& cell : cells) {
      xml += "<w:tc><w:p><w:r><w:t>" + cell + "</w:t></w:r></w:p></w:tc>";
    }
    return xml + "</w:tr>";
  };
  EXPECT_EQ(text_of(test::make_docx({"Text</w:t></w:r></w:p><w:tbl>" + row({"", "a", "b"}) +
                                     row({"c", "", "d"}) + row({"", "", "e"}) + row({"f", "", ""}) +
                                     "</w:tbl><w:p><w:r><w:t>end"})),
            "Text\n\n\ta\tb\nc\t\td\n\t\te\nf\n\nend\n");
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

/// A Word document of paragraphs, whose lists are in `numbering` and whose styles in `styles`.
std::string make_numbered(const std::string& paragraphs, const std::string& numbering,
                          const std::string& styles = "") {
  const auto part = [](const char* name, const std::string& content) {
    return fmt::format("<w:{0} xmlns:w=\"urn:w\" xmlns:mc=\"urn:mc\">{1}</w:{0}>", name, content);
  };
  return test::make_zip({{"word/document.xml", part("document", paragraphs)},
                         {"word/numbering.xml", part("numbering", numbering)},
                         {"word/styles.xml", part("styles", styles)}});
}

std::string word_level(int level, const char* format, const char* text,
                       const std::string& more = "<w:start w:val=\"1\"/>") {
  return fmt::format(
      "<w:lvl w:ilvl=\"{}\">{}<w:numFmt w:val=\"{}\"/><w:lvlText w:val=\"{}\"/></w:lvl>", level,
      more, format, text);
}

std::string word_layout(int id, const std::string& levels) {
  return fmt::format("<w:abstractNum w:abstractNumId=\"{}\">{}</w:abstractNum>", id, levels);
}

std::string word_list(int id, int layout, const std::string& changes = "") {
  return fmt::format("<w:num w:numId=\"{}\"><w:abstractNumId w:val=\"{}\"/>{}</w:num>", id, layout,
                     changes);
}

/// A paragraph of list `id`.
std::string word_item(int id, int level, const std::string& text, const char* more = "") {
  return fmt::format(
      "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{}\"/><w:numId w:val=\"{}\"/></w:numPr>{}</w:pPr>"
      "<w:r><w:t>{}</w:t></w:r></w:p>",
      level, id, more, text);
}

std::string word_paragraph(const char* style, const char* text) {
  return fmt::format("<w:p><w:pPr><w:pStyle w:val=\"{}\"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>",
                     style, text);
}

TEST(DocumentReader, WordListsHaveTheirNumbers) {
  const std::string numbering =
      word_layout(7, word_level(0, "decimal", "%1.") + word_level(1, "lowerLetter", "%2)") +
                         word_level(2, "upperRoman", "%1.%2.%3")) +
      word_layout(8, word_level(0, "bullet", "\xef\x82\xb7")) + word_list(1, 7) + word_list(2, 8);
  EXPECT_EQ(text_of(make_numbered(
                word_item(1, 0, "one") + word_item(1, 1, "a") + word_item(1, 1, "b") +
                    word_item(1, 2, "deep") + "<w:p><w:r><w:t>between</w:t></w:r></w:p>" +
                    word_item(1, 0, "two") + word_item(1, 1, "anew") + word_item(2, 0, "dot") +
                    word_item(1, 0, "", "<w:rPr><w:del/></w:rPr>") + word_item(1, 0, "") +
                    word_item(1, 0, "four") + word_item(0, 0, "none"),
                numbering)),
            "1. one\n\na) a\n\nb) b\n\n1.b.I deep\n\nbetween\n\n2. two\n\na) anew\n\n- dot\n\n"
            "4. four\n\nnone\n");
}

TEST(DocumentReader, WordListsBeginAndBeginAnewWhereTheySay) {
  const std::string start3 = "<w:start w:val=\"3\"/>";
  const std::string go_on = "<w:start w:val=\"1\"/><w:lvlRestart w:val=\"0\"/>";
  const std::string legal = "<w:start w:val=\"1\"/><w:isLgl/>";
  const std::string numbering =
      word_layout(1, word_level(0, "upperRoman", "%1.", start3) +
                         word_level(1, "decimal", "%2)", go_on) +
                         word_level(2, "decimal", "%1-%3", legal)) +
      word_list(1, 1) + word_list(2, 1) +
      word_list(3, 1,
                "<w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"27\"/>" +
                    word_level(0, "upperLetter", "%1:") + "</w:lvlOverride>");
  EXPECT_EQ(
      text_of(make_numbered(word_item(1, 0, "x") + word_item(1, 1, "x") + word_item(1, 2, "x") +
                                word_item(2, 0, "the same numbers go on") + word_item(2, 1, "on") +
                                word_item(3, 0, "x") + word_item(3, 0, "x") + word_item(1, 0, "x"),
                            numbering)),
      "III. x\n\n1) x\n\n3-1 x\n\nIV. the same numbers go on\n\n2) on\n\nAA: x\n\nBB: x\n\n"
      "XXIX. x\n");
}

TEST(DocumentReader, WordStylesBringNumbers) {
  const std::string numbering =
      word_layout(
          1,
          word_level(0, "decimal", "%1", "<w:start w:val=\"1\"/><w:pStyle w:val=\"H1\"/>") +
              word_level(1, "decimal", "%1.%2", "<w:start w:val=\"1\"/><w:pStyle w:val=\"H2\"/>")) +
      word_layout(2, "<w:numStyleLink w:val=\"Steps\"/>") +
      word_layout(3, "<w:styleLink w:val=\"Steps\"/>" + word_level(0, "ordinal", "Step %1:",
                                                                   "<w:start w:val=\"2\"/>"
                                                                   "<w:suff w:val=\"nothing\"/>")) +
      word_layout(4,
                  "<w:lvl w:ilvl=\"0\"><w:start w:val=\"8\"/><mc:AlternateContent><mc:Choice>"
                  "<w:numFmt w:val=\"custom\" w:format=\"001, 002, 003, ...\"/></mc:Choice>"
                  "<mc:Fallback><w:numFmt w:val=\"decimal\"/></mc:Fallback>"
                  "</mc:AlternateContent><w:lvlText w:val=\"%1\"/></w:lvl>") +
      word_list(1, 1) + word_list(2, 2) + word_list(4, 4);
  const auto style = [](const char* id, const char* content, const char* more = "") {
    return fmt::format("<w:style w:type=\"paragraph\" w:styleId=\"{}\"{}>{}</w:style>", id, more,
                       content);
  };
  const std::string styles =
      style("Plain", "", " w:default=\"1\"") +
      style("H1", "<w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr>") +
      style("H2", "<w:basedOn w:val=\"H1\"/>") + style("H2b", "<w:basedOn w:val=\"H2\"/>") +
      style("Loop", "<w:basedOn w:val=\"Loop\"/>");
  EXPECT_EQ(
      text_of(make_numbered(word_paragraph("H1", "First") + word_paragraph("H2", "Part") +
                                word_paragraph("H2b", "Part") + word_paragraph("Plain", "text") +
                                word_paragraph("Loop", "text") + word_item(2, 0, " go") +
                                word_item(2, 0, " on") + word_item(4, 0, "zeros") +
                                word_paragraph("H1", "Second"),
                            numbering, styles)),
      "1 First\n\n1.1 Part\n\n1.2 Part\n\ntext\n\ntext\n\nStep 2nd: go\n\nStep 3rd: on\n\n"
      "008 zeros\n\n2 Second\n");
}

TEST(DocumentReader, NumbersOfWordListsHaveBounds) {
  ReadLimits limits;
  limits.most_text_bytes = 200'000;
  std::string long_text;
  for (int i = 0; i < 500; ++i) long_text += "%1";
  const std::string numbering =
      word_layout(1, word_level(0, "upperRoman", long_text.c_str(), "<w:start w:val=\"3888\"/>")) +
      word_list(1, 1);
  std::string items;
  for (int i = 0; i < 100; ++i) items += word_item(1, 0, "x");
  test::expect_error(ErrorCode::kUsage, {"a.docx", "more than 200000 bytes of text"},
                     [&] { document_text(make_numbered(items, numbering), "a.docx", limits); });
  long_text.append(100, 'x');
  test::expect_error(ErrorCode::kUsage, {"a.docx: word/numbering.xml", "1100 bytes"}, [&] {
    text_of(make_numbered("", word_layout(1, word_level(0, "decimal", long_text.c_str()))),
            "a.docx");
  });
  // as large as a number can be, below an overflow
  const std::string most =
      word_layout(1, word_level(0, "lowerRoman", "%1", "<w:start w:val=\"2147483647\"/>")) +
      word_list(1, 1);
  EXPECT_EQ(text_of(make_numbered(word_item(1, 0, "x") + word_item(1, 0, "y"), most)),
            "2147483647 x\n\n2147483648 y\n");
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

TEST(DocumentReader, TablesOfPdfsKeepTheirRows) {
  std::vector<test::PlacedText> bill = {{50, 0, "A bill for some things."}};
  const std::vector<std::vector<std::string>> rows = {{"Item", "Number", "Price", "Total"},
                                                      {"Blue widget", "12", "3.50", "42.00"},
                                                      {"Red widget", "3", "", "30.00"},
                                                      {"Shipping", "", "", "8.90"}};
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) {
      const int x = 50 + 120 * static_cast<int>(i), y = 40 + 20 * static_cast<int>(row);
      if (!rows[row][i].empty()) bill.push_back({x, y, rows[row][i]});
    }
  }
  bill.push_back({50, 150, "It is to be paid in thirty days."});
  const PagedText text =
      paged_document_text(test::make_placed_pdf({{{50, 0, "One."}}, bill}), "bill.pdf");
  EXPECT_EQ(text.text,
            "One.\n\nA bill for some things.\n\nItem\tNumber\tPrice\tTotal\n"
            "Blue widget\t12\t3.50\t42.00\nRed widget\t3\t\t30.00\nShipping\t\t\t8.90\n\n"
            "It is to be paid in thirty days.\n");
  EXPECT_EQ(text.pages, (std::vector<size_t>{0, 6}));
}

TEST(DocumentReader, ColumnsOfPdfsAreReadOneAfterTheOther) {
  std::vector<test::PlacedText> paper;
  for (int i = 0; i < 12; ++i) {
    paper.push_back({50, 14 * i, fmt::format("left column, its line {:02} of all", i)});
    paper.push_back({320, 14 * i, fmt::format("right column, its line {:02} of all", i)});
  }
  for (int i = 0; i < 3; ++i) {  // a small table in a column
    for (int j = 0; j < 3; ++j)
      paper.push_back({50 + 60 * j, 200 + 30 * i, fmt::format("{}", i * j)});
  }
  const std::string text = text_of(test::make_placed_pdf({paper}));
  EXPECT_LT(text.find("left column, its line 11"), text.find("right column, its line 00")) << text;
}

TEST(PdfTables, FindsWhatIsLeftOfTables) {
  EXPECT_TRUE(may_have_table("Text.\n\nItem\n\nNumber\n\nPrice\n\nTotal\n\nText\nand more.\n"));
  EXPECT_FALSE(may_have_table("One\ntwo\nthree\nfour\n"));
  EXPECT_FALSE(may_have_table("Item\n\nNumber\n\nText of several\nlines.\n\nPrice\n\nTotal\n"));
  EXPECT_FALSE(may_have_table(""));
}

TEST(PdfTables, SeparatesCellsByTabs) {
  EXPECT_EQ(page_with_tables("Prose that is here be-\nfore a table.\n\n"
                             "             2023     2022\n"
                             "  Revenue    1,204   1,100\n\n"
                             "  Other                 12\n"
                             "  größere    (404)   (352)\n"
                             "             again\n"
                             "Prose that goes over all of the columns.\n"),
            "Prose that is here before a table.\n\n\t2023\t2022\nRevenue\t1,204\t1,100\n"
            "Other\t\t12\ngrößere\t(404)\t(352)\n\tagain\n"
            "Prose that goes over all of the columns.\n");
}

TEST(PdfTables, LeavesOtherPagesAlone) {
  EXPECT_FALSE(page_with_tables("A page   of text\nwithout a table\n"));
  EXPECT_FALSE(page_with_tables(""));
  EXPECT_FALSE(page_with_tables("  •    first\n  •    second\n  •    third\n  •    last\n"));
  const std::string table = "a     b     c\nd     e     f\ng     h     i\n";
  EXPECT_TRUE(page_with_tables(table));
  std::string columns, staggered;
  for (int i = 0; i < 4; ++i) {
    columns += "words of the left side      words of the right side\n";
    staggered += "words of the left side\n" + std::string(40, ' ') + "words of the right side\n";
  }
  EXPECT_FALSE(page_with_tables(columns + table));
  EXPECT_FALSE(page_with_tables(staggered + table));
  EXPECT_FALSE(page_with_tables(table + std::string(2000, ' ') + "far\n"));
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
