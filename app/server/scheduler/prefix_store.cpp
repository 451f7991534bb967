// SPDX-License-Identifier: MIT
#include "server/scheduler/prefix_store.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace snapkv::server {
namespace {

int64_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

/// A seam between two turns is this many tokens at most.
constexpr int64_t kSeam = 8;

}  // namespace

bool PrefixStore::Match::goes_on() const {
  return prefix != nullptr && n_alike + kSeam >= std::ssize(prefix->tokens());
}

PrefixStore::Match PrefixStore::find(std::span<const int32_t> tokens, int64_t n_ctx) {
  auto best = entries_.end();
  Match match;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->n_ctx != n_ctx) continue;
    const int64_t n_alike = common_beginning(entry->prefix->tokens(), tokens);
    const int64_t n = entry->prefix->last_cut(n_alike);
    if (n <= match.n_tokens) continue;
    best = entry;
    match = {entry->prefix, n, n_alike};
  }
  if (best == entries_.end()) return {};
  best->used_again = true;
  entries_.splice(entries_.begin(), entries_, best);
  return match;
}

void PrefixStore::add(std::shared_ptr<const KvPrefix> prefix, int64_t n_ctx) {
  const std::span<const int32_t> tokens = prefix->tokens();
  bool used_again = false;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const int64_t n_alike = common_beginning(entry->prefix->tokens(), tokens);
    const Match match = {entry->prefix, n_alike, n_alike};
    if (entry->n_ctx == n_ctx && match.goes_on()) {
      used_again = used_again || entry->used_again;
      erase(entry);
    }
    entry = next;
  }
  while (bytes_with(prefix.get()) > limit_ && drop_one()) {
  }
  bytes_ = bytes_with(prefix.get());
  entries_.push_front({std::move(prefix), n_ctx, used_again});
}

bool PrefixStore::drop_one() {
  auto victim = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->prefix.use_count() > 1) continue;  // still being read from
    if (victim == entries_.end() || !entry->used_again || victim->used_again) victim = entry;
  }
  if (victim == entries_.end()) return false;
  erase(victim);
  return true;
}

void PrefixStore::erase(std::list<Entry>::iterator entry) {
  entries_.erase(entry);
  bytes_ = bytes_with(nullptr);
}

size_t PrefixStore::bytes_with(const KvPrefix* another) const {
  std::vector<const KvPrefix*> all;
  if (another != nullptr) all.push_back(another);
  for (const Entry& entry : entries_) all.push_back(entry.prefix.get());
  return KvPrefix::bytes(all);
}

}  // namespace snapkv::server
