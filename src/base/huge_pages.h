// SPDX-License-Identifier: MIT
// Linux's transparent huge pages. Memory that is read sequentially at the bandwidth limit is read
// up to twice as fast from 2 MiB pages as from 4 KiB pages, at whose ends a prefetcher stops.
#pragma once

#include <cstddef>

namespace snapkv {

/// Bytes of a huge page; 0 if the system has none or they are switched off.
size_t huge_page_size();

/// Requests huge pages for [data, data + bytes), whole ones only; a hint that never fails.
void prefer_huge_pages(void* data, size_t bytes);

}  // namespace snapkv
