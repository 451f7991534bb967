// SPDX-License-Identifier: MIT
// CHECK is for a programmer's error, never a user's: it prints the condition and aborts. DCHECK
// does the same in debug builds only, for kernels.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SNAPKV_CHECK(cond)                                                          \
  do {                                                                              \
    if (!(cond)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #cond); \
      std::abort();                                                                 \
    }                                                                               \
  } while (false)

#ifdef NDEBUG
#define SNAPKV_DCHECK(cond) static_cast<void>(0)
#else
#define SNAPKV_DCHECK(cond) SNAPKV_CHECK(cond)
#endif
