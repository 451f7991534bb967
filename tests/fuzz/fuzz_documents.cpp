// SPDX-License-Identifier: MIT
// The fuzz target for documents: HTML, EPUB, Word and text in any encoding. PDFs are left out: a
// process of poppler's reads them, one for each input. tests/documents replays mutations of both.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "documents/document_reader.h"
#include "snapkv/error.h"
#include "tests/fuzz/time_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.find("%PDF") != std::string::npos) return 0;
  const snapkv::test::TimeLimit limit;
  try {
    const std::string text =
        snapkv::documents::document_text(bytes, "input.file", {.most_text_bytes = 1 << 20});
    SNAPKV_CHECK(snapkv::utf8::is_valid(text));
  } catch (const snapkv::Error& e) {
    SNAPKV_CHECK(std::string(e.what()).starts_with("input.file"));
  }
  return 0;
}
