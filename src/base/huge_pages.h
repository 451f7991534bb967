// SPDX-License-Identifier: MIT
// Transparent huge pages of Linux: memory that is read from end to end at the bandwidth limit is
// read up to twice as fast from pages of 2 MiB as from pages of 4 KiB, where a prefetcher stops.
#pragma once

#include <cstddef>

namespace snapkv {

/// Bytes of a huge page; 0 where the system has none or they are switched off.
size_t huge_page_size();

/// Asks for huge pages in [data, data + bytes), whole ones only; a hint, never an error.
void prefer_huge_pages(void* data, size_t bytes);

}  // namespace snapkv
