// SPDX-License-Identifier: MIT
// The facts about each weight type that block_types_test.cpp and check_tensors_test.cpp need. A new
// type is one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "snapkv/dtype.h"

namespace snapkv::test {

struct TypeCase {
  DType dtype;
  /// The places of a block's f16 numbers, which are made finite. All other bytes are random.
  std::vector<size_t> f16_at;
  /// FNV-1a of ggml's values for blocks of random bytes, 64 Ki values in all (llama.cpp 0.7.0).
  uint64_t ggml_values;
  /// An upper bound for ||quantize(x) - x|| / ||x|| with normal x. Steps of s sigma cost s /
  /// sqrt(12): s is 4.2 (3.6) / number of levels for levels over 2 sigma on either side of a block
  /// of 32 (16), and rounded scales cost some more.
  double rounding;
  /// FNV-1a of a random model's file, by g++ 12 (-O2, and -O3 -march=native) and clang++ 14, which
  /// agreed. For q8_0 and q4_0, the files equalled those of llama-quantize --pure byte for byte on
  /// tiny-gqa.
  uint64_t random_model;
  /// As `rounding`, for values that are no longer distributed like that, if larger: some codebooks
  /// have no entry of eight equal values.
  double uneven = 0;
};

inline void PrintTo(const TypeCase& c, std::ostream* out) { *out << name(c.dtype); }

inline const std::vector<TypeCase> kTypeCases = {
    {DType::f32, {}, 0x489783d6cc6c6644u, 0.0, 0x72f0f6971f2ff735u},
    {DType::f16, {0}, 0x1c5f7e77fb90105eu, 3e-4, 0x0be82ae4f0496a38u},
    {DType::bf16, {}, 0x6efb6ea1a1627f2fu, 3e-3, 0x00487bfa4b58c4c5u},
    {DType::q8_0, {0}, 0xdc8ed87f03c94aedu, 0.006, 0xa519f7add6253bcau},
    {DType::q4_0, {0}, 0x43199607dc0266e1u, 0.1, 0x31df1d92883a4256u},
    {DType::q4_1, {0, 2}, 0x702111c221e2640eu, 0.09, 0x90e45b7ef981e0dfu},
    {DType::q5_0, {0}, 0x9deca0bdab79b97cu, 0.05, 0xcf17fc82d605b324u},
    {DType::q5_1, {0, 2}, 0x8e40f88a089a1394u, 0.045, 0xc39dc26953e93138u},
    {DType::iq4_nl, {0}, 0x1de95972b10ba8c9u, 0.1, 0x796bbfa118325b73u},
    {DType::mxfp4, {}, 0xae0a78c9f45aa80eu, 0.17, 0xd27c706cac9ff08du},
    {DType::nvfp4, {}, 0x7693637eece6f694u, 0.15, 0x105db581ce072fdcu},
    {DType::q2_k, {80, 82}, 0x9af6bc8618f29492u, 0.4, 0x56260157d2662031u},
    {DType::q3_k, {108}, 0xef3622024b374ae0u, 0.2, 0xf78c6c5bfe47d249u},
    {DType::q4_k, {0, 2}, 0x7cd05e41ca466b3au, 0.09, 0x8a159fdf6664e758u},
    {DType::q5_k, {0, 2}, 0xd45b7938ec5c411du, 0.045, 0x3b847bdd5c81bbcfu},
    {DType::q6_k, {208}, 0xbb442df942c48acbu, 0.025, 0xd6b7221e5171d15fu},
    {DType::iq4_xs, {0}, 0xd14cd6ad9b5d4baeu, 0.1, 0x907482ffce47f9bdu},
    {DType::iq2_xxs, {0}, 0x011f9f3bb7ff80bcu, 0.37, 0x784a4745a18949eeu, 0.45},
    {DType::iq2_xs, {0}, 0x60bbf64fed2fb4e3u, 0.32, 0xa5d4b1b691560672u},
    {DType::iq2_s, {0}, 0xcf21d3b4431a6d17u, 0.28, 0x22c5172531d1af11u},
    {DType::iq3_xxs, {0}, 0x6aeda235879c7912u, 0.2, 0x674b5fb61542c268u, 0.32},
    {DType::iq3_s, {0}, 0xae6d468c0950c5f8u, 0.15, 0x608aed9d1a5b0ed0u, 0.27},
    {DType::iq1_s, {0}, 0x90a7e9775b63093bu, 0.47, 0x9211e6afcaf6e107u},
    {DType::iq1_m, {}, 0x1812e28ee8c2034bu, 0.45, 0xba7e21c39de265d8u},
    {DType::tq1_0, {52}, 0x3c171934acd3f542u, 0.45, 0x7db8856512895ef9u},
    {DType::tq2_0, {64}, 0x77126e52a38dbf4eu, 0.45, 0xa4d1f8589291218cu},
};

}  // namespace snapkv::test
