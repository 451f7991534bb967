// SPDX-License-Identifier: MIT
#include "engine/core/weight_pages.h"

#include <algorithm>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/huge_pages.h"
#include "base/log.h"
#include "base/timer.h"

namespace snapkv {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 20;
/// The share of a decode step's time that may be spent on moving weights after it.
constexpr double kShare = 1.0 / 8;
/// Smaller models are not moved: they are read from the processor's cache.
constexpr size_t kLeastBytes = size_t{64} << 20;
constexpr size_t kGap = 4096;  // alignment between tensors
/// A tensor that may be as large as all others together, and of which a token reads one row.
constexpr const char* kSparseTable = "per_layer_token_embd.weight";

}  // namespace

WeightPages::WeightPages(GgufFile& file, WeightMemory wanted)
    : file_(file),
      done_(wanted == WeightMemory::mapped || wanted == WeightMemory::copy ||
            huge_page_size() == 0) {
  if (wanted != WeightMemory::huge_pages) return;
  if (huge_page_size() == 0) {
    fail(ErrorCode::kRuntime,
         "weights in huge pages: /sys/kernel/mm/transparent_hugepage/enabled is never or missing, "
         "madvise or always is needed");
  }
  left_ = runs();
  while (!left_.empty()) {
    if (!move_piece()) {
      fail(ErrorCode::kDoesNotFit, "weights in huge pages: no memory after {} MiB",
           moved_bytes_ >> 20);
    }
  }
  done_ = true;
}

std::vector<WeightPages::Run> WeightPages::runs() const {
  std::vector<Run> all;
  for (const GgufTensor& t : file_.tensors()) {
    if (t.part == GgufTensor::kNoFile || t.name == kSparseTable) continue;
    all.push_back({t.part, t.file_offset, t.file_offset + t.bytes()});
  }
  std::sort(all.begin(), all.end(), [](const Run& a, const Run& b) {
    return std::pair(a.part, a.begin) < std::pair(b.part, b.begin);
  });
  std::vector<Run> runs;
  for (const Run& r : all) {
    if (!runs.empty() && runs.back().part == r.part && r.begin <= runs.back().end + kGap) {
      runs.back().end = std::max(runs.back().end, r.end);
    } else {
      runs.push_back(r);
    }
  }
  return runs;
}

size_t WeightPages::bytes_of(const std::vector<Run>& runs) {
  size_t bytes = 0;
  for (const Run& r : runs) bytes += r.end - r.begin;
  return bytes;
}

std::vector<WeightPages::Run> WeightPages::worth_moving() const {
  std::vector<Run> all = runs();
  std::reverse(all.begin(), all.end());
  const size_t bytes = bytes_of(all);
  // the copy cannot be dropped like the file's pages: leave as much again for everything else
  if (bytes < kLeastBytes || bytes > available_memory() / 2) all.clear();
  return all;
}

size_t WeightPages::bytes_to_move() const {
  const std::lock_guard lock(mutex_);
  if (done_) return 0;
  return bytes_of(begun_ ? left_ : worth_moving());
}

bool WeightPages::move_piece() {
  Run& run = left_.back();
  const size_t n = std::min(kPieceBytes, run.end - run.begin);
  const auto moved = file_.move_to_huge_pages(run.part, run.begin, n);
  if (!moved) return false;
  moved_bytes_ += *moved;
  run.begin += n;
  if (run.begin == run.end) left_.pop_back();
  return true;
}

void WeightPages::after_step(double seconds) {
  if (done_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || done_) return;
  if (!begun_) left_ = worth_moving();
  begun_ = true;
  credit_ += kShare * seconds;
  while (credit_ > 0 && !left_.empty()) {
    const Timer timer;
    if (!move_piece()) {
      log_warn("no more memory for weights in huge pages: the rest stays mapped");
      left_.clear();
    }
    credit_ -= timer.seconds();
  }
  if (!left_.empty()) return;
  done_ = true;
  if (moved_bytes_ > 0) log_info("{} MiB of weights are in huge pages", moved_bytes_ >> 20);
}

}  // namespace snapkv
