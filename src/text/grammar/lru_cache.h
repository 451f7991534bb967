// SPDX-License-Identifier: MIT
// LruCache: values by number, in so many bytes; what was not asked for the longest goes first. Used
// by TokenMasks.
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

  /// Null where there is none. Valid until the next put().
  const Value* find(int32_t key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Of a key that has no value. The value stays whatever its size is.
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
