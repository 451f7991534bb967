// SPDX-License-Identifier: MIT
// WeightPages: moves a model's weights from the pages of the mapped file to huge pages while the
// model decodes, and into the order that the backend reads fastest. Every decode step reads all
// weights; prompts read them once and can do so from the file.
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

  /// Called after a prompt that took `seconds`: so much more may be moved after the next step, which
  /// then takes up to half a second longer.
  void after_prompt(double seconds);
  /// Called after a decode step that took `seconds`; moves the next piece, or nothing. No step
  /// waits for the whole move, and until it is done steps are slowed by at most an eighth. Other
  /// threads may read the weights meanwhile. May be called from any thread.
  void after_step(double seconds);

  size_t moved_bytes() const { return moved_bytes_; }
  /// Bytes that after_step() still has to move, if memory stays as free as it is.
  size_t bytes_to_move() const;

 private:
  struct Run {  // adjacent weights
    int part;
    size_t begin, end;
  };
  /// What is to be moved; the last one first.
  struct Moves {
    std::vector<const GgufTensor*> arranged;  // by the backend
    std::vector<Run> runs;                    // of all other weights

    bool empty() const { return arranged.empty() && runs.empty(); }
    size_t bytes() const;
  };
  Moves all_moves() const;
  /// Those that are worth it and leave enough memory free.
  Moves worth_moving() const;
  /// Memory for what the backend arranges. Returns false if there is none.
  bool reserve();
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
  double credit_ = 0;  // seconds that may be spent on moving
};

}  // namespace snapkv
