// SPDX-License-Identifier: MIT
// The fuzz target for chat templates: libFuzzer's entry point (preset `fuzz`), also linked into
// tests/text/jinja, which replays corpus_jinja/ and mutations of templates.
#include "tests/fuzz/fuzz_jinja.h"

#include <cstdint>

#include "base/check.h"
#include "snapkv/chat.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {

Rendering render_hostile(std::string_view bytes) {
  const size_t end = bytes.find('\0');
  const bool has_json = end != std::string_view::npos;
  Rendering outcome = Rendering::kNoTemplate;
  try {
    const auto tmpl = ChatTemplate::parse(bytes.substr(0, end), "fuzz");
    outcome = Rendering::kError;
    const RenderedChat chat = tmpl.render(has_json ? bytes.substr(end + 1) : "{}", 0);
    outcome = Rendering::kText;
    size_t at = 0;
    for (const ByteRange& range : chat.input) {
      SNAPKV_CHECK(at <= range.begin && range.begin < range.end);
      at = range.end;
    }
    SNAPKV_CHECK(at <= chat.text.size());
  } catch (const Error&) {
    // the expected outcome for bad input
  }
  return outcome;
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::render_hostile({reinterpret_cast<const char*>(data), size});
  return 0;
}
