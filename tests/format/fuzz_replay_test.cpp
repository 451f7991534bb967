// SPDX-License-Identifier: MIT
// The fuzz target without a fuzzer: valid files, thousands of mutations of them with a fixed seed,
// and every file in tests/fuzz/corpus (inputs that once failed, and the fuzzer's seeds).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz_gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/spm_vocab.h"

namespace snapkv {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> seeds() {
  test::GgufWriter empty(2);
  test::GgufWriter metadata(3, 64);
  metadata.add("u8", uint8_t{1}).add("i64", int64_t{-1}).add("f64", 0.5).add("text", "abc");
  metadata.add("floats", std::vector<float>{1, 2, 3}).add("flags", std::vector<bool>{true});
  test::GgufWriter tensors(2);
  tensors.add_f32("v", {4}, {1, 2, 3, 4});
  tensors.add_tensor("m", DType::q8_0, {2, 32}, Bytes(68));
  tensors.add_tensor("k", DType::q4_k, {1, 256}, Bytes(144));
  tensors.add_tensor("l", DType::q6_k, {1, 256}, Bytes(210));
  tensors.add_tensor("n", DType::bf16, {1, 2, 3, 4}, Bytes(48));
  test::SpmVocab small(/*with_bytes=*/false);
  small.add("\xe2\x96\x81", -1);
  small.add_with_prefixes("ab", -2);
  small.add("<x>", 0, test::SpmVocab::kUserDefined);
  small.add("<|im_end|>", 0, test::SpmVocab::kUserDefined);
  test::GgufWriter tokenizer;
  small.write_to(tokenizer).add("tokenizer.ggml.add_eos_token", true);
  tokenizer.add("general.name", "Phi-3").add("tokenizer.ggml.padding_token_id", uint32_t{1});
  test::GgufWriter with_bytes;
  test::SpmVocab().write_to(with_bytes);
  return {empty.bytes(), metadata.bytes(), tensors.bytes(), tokenizer.bytes(), with_bytes.bytes()};
}

/// Applies one of some of libFuzzer's kinds of mutations.
void mutate(Bytes& bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t at = below(bytes.size());
  switch (below(7)) {
    case 0:
      if (!bytes.empty()) bytes[at] ^= static_cast<std::byte>(1u << below(8));
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<std::byte>(random());
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   static_cast<std::byte>(random()));
      break;
    case 4: {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      bytes.erase(begin,
                  begin + static_cast<std::ptrdiff_t>(std::min(below(9), bytes.size() - at)));
      break;
    }
    case 5: {  // a count or size near a limit
      constexpr uint64_t kValues[] = {0,          1,          31,         32,        33,
                                      0x7fffffff, 0x80000000, 0xffffffff, ~0ull,     ~0ull >> 1,
                                      1ull << 60, ~0ull - 31, 1ull << 32, 1ull << 63};
      const uint64_t value = kValues[below(std::size(kValues))];
      const size_t n = std::min<size_t>(below(2) != 0 ? 8 : 4, bytes.size() - at);
      std::memcpy(bytes.data() + at, &value, n);
      break;
    }
    default: {  // a copy of a piece of the file elsewhere
      const size_t n = std::min(below(40), bytes.size() - at);
      const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
      const auto to = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
      bytes.insert(to, piece.begin(), piece.end());
    }
  }
}

TEST(FuzzReplayTest, SeedsAreValid) {
  const auto all = seeds();
  EXPECT_EQ(test::read_hostile(all[0]), test::Outcome::kNoTokenizer);
  EXPECT_EQ(test::read_hostile(all[2]), test::Outcome::kNoTokenizer);
  EXPECT_EQ(test::read_hostile(all[3]), test::Outcome::kTokenizer);
  EXPECT_EQ(test::read_hostile(all[4]), test::Outcome::kTokenizer);
}

TEST(FuzzReplayTest, Mutations) {
  const auto all = seeds();
  std::mt19937 random(20240414);
  int outcomes[3] = {};
  for (int i = 0; i < 8000; ++i) {
    Bytes bytes = all[static_cast<size_t>(i) % all.size()];
    for (auto n = 1 + random() % 4; n > 0; --n) mutate(bytes, random);
    const Bytes exact(bytes);  // capacity equals size, so that a sanitizer sees reads past the end
    ++outcomes[static_cast<int>(test::read_hostile(exact))];
  }
  // The mutations must reach every depth.
  EXPECT_GT(outcomes[0], 1000);
  EXPECT_GT(outcomes[1], 100);
  EXPECT_GT(outcomes[2], 100);
}

TEST(FuzzReplayTest, Corpus) {
  const std::filesystem::path folder = std::string(SNAPKV_SOURCE_DIR) + "/tests/fuzz/corpus";
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    ASSERT_TRUE(file.good());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto view = std::as_bytes(std::span(text));
    test::read_hostile(Bytes(view.begin(), view.end()));
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

}  // namespace
}  // namespace snapkv
