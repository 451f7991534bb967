// SPDX-License-Identifier: MIT
#include "engine/decode/lookup_draft.h"

#include <algorithm>

#include "base/hash.h"

namespace snapkv {
namespace {

/// Tokens before the two places that are alike, at most `most`.
int64_t count_alike(const std::vector<int32_t>& text, int64_t end, int64_t other, int64_t most) {
  int64_t n = 0;
  while (n < most && n < end && n < other && text[end - 1 - n] == text[other - 1 - n]) ++n;
  return n;
}

}  // namespace

size_t LookupDraft::Places::slot_of(const std::vector<int32_t>& text, int64_t end) const {
  const size_t mask = ends_.size() - 1;
  const uint64_t value = hash64(std::as_bytes(std::span(text).subspan(end - n_, n_)));
  for (size_t slot = (value ^ value >> 32) & mask;; slot = (slot + 1) & mask) {
    if (ends_[slot] == 0 || count_alike(text, end, ends_[slot], n_) == n_) return slot;
  }
}

void LookupDraft::Places::add(const std::vector<int32_t>& text, int64_t end) {
  if (2 * (n_used_ + 1) > std::ssize(ends_)) grow(text);
  int32_t& place = ends_[slot_of(text, end)];
  n_used_ += place == 0;
  place = static_cast<int32_t>(end);
}

void LookupDraft::Places::grow(const std::vector<int32_t>& text) {
  std::vector<int32_t> old(std::max<size_t>(64, 2 * ends_.size()));
  old.swap(ends_);
  for (const int32_t end : old) {
    if (end > 0) ends_[slot_of(text, end)] = end;
  }
}

int64_t LookupDraft::Places::find(const std::vector<int32_t>& text, int64_t end) const {
  if (ends_.empty()) return -1;
  const int32_t place = ends_[slot_of(text, end)];
  return place > 0 ? place : -1;
}

void LookupDraft::update(std::span<const int32_t> text) {
  text_.insert(text_.end(), text.begin() + std::ssize(text_), text.end());
  // the run at the text's end is looked up, and is noted when something has followed it
  for (; n_noted_ + 1 < std::ssize(text_); ++n_noted_) {
    const int64_t end = n_noted_ + 1;
    for (size_t i = 0; i < kLengths.size(); ++i) {
      if (end >= kLengths[i]) places_[i].add(text_, end);
    }
  }
}

LookupDraft::Guess LookupDraft::guess(int64_t most) const {
  const int64_t end = std::ssize(text_);
  for (size_t i = kLengths.size(); i-- > 0;) {
    if (end < kLengths[i]) continue;
    const int64_t place = places_[i].find(text_, end);
    if (place < 0) continue;
    const int64_t n = std::min(most, end - place);
    constexpr int64_t kMostMatched = 64;
    return {std::span(text_).subspan(place, n), count_alike(text_, end, place, kMostMatched)};
  }
  return {};
}

}  // namespace snapkv
