// SPDX-License-Identifier: MIT
#include "cli/chat/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

namespace snapkv::cli {
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
  if (!text.empty()) show_(text, !closing_.empty());
}

void ReasoningStream::push(std::string_view text) {
  held_ += text;
  while (true) {
    size_t at = std::string::npos, end = 0, kept = 0;
    std::string next;
    if (!closing_.empty()) {
      at = held_.find(closing_);
      end = at + closing_.size();
      kept = begun(held_, closing_);
    } else {
      for (const Tags& tags : kTags) {
        kept = std::max(kept, begun(held_, tags.opening));
        const size_t found = held_.find(tags.opening);
        if (found >= at) continue;
        at = found;
        end = at;  // the tag itself is shown as reasoning
        next = tags.closing;
      }
    }
    if (at == std::string::npos) {
      show(std::string_view(held_).substr(0, held_.size() - kept));
      held_.erase(0, held_.size() - kept);
      return;
    }
    show(std::string_view(held_).substr(0, end));
    held_.erase(0, end);
    closing_ = next;
    if (next.empty()) continue;
    // past the opening tag, so that it is not found again
    const size_t tag = std::find_if(kTags.begin(), kTags.end(), [&](const Tags& t) {
                         return t.closing == next;
                       })->opening.size();
    show(std::string_view(held_).substr(0, tag));
    held_.erase(0, tag);
  }
}

void ReasoningStream::finish() {
  show(held_);
  held_.clear();
}

}  // namespace snapkv::cli
