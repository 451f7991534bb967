// SPDX-License-Identifier: MIT
// Filler text: of any length from a small grammar (haystack_grammar.json, embedded at build time;
// the same seed gives the same text on every machine), or from the user's files.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace snapkv::eval {

/// A random generator whose results do not depend on the standard library: mt19937_64 is specified
/// bit by bit, but the library's distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// A number from 0 to n - 1; the bias of the remainder is below 2^-50 for the small n used here.
  size_t below(size_t n) { return static_cast<size_t>(engine_() % n); }

 private:
  std::mt19937_64 engine_;
};

class Haystack {
 public:
  Haystack();
  /// "The baker lost a lantern near the market."
  std::string sentence(Random& random) const;

 private:
  std::vector<std::string> templates_;
  std::unordered_map<std::string, std::vector<std::string>> words_;  // by slot
};

/// Reads a text file, or every .txt file of a folder sorted by name (read_texts()).
std::string read_haystack(const std::string& path);
/// Identifies the user's text in records: a hash; "generated" if there is none.
std::string haystack_id(const std::string& text);

}  // namespace snapkv::eval
