// SPDX-License-Identifier: MIT
// A test program linked with refused_allocations.cpp can have one allocation refused: by operator
// new, aligned_alloc or mmap, all of which it replaces. Not with sanitizers, which replace them
// themselves.
#pragma once

#include <cstdint>

namespace snapkv::test {

/// Refuses the n-th allocation from now on, counted from 0.
void refuse_allocation(int64_t n);
/// Stops refusing allocations. Returns whether one was refused.
bool refuse_no_allocation();

}  // namespace snapkv::test
