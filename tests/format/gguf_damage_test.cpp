// SPDX-License-Identifier: MIT
// A valid file cut off at every length and with every bit flipped: it must parse or give an Error.
#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/spm_vocab.h"

namespace snapkv {
namespace {

std::vector<std::byte> small_model() {
  test::SpmVocab vocab(/*with_bytes=*/false);
  vocab.add("\xe2\x96\x81", -1);
  vocab.add("ab", -2);
  vocab.add("<x>", 0, test::SpmVocab::kUserDefined);
  vocab.add("<0x41>", 0, test::SpmVocab::kByte);
  test::GgufWriter w;
  vocab.write_to(w).add("tokenizer.ggml.eos_token_id", uint32_t{2}).add("flag", true);
  w.add_f32("a", {2}, {1, 2});
  w.add_tensor("c", DType::q4_k, {1, 256}, std::vector<std::byte>(144));
  w.add_tensor("d", DType::q5_k, {1, 256}, std::vector<std::byte>(176));
  w.add_tensor("e", DType::q6_k, {1, 256}, std::vector<std::byte>(210));
  w.add_tensor("b", DType::q4_0, {1, 32}, std::vector<std::byte>(18));
  return w.bytes();
}

TEST(GgufDamageTest, EveryLength) {
  const auto whole = small_model();
  ASSERT_EQ(test::read_hostile(whole), test::Outcome::kTokenizer);
  for (size_t n = 0; n < whole.size(); ++n) {
    // A copy of exactly this size, so that a sanitizer sees the first byte read beyond it.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const auto outcome = test::read_hostile(cut);
    // Only the padding after the last tensor may be missing.
    const bool complete = n >= whole.size() - (32 - 18);
    ASSERT_EQ(outcome, complete ? test::Outcome::kTokenizer : test::Outcome::kNoFile) << n;
  }
}

TEST(GgufDamageTest, EveryBit) {
  auto bytes = small_model();
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      refused += test::read_hostile(bytes) != test::Outcome::kTokenizer;
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(GgufDamageTest, EveryByteToItsExtremes) {
  auto bytes = small_model();
  for (size_t i = 0; i + 8 <= bytes.size(); ++i) {
    const auto before = bytes;
    for (const int value : {0x00, 0x7f, 0xff}) {
      for (const size_t n : {size_t{1}, size_t{4}, size_t{8}}) {
        for (size_t k = 0; k < n; ++k) bytes[i + k] = static_cast<std::byte>(value);
        test::read_hostile(bytes);
        bytes = before;
      }
    }
  }
}

}  // namespace
}  // namespace snapkv
