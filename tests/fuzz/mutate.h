// SPDX-License-Identifier: MIT
// Some of libFuzzer's kinds of mutations, for tests that run a fuzz target without a fuzzer.
#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

namespace snapkv::test {

/// Changes, removes, repeats or inserts something somewhere in `text`: a byte, a part of it or of
/// one of `others`, or one of `pieces`.
inline void mutate(std::string& text, const std::vector<std::string>& others,
                   std::span<const char* const> pieces, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t at = below(text.size());
  switch (below(5)) {
    case 0:
      if (!text.empty()) text[at] = static_cast<char>(below(128));
      break;
    case 1:
      text.erase(at, below(9));
      break;
    case 2: {
      const std::string piece = text.substr(at, below(40));
      text.insert(below(text.size() + 1), piece);
      break;
    }
    case 3: {
      const std::string& other = others[below(others.size())];
      const size_t from = below(other.size());
      text.insert(at, other.substr(from, below(40)));
      break;
    }
    default:
      text.insert(at, pieces[below(pieces.size())]);
  }
}

}  // namespace snapkv::test
