// SPDX-License-Identifier: MIT
#include "server/api/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

namespace snapkv::server {
namespace {

struct Tags {
  std::string_view opening, closing;
};
constexpr std::array<Tags, 5> kTags = {{{"<think>", "</think>"},
                                        {"<thinking>", "</thinking>"},
                                        {"<reasoning>", "</reasoning>"},
                                        {"[THINK]", "[/THINK]"},
                                        {"<seed:think>", "</seed:think>"}}};

/// How many of the last bytes of `text` may be the beginning of `tag`.
size_t begun(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n) {
    if (tag.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

}  // namespace

ReasoningStream::ReasoningStream(std::string_view prompt, Show show) : show_(std::move(show)) {
  while (!prompt.empty() && (prompt.back() == '\n' || prompt.back() == ' ')) {
    prompt.remove_suffix(1);
  }
  for (const Tags& tags : kTags) {
    if (prompt.ends_with(tags.opening)) closing_ = tags.closing;
  }
}

void ReasoningStream::show(std::string_view text) {
  if (!text.empty()) show_(text, closing_.empty() ? Part::answer : Part::reasoning);
}

void ReasoningStream::show_tag(size_t size) {
  show_(std::string_view(held_).substr(0, size), Part::tag);
  held_.erase(0, size);
}

void ReasoningStream::push(std::string_view text) {
  held_ += text;
  while (true) {
    size_t at = std::string::npos, tag_size = 0, kept = 0;
    std::string_view next;  // the closing tag of what begins
    if (!closing_.empty()) {
      at = held_.find(closing_);
      tag_size = closing_.size();
      kept = begun(held_, closing_);
    } else {
      for (const Tags& tags : kTags) {
        kept = std::max(kept, begun(held_, tags.opening));
        const size_t found = held_.find(tags.opening);
        if (found >= at) continue;
        at = found;
        tag_size = tags.opening.size();
        next = tags.closing;
      }
    }
    const size_t n_shown = at == std::string::npos ? held_.size() - kept : at;
    show(std::string_view(held_).substr(0, n_shown));
    held_.erase(0, n_shown);
    if (at == std::string::npos) return;
    show_tag(tag_size);
    closing_ = next;
  }
}

void ReasoningStream::finish() {
  show(held_);
  held_.clear();
}

}  // namespace snapkv::server
