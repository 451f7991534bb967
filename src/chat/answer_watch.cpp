// SPDX-License-Identifier: MIT
#include "chat/answer_watch.h"

#include "chat/text_parts.h"
#include "chat/tools.h"

namespace snapkv::chat {

void AnswerWatch::push(std::string_view text) {
  begun_.reset();
  for (size_t i = 0; i < text.size(); ++i) {
    (void)parser_.push(text.substr(i, 1));
    if (begun_) *begun_ += text[i];
    if (is_space(text[i])) continue;
    if (const auto start = parser_.arguments_start()) {
      begun_ = begun_arguments_text(*start);
    } else if (parser_.awaits_call()) {
      begun_ = begun_call_text(format_);
    }
  }
}

}  // namespace snapkv::chat
