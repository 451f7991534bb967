// SPDX-License-Identifier: MIT
// Random models: ggml's rounding, options, bad input. (tests/format/block_types_test.cpp checks
// that the bytes are the same on every machine.)
#include "bench/random_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/half.h"
#include "bench/quantize.h"
#include "format/block_types.h"
#include "snapkv/error.h"

namespace snapkv {
namespace {

const RandomModelShape kSmall = {64, 2, 4, 2, 32, 96, 300, 1e4};

std::string write_and_read(const RandomModelShape& shape, const RandomModelOptions& options) {
  const std::string path = testing::TempDir() + "/random-" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf";
  write_random_model(path, shape, options);
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  return bytes;
}

TEST(RandomModel, OptionsAddTheirTensors) {
  const std::string plain = write_and_read(kSmall, {});
  RandomModelOptions options;
  options.qkv_bias = options.rope_freqs = true;
  options.tied_output = false;
  options.rope_linear_factor = 2;
  const std::string full = write_and_read(kSmall, options);
  for (const char* text : {"blk.1.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias",
                           "rope_freqs.weight", "llama.rope.scaling.factor"}) {
    EXPECT_EQ(plain.find(text), std::string::npos) << text;
    EXPECT_NE(full.find(text), std::string::npos) << text;
  }
}

TEST(RandomModel, SeedChangesWeights) {
  RandomModelOptions options;
  const std::string a = write_and_read(kSmall, options);
  options.seed = 1;
  const std::string b = write_and_read(kSmall, options);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(a, b);
}

TEST(RandomModel, Q8_0Rounding) {
  std::vector<float> x(kBlockSize, 0.0f);
  x[0] = -127.0f;  // d = 1: quantized values are the rounded inputs; halves round away from zero
  x[1] = 2.5f;
  x[2] = -2.5f;
  x[31] = 126.4f;
  BlockQ8_0 block;
  quantize(DType::q8_0, x.data(), kBlockSize, &block);
  EXPECT_EQ(to_f32(block.d), 1.0f);
  EXPECT_EQ(block.qs[0], -127);
  EXPECT_EQ(block.qs[1], 3);
  EXPECT_EQ(block.qs[2], -3);
  EXPECT_EQ(block.qs[3], 0);
  EXPECT_EQ(block.qs[31], 126);
}

TEST(RandomModel, Q4_0Rounding) {
  std::vector<float> x(kBlockSize, 0.0f);
  x[0] = 8.0f;  // the extreme is positive: d = -1, and it becomes nibble 0
  x[1] = -7.0f;
  x[16] = -8.0f;  // beyond the last nibble: 15
  BlockQ4_0 block;
  quantize(DType::q4_0, x.data(), kBlockSize, &block);
  EXPECT_EQ(to_f32(block.d), -1.0f);
  EXPECT_EQ(block.qs[0], 0 | (15 << 4));
  EXPECT_EQ(block.qs[1], 15 | (8 << 4));
  EXPECT_EQ(block.qs[2], 8 | (8 << 4));
}

TEST(RandomModel, BlocksOfZeros) {
  const std::vector<float> x(kBlockSize, 0.0f);
  BlockQ8_0 q8;
  BlockQ4_0 q4;
  quantize(DType::q8_0, x.data(), kBlockSize, &q8);
  quantize(DType::q4_0, x.data(), kBlockSize, &q4);
  EXPECT_EQ(to_f32(q8.d), 0.0f);
  EXPECT_EQ(to_f32(q4.d), 0.0f);
  for (const int8_t q : q8.qs) EXPECT_EQ(q, 0);
  for (const uint8_t q : q4.qs) EXPECT_EQ(q, 0x88);
}

ErrorCode error_of(const std::string& path, const RandomModelShape& shape,
                   const RandomModelOptions& options) {
  try {
    write_random_model(path, shape, options);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode{};
}

TEST(RandomModel, BadInput) {
  const std::string path = testing::TempDir() + "/random-bad.gguf";
  RandomModelShape shape = kSmall;
  shape.n_vocab = 258;
  EXPECT_EQ(error_of(path, shape, {}), ErrorCode::kUsage);
  shape = kSmall;
  shape.n_ff = 100;  // not a multiple of 32
  EXPECT_EQ(error_of(path, shape, {.dtype = DType::q4_0}), ErrorCode::kUsage);
  EXPECT_EQ(error_of(path, kSmall, {.dtype = DType::i32}), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(error_of(testing::TempDir() + "/no/such/folder.gguf", kSmall, {}), ErrorCode::kRuntime);
  EXPECT_THROW(random_model_shape("9b"), Error);
  EXPECT_EQ(random_model_shape("tiny-gqa").n_embd, 128);
}

TEST(RandomModel, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(error_of("/dev/full", kSmall, {}), ErrorCode::kRuntime);
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

}  // namespace
}  // namespace snapkv
