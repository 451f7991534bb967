// SPDX-License-Identifier: MIT
#include "engine/core/weight_pages.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/huge_pages.h"
#include "base/log.h"
#include "base/timer.h"

namespace snapkv {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 20;
/// The share of a prompt's time, or of a decode step's, that may be spent on moving weights.
constexpr double kShare = 1.0 / 8;
/// All that is left is moved at once if that takes no longer than this many decode steps, each of
/// which is then about a quarter faster.
constexpr double kStepsAtOnce = 16;
/// Smaller models are not moved to huge pages alone: they are read from the processor's cache.
constexpr size_t kLeastBytes = size_t{64} << 20;
constexpr size_t kGap = 4096;  // alignment between tensors
/// A tensor that may be as large as all others together, and of which a token reads one row.
constexpr const char* kSparseTable = "per_layer_token_embd.weight";
/// Of which a token reads one row too, unless it also computes the logits.
constexpr const char* kEmbedding = "token_embd.weight";
constexpr const char* kOutput = "output.weight";

/// Whether a token reads only a few parts of it.
bool has_experts(const GgufTensor& t) { return t.name.find("_exps.") != std::string::npos; }

}  // namespace

WeightPages::WeightPages(GgufFile& file, ArrangedWeights* arranged, WeightMemory wanted)
    : file_(file),
      arranged_(arranged),
      done_(wanted == WeightMemory::mapped || wanted == WeightMemory::copy ||
            (huge_page_size() == 0 && arranged == nullptr)) {
  if (wanted != WeightMemory::huge_pages) {
    done_ = done_ || is_small(all_moves());  // then prompts need not ask again and again
    return;
  }
  if (huge_page_size() == 0) {
    fail(ErrorCode::kRuntime,
         "weights in huge pages: /sys/kernel/mm/transparent_hugepage/enabled is never or missing, "
         "madvise or always is needed");
  }
  left_ = all_moves();
  if (!reserve()) {
    fail(ErrorCode::kDoesNotFit, "weights in huge pages: no memory for {} MiB",
         left_.bytes() >> 20);
  }
  while (!left_.empty()) {
    if (!move_piece()) {
      fail(ErrorCode::kDoesNotFit, "weights in huge pages: no memory after {} MiB",
           moved_bytes_ >> 20);
    }
  }
  done_ = true;
}

size_t WeightPages::Moves::bytes() const {
  size_t bytes = 0;
  for (const GgufTensor* t : arranged) bytes += t->bytes();
  for (const Run& r : runs) bytes += r.end - r.begin;
  return bytes;
}

WeightPages::Moves WeightPages::all_moves() const {
  Moves moves;
  std::vector<const GgufTensor*> others;
  for (const GgufTensor& t : file_.tensors()) {
    if (t.part == GgufTensor::kNoFile || t.name == kSparseTable) continue;
    if (t.name == kEmbedding && file_.find_tensor(kOutput) != nullptr) continue;
    const bool is_arranged = arranged_ != nullptr && t.supported && arranged_->takes(t.tensor);
    (is_arranged ? moves.arranged : others).push_back(&t);
  }
  std::stable_partition(moves.arranged.begin(), moves.arranged.end(),
                        [](const GgufTensor* t) { return !has_experts(*t); });
  std::sort(others.begin(), others.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return std::tuple(has_experts(*a), a->part, a->file_offset) <
           std::tuple(has_experts(*b), b->part, b->file_offset);
  });
  for (const GgufTensor* t : others) {
    const Run run = {t->part, t->file_offset, t->file_offset + t->bytes()};
    std::vector<Run>& runs = moves.runs;
    if (!runs.empty() && runs.back().part == run.part && runs.back().begin <= run.begin &&
        run.begin <= runs.back().end + kGap) {
      runs.back().end = std::max(runs.back().end, run.end);
    } else {
      runs.push_back(run);
    }
  }
  if (huge_page_size() == 0) moves.runs.clear();
  std::reverse(moves.arranged.begin(), moves.arranged.end());
  std::reverse(moves.runs.begin(), moves.runs.end());
  return moves;
}

WeightPages::Moves WeightPages::worth_moving(size_t planned_bytes) const {
  Moves moves = all_moves();
  const size_t available = available_memory();
  // the copy cannot be dropped like the file's pages: leave as much again for everything else
  if (moves.bytes() > (available - std::min(available, planned_bytes)) / 2) return {};
  if (moves.bytes() < kLeastBytes) moves.runs.clear();
  return moves;
}

bool WeightPages::is_small(const Moves& moves) {
  return moves.arranged.empty() && moves.bytes() < kLeastBytes;
}

bool WeightPages::reserve() {
  std::vector<Tensor> weights;
  for (const GgufTensor* t : left_.arranged) weights.push_back(t->tensor);
  return weights.empty() || arranged_->reserve(weights);
}

size_t WeightPages::bytes_left() const {
  const size_t done =
      arranged_bytes_left_ > 0 ? left_.arranged.back()->bytes() - arranged_bytes_left_ : 0;
  return left_.bytes() - done;
}

size_t WeightPages::bytes_to_move() const {
  const std::lock_guard lock(mutex_);
  if (done_) return 0;
  return begun_ ? bytes_left() : worth_moving(0).bytes();
}

bool WeightPages::arrange_piece() {
  const GgufTensor& t = *left_.arranged.back();
  const size_t before = arranged_bytes_left_ > 0 ? arranged_bytes_left_ : t.bytes();
  arranged_bytes_left_ = arranged_->copy_next(t.tensor, kPieceBytes);
  moved_bytes_ += before - arranged_bytes_left_;
  if (arranged_bytes_left_ > 0) return true;
  file_.dont_need(t);
  left_.arranged.pop_back();
  return true;
}

bool WeightPages::move_piece() {
  if (!left_.arranged.empty()) return arrange_piece();
  Run& run = left_.runs.back();
  const size_t n = std::min(kPieceBytes, run.end - run.begin);
  const auto moved = file_.move_to_huge_pages(run.part, run.begin, n);
  if (!moved) return false;
  moved_bytes_ += *moved;
  run.begin += n;
  if (run.begin == run.end) left_.runs.pop_back();
  return true;
}

void WeightPages::begin(Moves moves) {
  begun_ = true;
  left_ = std::move(moves);
  if (reserve()) return;
  log_warn("no memory for {} MiB of weights in huge pages: they stay mapped", left_.bytes() >> 20);
  left_ = {};
}

void WeightPages::during_prompt(double seconds, size_t planned_bytes) {
  if (done_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || done_) return;
  if (!begun_) {
    Moves moves = worth_moving(planned_bytes);
    if (moves.empty()) return;  // a step may find more memory
    begin(std::move(moves));
  }
  spend(kShare * seconds, 0);
}

void WeightPages::after_step(double seconds) {
  if (done_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || done_) return;
  if (!begun_) begin(worth_moving(0));
  spend(kShare * seconds, kStepsAtOnce * seconds);
}

void WeightPages::spend(double seconds, double seconds_at_once) {
  credit_ += seconds;
  // from what the pieces before took; nothing is known before the first one
  const auto all_at_once = [&] {
    const auto moved = static_cast<double>(moved_bytes_);
    return moved > 0 &&
           static_cast<double>(bytes_left()) * moving_seconds_ / moved <= seconds_at_once;
  };
  while (!left_.empty() && (credit_ > 0 || all_at_once())) {
    const Timer timer;
    if (!move_piece()) {
      log_warn("no more memory for weights in huge pages: the rest stays mapped");
      left_ = {};
    }
    const double taken = timer.seconds();
    credit_ -= taken;
    moving_seconds_ += taken;
  }
  if (!left_.empty()) return;
  done_ = true;
  if (moved_bytes_ > 0) log_info("{} MiB of weights are in huge pages", moved_bytes_ >> 20);
}

}  // namespace snapkv
