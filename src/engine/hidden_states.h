// SPDX-License-Identifier: MIT
// HiddenStates: [n_tokens, n_embd] f32 of a whole prompt between two layers, in memory or in a file
// of which a few chunks are in memory. Used by prefill.cpp.
#pragma once

#include <string>

#include "backend/backend.h"

namespace snapkv {

class HiddenStates {
 public:
  HiddenStates() = default;
  /// `spill_dir`: the folder of the file; empty: in memory. Throws as Backend::allocate and
  /// make_file_buffer.
  HiddenStates(Backend& backend, int64_t n_tokens, int64_t n_embd, const std::string& spill_dir);

  /// What they take in memory when chunks of n_chunk tokens are visited in turn.
  static size_t bytes(int64_t n_tokens, int64_t n_embd, int64_t n_chunk, bool spilled);

  Tensor rows(int64_t begin, int64_t end) const { return all_.slice(begin, end); }
  /// Before rows [begin, end) are computed: the rows after them come next, at the end the first.
  void visit(int64_t begin, int64_t end) const;
  /// After: they may leave the memory.
  void leave(int64_t begin, int64_t end) const;

 private:
  Buffer buffer_;
  Tensor all_;
  bool spilled_ = false;
};

}  // namespace snapkv
