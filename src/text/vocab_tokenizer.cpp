// SPDX-License-Identifier: MIT
#include "text/vocab_tokenizer.h"

#include "base/error.h"

namespace snapkv {

void check_text_length(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return;
  fail(ErrorCode::kRuntime, "a text of {} bytes is too long to tokenize, the most is {}",
       text.size(), kMaxTextBytes);
}

std::string VocabTokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string out;
  bool strip = vocab_.add_space_prefix;
  for (const int32_t id : ids) {
    const std::string text = piece(id, special);
    if (vocab_.is_special(id)) {
      out += text;
      strip = vocab_.add_space_prefix;
      continue;
    }
    out.append(text, strip && text.starts_with(' ') ? 1 : 0);
    strip = false;
  }
  return out;
}

}  // namespace snapkv
