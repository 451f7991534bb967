// SPDX-License-Identifier: MIT
// The instruction sets that Highway's kernels are not compiled for; to be included before Highway.
#pragma once

// Scalable vectors cannot be array elements; those processors use NEON. Processors with SSSE3 but
// not SSE4 are of before 2008.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
