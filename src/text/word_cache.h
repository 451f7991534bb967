// SPDX-License-Identifier: MIT
// WordCache: remembers the ids of a text's words, so that a repeated word is copied. Its size is
// bounded, and small for short texts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace snapkv {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 48;

  /// For a text of `text_bytes` bytes whose ids are appended to `out`. The text and `out` must
  /// outlive the cache.
  WordCache(size_t text_bytes, std::vector<int32_t>& out)
      : out_(out), entries_(std::clamp(std::bit_ceil(text_bytes / 8), kFewest, kMost)) {}

  /// Appends the word's ids and returns true if they are known. Equal words of different `kind` (0
  /// or 1) are kept apart.
  bool append(std::string_view word, uint32_t kind) {
    if (word.size() > kMaxWordBytes) return false;
    const uint64_t hash = hash_of(word, kind);
    const Entry& e = entries_[hash & (entries_.size() - 1)];
    if (e.hash != hash || e.length != word.size() || e.kind != kind ||
        std::memcmp(e.word, word.data(), word.size()) != 0) {
      return false;
    }
    const size_t end = out_.size();
    out_.resize(end + e.count);
    for (uint32_t i = 0; i < e.count; ++i) out_[end + i] = out_[e.begin + i];
    return true;
  }

  /// Records that the word became the ids of `out` from `begin` on.
  void note(std::string_view word, uint32_t kind, size_t begin) {
    if (word.size() > kMaxWordBytes) return;
    const uint64_t hash = hash_of(word, kind);
    entries_[hash & (entries_.size() - 1)] = {hash,
                                              word.data(),
                                              static_cast<uint8_t>(word.size()),
                                              static_cast<uint8_t>(kind),
                                              static_cast<uint32_t>(out_.size() - begin),
                                              begin};
  }

 private:
  static constexpr size_t kFewest = 1 << 8;
  static constexpr size_t kMost = 1 << 16;  // 2.5 MB
  struct Entry {
    uint64_t hash = 0;
    const char* word = nullptr;
    uint8_t length = 0;  // no word is empty
    uint8_t kind = 0;
    uint32_t count = 0;
    size_t begin = 0;  // index into out_
  };

  static uint64_t hash_of(std::string_view word, uint32_t kind) {
    uint64_t h = word.size() * 2 + kind;
    for (size_t i = 0; i < word.size(); i += 8) {
      uint64_t part = 0;
      std::memcpy(&part, word.data() + i, std::min<size_t>(word.size() - i, 8));
      h = (h ^ part) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }

  std::vector<int32_t>& out_;
  std::vector<Entry> entries_;  // size a power of two; each slot holds its latest word, by hash
};

}  // namespace snapkv
