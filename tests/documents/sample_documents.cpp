// SPDX-License-Identifier: MIT
#include "documents/sample_documents.h"

#include <fmt/core.h>
#include <zip.h>

#include <sstream>

#include "base/check.h"

namespace snapkv::test {

std::string make_zip(const std::vector<std::pair<std::string, std::string>>& files) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const archive = zip_source_buffer_create(nullptr, 0, 0, &error);
  SNAPKV_CHECK(archive != nullptr);
  zip_source_keep(archive);
  zip_t* const zip = zip_open_from_source(archive, ZIP_TRUNCATE, &error);
  SNAPKV_CHECK(zip != nullptr);
  for (const auto& [name, content] : files) {
    zip_source_t* const source = zip_source_buffer(zip, content.data(), content.size(), 0);
    SNAPKV_CHECK(zip_file_add(zip, name.c_str(), source, 0) >= 0);
  }
  SNAPKV_CHECK(zip_close(zip) == 0);
  SNAPKV_CHECK(zip_source_open(archive) == 0);
  std::string bytes;
  char block[4096];
  for (zip_int64_t n = 0; (n = zip_source_read(archive, block, sizeof block)) > 0;) {
    bytes.append(block, static_cast<size_t>(n));
  }
  zip_source_close(archive);
  zip_source_free(archive);
  zip_error_fini(&error);
  return bytes;
}

namespace {

/// A page's text in lines that fit on it.
std::string page_content(const std::string& text) {
  constexpr size_t kColumns = 80;
  std::string content = "BT /F1 10 Tf 12 TL 50 800 Td (";
  std::istringstream words(text);
  size_t column = 0;
  for (std::string word; words >> word;) {
    if (column > 0 && column + word.size() > kColumns) {
      content += ") Tj T* (";
      column = 0;
    }
    content += (column > 0 ? " " : "") + word;
    column += word.size() + 1;
  }
  return content + ") Tj ET";
}

/// A PDF of pages with these contents, in PDF's operators.
std::string pdf_of_contents(const std::vector<std::string>& contents) {
  std::string kids;
  std::vector<std::string> objects(3);
  objects[2] =
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding "
      "/Differences [1 /uni00AD /uni05D0 /uni05D1] >> >>";
  for (const std::string& content : contents) {
    const size_t n = objects.size() + 1;
    kids += fmt::format("{} 0 R ", n);
    objects.push_back(
        fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R "
                    "/Resources << /Font << /F1 3 0 R >> >> >>",
                    n + 1));
    objects.push_back(
        fmt::format("<< /Length {} >>\nstream\n{}\nendstream", content.size(), content));
  }
  objects[0] = "<< /Type /Catalog /Pages 2 0 R >>";
  objects[1] = fmt::format("<< /Type /Pages /Count {} /Kids [{}] >>", contents.size(), kids);
  std::string pdf = "%PDF-1.4\n";
  std::string table = fmt::format("xref\n0 {}\n0000000000 65535 f \n", objects.size() + 1);
  for (size_t i = 0; i < objects.size(); ++i) {
    table += fmt::format("{:010} 00000 n \n", pdf.size());
    pdf += fmt::format("{} 0 obj\n{}\nendobj\n", i + 1, objects[i]);
  }
  const size_t table_at = pdf.size();
  return pdf + table +
         fmt::format("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n",
                     objects.size() + 1, table_at);
}

}  // namespace

std::string make_pdf(const std::vector<std::string>& pages) {
  std::vector<std::string> contents;
  for (const std::string& page : pages) contents.push_back(page_content(page));
  return pdf_of_contents(contents);
}

std::string make_placed_pdf(const std::vector<std::vector<PlacedText>>& pages) {
  std::vector<std::string> contents;
  for (const std::vector<PlacedText>& page : pages) {
    std::string& content = contents.emplace_back();
    for (const PlacedText& text : page) {
      content += fmt::format("BT /F1 10 Tf {} {} Td ({}) Tj ET\n", text.x, 800 - text.y, text.text);
    }
  }
  return pdf_of_contents(contents);
}

std::string make_docx(const std::vector<std::string>& paragraphs) {
  std::string body;
  for (const std::string& paragraph : paragraphs) {
    body +=
        "<w:p><w:pPr><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr><w:r><w:t "
        "xml:space=\"preserve\">" +
        paragraph + "</w:t></w:r></w:p>";
  }
  return make_zip({{"[Content_Types].xml", "<Types/>"},
                   {"word/document.xml",
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document xmlns:w=\"urn:w\" "
                    "xmlns:mc=\"urn:mc\"><w:body>" +
                        body + "</w:body></w:document>"}});
}

std::string make_epub(const std::vector<std::string>& chapters) {
  std::string items, spine;
  std::vector<std::pair<std::string, std::string>> files = {
      {"mimetype", "application/epub+zip"},
      {"META-INF/container.xml",
       "<container xmlns=\"urn:oasis:names:tc:opendocument:xmlns:container\"><rootfiles>"
       "<rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>"}};
  for (size_t i = chapters.size(); i-- > 0;) {
    items += fmt::format("<item id=\"c{}\" href=\"text/chapter%20{}.xhtml\"/>", i, i);
    files.emplace_back(fmt::format("OEBPS/text/chapter {}.xhtml", i),
                       "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
                       "<title>T</title><script src=\"x\"/></head><body>" +
                           chapters[i] + "</body></html>");
  }
  for (size_t i = 0; i < chapters.size(); ++i) spine += fmt::format("<itemref idref=\"c{}\"/>", i);
  files.emplace_back("OEBPS/book.opf", "<package><manifest>" + items + "</manifest><spine>" +
                                           spine + "</spine></package>");
  return make_zip(files);
}

}  // namespace snapkv::test
