// SPDX-License-Identifier: MIT
#include "snapkv/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace snapkv {
namespace {

/// The border table of Knuth, Morris and Pratt (1977).
std::vector<size_t> borders_of(std::string_view text) {
  std::vector<size_t> border(text.size());
  size_t n = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (n > 0 && text[i] != text[n]) n = border[n - 1];
    if (text[i] == text[n]) ++n;
    border[i] = n;
  }
  return border;
}

/// Bytes of the longest prefix of `text` that begins a valid character; at least 1.
size_t broken_length(std::string_view text) {
  size_t n = 1;
  while (n < text.size() && utf8::incomplete_length(text.substr(0, n + 1)) == n + 1) ++n;
  return n;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    if (stop.empty()) fail(ErrorCode::kUsage, "a stop string is empty: it would end every answer");
    if (!utf8::is_valid(stop)) fail(ErrorCode::kUsage, "a stop string is not valid UTF-8");
    std::vector<size_t> border = borders_of(stop);
    patterns_.push_back({std::move(stop), std::move(border), 0});
  }
  // Of two stop strings that are complete at the same time, the longer one counts.
  std::stable_sort(patterns_.begin(), patterns_.end(), [](const Pattern& a, const Pattern& b) {
    return a.text.size() > b.text.size();
  });
}

std::string TextStream::decode(std::string_view bytes, bool at_end) {
  bytes_ += bytes;
  std::string_view rest = bytes_;
  std::string text;
  while (!rest.empty()) {
    const size_t n = utf8::valid_length(rest);
    if (n > 0) {
      text += rest.substr(0, n);
      rest.remove_prefix(n);
    } else if (!at_end && utf8::incomplete_length(rest) == rest.size()) {
      break;
    } else {
      text += utf8::kReplacement;
      rest.remove_prefix(broken_length(rest));
    }
  }
  bytes_ = std::string(rest);
  return text;
}

std::string TextStream::search(std::string text) {
  if (patterns_.empty()) return text;
  const size_t before = held_.size();
  held_ += text;
  for (size_t at = before; at < held_.size(); ++at) {
    for (Pattern& p : patterns_) {
      while (p.matched > 0 && p.text[p.matched] != held_[at]) p.matched = p.border[p.matched - 1];
      if (p.text[p.matched] == held_[at]) ++p.matched;
      if (p.matched < p.text.size()) continue;
      stopped_ = true;
      stop_ = p.text;
      held_.resize(at + 1 - p.text.size());
      return std::exchange(held_, {});
    }
  }
  size_t keep = 0;
  for (const Pattern& p : patterns_) keep = std::max(keep, p.matched);
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  return search(decode(bytes, /*at_end=*/false));
}

std::string TextStream::finish() {
  if (stopped_) return {};
  std::string text = search(decode({}, /*at_end=*/true));
  if (!stopped_) text += std::exchange(held_, {});
  return text;
}

}  // namespace snapkv
