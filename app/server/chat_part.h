// SPDX-License-Identifier: MIT
// chat_part(): a part of what a chat template made, which still knows which of its bytes are data.
// Used where only the new part of a conversation is read.
#pragma once

#include <algorithm>
#include <string>

#include "snapkv/chat.h"

namespace snapkv::server {

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

}  // namespace snapkv::server
