// SPDX-License-Identifier: MIT
// POST /v1/documents/text: documents become text, and what is none is refused by its name.
#include <cstdlib>

#include "documents/sample_documents.h"
#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

TEST_F(Http, DocumentsBecomeText) {
  http_options_.most_body = 100'000;
  start();
  const auto send = [&](const std::string& bytes, const std::string& name) {
    return client().Post("/v1/documents/text?name=" + name, bytes, "application/octet-stream");
  };
  const auto text_of = [&](const std::string& bytes, const std::string& name) {
    const auto response = send(bytes, name);
    EXPECT_EQ(response->status, 200) << response->body;
    return Json::parse(response->body).value("text", "");
  };
  EXPECT_EQ(text_of("Gr\xf6\xdf"
                    "e",
                    "letter.txt"),
            "Größe");
  EXPECT_NE(
      text_of("<html><body><p>One</p><script>no</script></body></html>", "a.html").find("One"),
      std::string::npos);
  EXPECT_EQ(text_of("<html><script>no</script><p>One</p></html>", "a.html").find("no"),
            std::string::npos);
  EXPECT_NE(text_of(make_docx({"First.", "Second."}), "a.docx").find("Second."), std::string::npos);
  EXPECT_NE(text_of(make_epub({"<p>A chapter.</p>"}), "a.epub").find("A chapter."),
            std::string::npos);
  if (std::system("pdftotext -v 2>/dev/null") == 0) {
    EXPECT_NE(text_of(make_pdf({"A page of words"}), "a.pdf").find("A page of words"),
              std::string::npos);
  }
  const auto photo = send(std::string("\xff\xd8\xff\xe0\0\x10JFIF", 10), "photo.jpg");
  EXPECT_EQ(photo->status, 400) << photo->body;
  EXPECT_NE(photo->body.find("photo.jpg: a JPEG image"), std::string::npos) << photo->body;
  EXPECT_EQ(send(std::string(100'001, 'a'), "long.txt")->status, 413);
  EXPECT_EQ(send("PK\x03\x04 broken", "a.docx")->status, 400);
  EXPECT_EQ(engine_.requests().size(), 0u);
}

TEST_F(Http, DocumentsNeedTheKeyToo) {
  service_options_.api_keys = {"secret"};
  start();
  EXPECT_EQ(client().Post("/v1/documents/text", "text", "text/plain")->status, 401);
}

}  // namespace
}  // namespace snapkv::test
