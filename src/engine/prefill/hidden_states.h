// SPDX-License-Identifier: MIT
// HiddenStates: [n_tokens, n_hidden] f32 of a whole prompt between two layers. They lie in the
// backend's memory, in a file of which a few chunks are in memory, or in host memory if a device
// has no room for them.
#pragma once

#include <string>

#include "backend/backend.h"

namespace snapkv {

class HiddenStates {
 public:
  enum class Place { memory, file, host };
  static constexpr const char* kLabel = "hidden states of the prompt";

  HiddenStates() = default;
  /// `n_chunk`: the most rows that one enter() asks for. `spill_dir`: the folder for Place::file.
  /// Throws as Backend::allocate and
  /// allocate_in_file do.
  HiddenStates(Backend& backend, Place place, int64_t n_tokens, int64_t n_hidden, int64_t n_chunk,
               const std::string& spill_dir);

  /// Rows [begin, end), which ops may read and write until leave(). With Place::file the rows that
  /// follow are read ahead, and the first chunk's after the last chunk.
  Tensor enter(int64_t begin, int64_t end);
  /// Keeps what was written to the rows, which may now leave the memory.
  void leave(int64_t begin, int64_t end);

 private:
  Backend* backend_ = nullptr;
  Place place_ = Place::memory;
  Buffer buffer_, chunk_;  // chunk_: in device memory, with Place::host
  Tensor all_;
};

}  // namespace snapkv
