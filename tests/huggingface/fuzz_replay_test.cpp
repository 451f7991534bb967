// SPDX-License-Identifier: MIT
// Runs the fuzz target of folders without a fuzzer, on valid files, on thousands of mutations of
// them from a fixed seed, and on every file in tests/fuzz/corpus_huggingface.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz_huggingface.h"
#include "tests/huggingface/piece_model.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

bool replay(const std::string& input) {
  const std::vector<char> exact(input.begin(), input.end());  // a sanitizer sees reads past the end
  return read_hostile_huggingface(std::as_bytes(std::span(exact)));
}

std::vector<std::string> seeds() {
  const auto weights = safetensors_bytes(std::vector<HfTensor>{
      f32_tensor("a.weight", {2, 2}, {1, 2, 3, 4}), {"b", "BF16", {3}, std::vector<std::byte>(6)}});
  std::vector<std::string> all = {
      std::string("s") + std::string(reinterpret_cast<const char*>(weights.data()), weights.size()),
      "t" + spm_tokenizer().dump(), "p" + PieceModel().file()};
  for (const char* name : {"llama3", "gemma3-options", "phi3-longrope", "qwen3"}) {
    const Json golden = Json::parse(
        read(std::string(SNAPKV_SOURCE_DIR) + "/tests/huggingface/golden/" + name + ".json"));
    all.push_back("c" + golden.at("config").dump());
  }
  return all;
}

/// Flips a bit, removes, inserts or copies a piece, or replaces a value of the JSON.
void mutate(std::string& text, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t at = 1 + below(text.size() - 1);
  constexpr const char* kPieces[] = {"0",    "-1",     "1e400", "18446744073709551616",
                                     "null", "[",      "{",     "]",
                                     "}",    "\"",     ",",     ":",
                                     "[]",   "true",   "1e-60", "9223372036854775807",
                                     "{}",   "\\u0000"};
  switch (below(5)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1:
      text.erase(at, below(20));
      break;
    case 2:
      text.insert(at, kPieces[below(std::size(kPieces))]);
      break;
    case 3: {  // replaces a value
      const size_t colon = text.find(':', at);
      if (colon == std::string::npos) break;
      const size_t end = std::min(text.find_first_of(",}]", colon), text.size());
      text.replace(colon + 1, end - colon - 1, kPieces[below(std::size(kPieces))]);
      break;
    }
    default:
      text.insert(1 + below(text.size() - 1), text.substr(at, below(60)));
  }
}

TEST(FuzzHuggingfaceTest, SeedsAreValid) {
  for (const std::string& seed : seeds()) EXPECT_TRUE(replay(seed)) << seed.substr(0, 300);
}

TEST(FuzzHuggingfaceTest, Mutations) {
  const auto all = seeds();
  std::mt19937 random(20240414);
  int n_valid = 0;
  constexpr int kInputs = 6000;
  for (int i = 0; i < kInputs; ++i) {
    std::string input = all[i % all.size()];
    for (auto n = 1 + random() % 3; n > 0 && input.size() > 2; --n) mutate(input, random);
    n_valid += replay(input);
  }
  EXPECT_GT(n_valid, 100);
  EXPECT_LT(n_valid, kInputs / 2);
}

TEST(FuzzHuggingfaceTest, Corpus) {
  int n_files = 0;
  const std::string folder = std::string(SNAPKV_SOURCE_DIR) + "/tests/fuzz/corpus_huggingface";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    replay(read(entry.path().string()));
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

}  // namespace
}  // namespace snapkv::test
