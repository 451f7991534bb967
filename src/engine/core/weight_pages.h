// SPDX-License-Identifier: MIT
// WeightPages: moves a model's weights from the pages of the mapped file to huge pages while the
// model is used, and into the order that the backend reads fastest. Every decode step reads all
// weights, so that what a prompt moves is faster from the first token of the answer on.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "backend/arranged_weights.h"
#include "format/gguf.h"
#include "snapkv/engine.h"

namespace snapkv {

class WeightPages {
 public:
  /// `file` and `arranged`, which may be null, must outlive this object. WeightMemory::huge_pages
  /// moves everything now. Throws Error{kRuntime} if the system has no huge pages,
  /// Error{kDoesNotFit} if there is no memory.
  WeightPages(GgufFile& file, ArrangedWeights* arranged, WeightMemory wanted);

  /// Called within a prompt, or at its end, after work that took `seconds`; moves the next pieces,
  /// or nothing, so that the prompt takes at most an eighth longer. Begins only if besides what is
  /// moved there is memory for `planned_bytes`, of which the prompt may not have touched any yet.
  void during_prompt(double seconds, size_t planned_bytes);
  /// Called after a decode step that took `seconds`; moves the next pieces, or nothing. Until all
  /// is done steps are slowed by at most an eighth; but if all the rest takes no longer than a few
  /// steps, it is done at once.
  /// Both may be called from any thread, and other threads may read the weights meanwhile.
  void after_step(double seconds);

  size_t moved_bytes() const { return moved_bytes_; }
  /// Bytes that after_step() still has to move, if memory stays as free as it is.
  size_t bytes_to_move() const;

 private:
  struct Run {  // adjacent weights
    int part;
    size_t begin, end;
  };
  /// What is to be moved; the last one first. Experts come after what every token reads.
  struct Moves {
    std::vector<const GgufTensor*> arranged;  // by the backend
    std::vector<Run> runs;                    // of all other weights

    bool empty() const { return arranged.empty() && runs.empty(); }
    size_t bytes() const;
  };
  Moves all_moves() const;
  /// Those that are worth it and leave enough memory free, of which `planned_bytes` are spoken for.
  Moves worth_moving(size_t planned_bytes) const;
  /// Whether nothing of it is worth it, however much memory there is.
  static bool is_small(const Moves& moves);
  void begin(Moves moves);
  /// Memory for what the backend arranges. Returns false if there is none.
  bool reserve();
  /// Moves pieces for `seconds` more, or all if that takes at most `seconds_at_once`.
  void spend(double seconds, double seconds_at_once);
  size_t bytes_left() const;
  bool move_piece();
  bool arrange_piece();

  GgufFile& file_;
  ArrangedWeights* const arranged_;
  std::atomic<bool> done_;
  std::atomic<size_t> moved_bytes_{0};
  mutable std::mutex mutex_;
  bool begun_ = false;
  Moves left_;
  size_t arranged_bytes_left_ = 0;  // of left_.arranged's next, if a part of it is done
  double credit_ = 0;               // seconds that may be spent on moving
  double moving_seconds_ = 0;       // that were spent
};

}  // namespace snapkv
