// SPDX-License-Identifier: MIT
// Threads and scratch memory of attention and selection kernels. The memory is one block per
// calling thread, which grows to the largest request and stays. It is taken before a parallel
// region, since taking may throw, and divided among threads inside.
#pragma once

#include <cstddef>

#include "backend/cpu/cpu_context.h"

namespace snapkv::cpu {

/// Threads of a parallel region: all or one. With a number in between, libgomp would end the other
/// threads and start them again for the next region.
inline int team_size(const CpuContext& ctx, bool parallel) { return parallel ? ctx.n_threads : 1; }

/// At least `bytes` bytes, uninitialized, aligned to a cache line; valid until this thread's next
/// call. Throws Error{kDoesNotFit}.
char* scratch(size_t bytes);

/// Cuts a block into aligned pieces; without a block it only adds up their bytes.
class ScratchCutter {
 public:
  explicit ScratchCutter(char* begin) : begin_(begin) {}
  template <typename T>
  T* take(size_t count) {
    char* piece = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  size_t used() const { return used_; }

 private:
  char* begin_;
  size_t used_ = 0;
};

}  // namespace snapkv::cpu
