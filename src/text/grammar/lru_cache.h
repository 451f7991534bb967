// SPDX-License-Identifier: MIT
// LruCache: values by number, up to a total size in bytes; the least recently used ones go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

namespace snapkv::grammar {

template <typename Value>
class LruCache {
 public:
  explicit LruCache(size_t n_bytes) : most_bytes_(n_bytes) {}

  /// Returns null if there is no value. The pointer is valid until the next put().
  const Value* find(int32_t key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Stores the value of a key that has none. The value is kept even if it alone is too large.
  const Value& put(int32_t key, Value value) {
    n_bytes_ += value.n_bytes();
    entries_.push_front({key, std::move(value)});
    places_[key] = entries_.begin();
    while (n_bytes_ > most_bytes_ && entries_.size() > 1) {
      n_bytes_ -= entries_.back().value.n_bytes();
      places_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return entries_.front().value;
  }

  size_t size() const { return entries_.size(); }
  size_t n_bytes() const { return n_bytes_; }

 private:
  struct Entry {
    int32_t key;
    Value value;
  };
  size_t most_bytes_;
  size_t n_bytes_ = 0;
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<int32_t, typename std::list<Entry>::iterator> places_;
};

}  // namespace snapkv::grammar
