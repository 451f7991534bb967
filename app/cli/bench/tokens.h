// SPDX-License-Identifier: MIT
// The random tokens that `snapkv bench` reads and writes.
#pragma once

#include <cstdint>
#include <vector>

namespace snapkv::cli {

/// Returns n ids below n_vocab from splitmix64 (Vigna, public domain); a seed gives the
/// same ids on every machine.
inline std::vector<int32_t> random_tokens(int64_t n, int64_t n_vocab, uint64_t seed) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (int32_t& token : tokens) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    token = static_cast<int32_t>((z ^ (z >> 31)) % static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

}  // namespace snapkv::cli
