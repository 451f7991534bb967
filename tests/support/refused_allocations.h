// SPDX-License-Identifier: MIT
// Test programs linked with refused_allocations.cpp can have one allocation refused, by operator
// new, aligned_alloc or mmap; it replaces all of these. Not available with sanitizers, which
// replace them too.
#pragma once

#include <cstdint>

namespace snapkv::test {

/// Refuses the n-th allocation from now on, counted from 0.
void refuse_allocation(int64_t n);
/// Ends the refusing; returns whether an allocation was refused.
bool refuse_no_allocation();

}  // namespace snapkv::test
