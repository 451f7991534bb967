// SPDX-License-Identifier: MIT
// chat_part(): a part of a rendered chat that still records which of its bytes are data; and
// unused_mark(), for a mark by which the beginning of the part is found. For reading only the new
// part of a conversation.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "snapkv/chat.h"

namespace snapkv {

/// Bytes [begin, end) of a rendered chat; to its end if `end` is not given.
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

/// `word`, which must not end in a dash, followed by as many dashes as make it absent from `text`.
/// A single pass, since a text may contain the word with any number of dashes.
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

/// The part that a template rendered after `mark`, which stands for a text of the conversation;
/// nothing if the template left that text out.
inline std::optional<RenderedChat> chat_after(const RenderedChat& chat, std::string_view mark) {
  const size_t at = chat.text.rfind(mark);
  if (at == std::string::npos) return std::nullopt;
  return chat_part(chat, at + mark.size());
}

}  // namespace snapkv
