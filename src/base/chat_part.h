// SPDX-License-Identifier: MIT
// chat_part(): a part of what a chat template made, which still knows which of its bytes are data,
// and unused_mark(), by which its beginning is found. Used by programs and evaluations where only
// the new part of a conversation is read.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "snapkv/chat.h"

namespace snapkv {

/// Bytes [begin, end) of a rendered chat; without an end, to its own.
inline RenderedChat chat_part(const RenderedChat& chat, size_t begin,
                              size_t end = std::string::npos) {
  end = std::min(end, chat.text.size());
  RenderedChat part;
  part.text = chat.text.substr(begin, end - begin);
  for (const ByteRange& range : chat.input) {
    if (range.end <= begin || range.begin >= end) continue;
    part.input.push_back({std::max(range.begin, begin) - begin, std::min(range.end, end) - begin});
  }
  return part;
}

/// `word`, which ends in no dash, and as many dashes as it takes to be nowhere in `text`. One pass:
/// people may send a text that spells the word with any number of dashes.
inline std::string unused_mark(std::string_view word, std::string_view text) {
  size_t n_dashes = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at)) {
    at += word.size();
    const size_t end = std::min(text.find_first_not_of('-', at), text.size());
    n_dashes = std::max(n_dashes, end - at + 1);
    at = end;
  }
  return std::string(word) + std::string(n_dashes, '-');
}

/// What a template wrote after `mark`, which stands for a text of the conversation; nothing when
/// the template left that text out.
inline std::optional<RenderedChat> chat_after(const RenderedChat& chat, std::string_view mark) {
  const size_t at = chat.text.rfind(mark);
  if (at == std::string::npos) return std::nullopt;
  return chat_part(chat, at + mark.size());
}

}  // namespace snapkv
