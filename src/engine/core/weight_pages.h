// SPDX-License-Identifier: MIT
// WeightPages: moves a model's weights from the pages of the mapped file to huge pages while the
// model decodes. Every decode step reads all weights, and huge pages are faster to read; prompts
// read them once and can do so from the file.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "format/gguf.h"
#include "snapkv/engine.h"

namespace snapkv {

class WeightPages {
 public:
  /// `file` must outlive this object. WeightMemory::huge_pages moves everything now. Throws
  /// Error{kRuntime} if the system has no huge pages, Error{kDoesNotFit} if there is no memory.
  WeightPages(GgufFile& file, WeightMemory wanted);

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
  std::vector<Run> runs() const;
  static size_t bytes_of(const std::vector<Run>& runs);
  /// The runs that are worth moving and leave enough memory free, last one first.
  std::vector<Run> worth_moving() const;
  bool move_piece();

  GgufFile& file_;
  std::atomic<bool> done_;
  std::atomic<size_t> moved_bytes_{0};
  mutable std::mutex mutex_;
  bool begun_ = false;
  std::vector<Run> left_;  // last one first
  double credit_ = 0;      // seconds that may be spent on moving
};

}  // namespace snapkv
