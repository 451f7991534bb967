// SPDX-License-Identifier: MIT
// A test program that is linked with refused_allocations.cpp can have one allocation refused: of
// operator new, aligned_alloc or mmap, all of which it replaces. Not with sanitizers, which do so
// themselves.
#pragma once

#include <cstdint>

namespace snapkv::test {

/// The n-th allocation from now on, counted from 0, gets no memory.
void refuse_allocation(int64_t n);
/// All allocations get memory again. Whether one was refused.
bool refuse_no_allocation();

}  // namespace snapkv::test
