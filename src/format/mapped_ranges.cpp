// SPDX-License-Identifier: MIT
#include "format/mapped_ranges.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <utility>

#include "snapkv/mapped_file.h"

namespace snapkv {
namespace {

// Signal handlers read the table, so there is no lock for reading. An entry is valid while `begin`
// is not 0; `begin` is written last when an entry is made and first when it is removed.
struct Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<const char*> path{nullptr};
};
std::array<Slot, 1024> g_slots;
std::mutex g_mutex;  // for writers

static_assert(std::atomic<uintptr_t>::is_always_lock_free);
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

MappedRange::MappedRange(const void* data, size_t bytes, const char* path) {
  const std::lock_guard lock(g_mutex);
  for (int i = 0; i < std::ssize(g_slots); ++i) {
    Slot& slot = g_slots[i];
    if (slot.begin.load(std::memory_order_relaxed) != 0) continue;
    const auto begin = reinterpret_cast<uintptr_t>(data);
    slot.path.store(path, std::memory_order_relaxed);
    slot.end.store(begin + bytes, std::memory_order_relaxed);
    slot.begin.store(begin, std::memory_order_release);
    slot_ = i;
    return;
  }
}

MappedRange::MappedRange(MappedRange&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

MappedRange::~MappedRange() {
  if (slot_ < 0) return;
  const std::lock_guard lock(g_mutex);
  g_slots[slot_].begin.store(0, std::memory_order_release);
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Slot& slot : g_slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin != 0 && at >= begin && at < slot.end.load(std::memory_order_relaxed)) {
      return slot.path.load(std::memory_order_relaxed);
    }
  }
  return nullptr;
}

}  // namespace snapkv
