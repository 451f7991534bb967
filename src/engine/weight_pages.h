// SPDX-License-Identifier: MIT
// WeightPages: moves a model's weights from the pages of the mapped file to huge pages of this
// process while it decodes. Every decode step reads all weights, and huge pages are read faster;
// prompts read them once, and go on from the file.
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
  /// `file` must outlive this. With WeightMemory::huge_pages everything is moved now; throws
  /// Error{kRuntime} when the system has no huge pages, Error{kDoesNotFit} when there is no memory.
  WeightPages(GgufFile& file, WeightMemory wanted);

  /// Moves the next part after a decode step of so many seconds, or nothing: no step waits for all,
  /// and steps become slower by an eighth at most until everything is moved. Other threads may read
  /// the weights meanwhile. Any thread.
  void after_step(double seconds);

  size_t moved_bytes() const { return moved_bytes_; }
  /// What after_step() has not moved yet and is going to, if memory stays as free as it is.
  size_t bytes_to_move() const;

 private:
  struct Run {  // weights without a gap between them
    int part;
    size_t begin, end;
  };
  std::vector<Run> runs() const;
  static size_t bytes_of(const std::vector<Run>& runs);
  /// The runs that are worth a move and leave enough memory free, the last one first.
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
