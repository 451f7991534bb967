// SPDX-License-Identifier: MIT
// HiddenStates: [n_tokens, n_embd] f32 of a whole prompt between two layers: in the backend's
// memory, in a file of which a few chunks are in memory, or, for a device that has no room, in host
// memory. Used by prefill.cpp.
#pragma once

#include <string>

#include "backend/backend.h"

namespace snapkv {

class HiddenStates {
 public:
  enum class Place { memory, file, host };

  HiddenStates() = default;
  /// `n_chunk`: most rows that enter() is asked for. `spill_dir`: the folder of Place::file. Throws
  /// as Backend::allocate and make_file_buffer.
  HiddenStates(Backend& backend, Place place, int64_t n_tokens, int64_t n_embd, int64_t n_chunk,
               const std::string& spill_dir);

  /// Bytes of the backend's memory that they take while chunks of n_chunk tokens are visited.
  static size_t bytes(int64_t n_tokens, int64_t n_embd, int64_t n_chunk, Place place);

  /// Rows [begin, end), for ops to read and write until leave(). At Place::file the rows after them
  /// are read ahead; after the last chunk, those of the first one are.
  Tensor enter(int64_t begin, int64_t end);
  /// Keeps what was written to the rows, which may then leave the memory.
  void leave(int64_t begin, int64_t end);

 private:
  Backend* backend_ = nullptr;
  Place place_ = Place::memory;
  Buffer buffer_, chunk_;  // chunk_: in device memory, at Place::host
  Tensor all_;
};

}  // namespace snapkv
