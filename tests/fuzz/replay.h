// SPDX-License-Identifier: MIT
// Runs a fuzz target without a fuzzer, on its corpus and on mutations of its seeds.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/fuzz/mutate.h"

namespace snapkv::test {

/// The target; returns whether it accepts an input.
using FuzzTarget = std::function<bool(const std::string& bytes)>;

/// Runs the target on every file of tests/fuzz/FOLDER. Files whose names begin with seed_ must be
/// accepted, and are returned.
inline std::vector<std::string> replay_corpus(const std::string& folder, const FuzzTarget& target) {
  std::vector<std::string> seeds;
  for (const auto& entry :
       std::filesystem::directory_iterator(SNAPKV_SOURCE_DIR "/tests/fuzz/" + folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    const bool is_accepted = target(bytes);
    if (!entry.path().filename().string().starts_with("seed_")) continue;
    EXPECT_TRUE(is_accepted) << entry.path();
    seeds.push_back(bytes);
  }
  return seeds;
}

/// Runs the target on `n` mutations of the seeds, the same in every run; returns how many it
/// accepts.
inline int replay_mutations(const std::vector<std::string>& seeds,
                            std::span<const char* const> pieces, int n, const FuzzTarget& target) {
  std::mt19937 random(20240414);
  int n_accepted = 0;
  for (int i = 0; i < n && !seeds.empty(); ++i) {
    std::string text = seeds[static_cast<size_t>(i) % seeds.size()];
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      mutate(text, seeds, pieces, random);
    }
    n_accepted += target(text) ? 1 : 0;
  }
  return n_accepted;
}

}  // namespace snapkv::test
