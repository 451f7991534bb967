// SPDX-License-Identifier: MIT
// Every weight type: its values have the same bits as in ggml, quantize() keeps the values it is
// given, and random models have the same bytes on every machine. A new type is one row of
// block_type_cases.h.
//
// To compare with a real ggml again, let this test write a model of each type, convert the models
// with llama.cpp, and run the test once more; it then compares every value:
//   export SNAPKV_GGML_VALUES=folder
//   format_test --gtest_filter='*GgmlValues*'
//   for f in folder/*.gguf; do llama-quantize --allow-requantize $f ${f%.gguf}.values F32; done
//   format_test --gtest_filter='*GgmlValues*'
#include "format/block_types.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "bench/quantize.h"
#include "bench/random_model.h"
#include "format/check_tensors.h"
#include "format/gguf.h"
#include "tests/backend/op_test_util.h"
#include "tests/format/block_type_cases.h"
#include "tests/support/fnv1a.h"

namespace snapkv::test {
namespace {

class BlockTypes : public testing::TestWithParam<TypeCase> {};
INSTANTIATE_TEST_SUITE_P(Types, BlockTypes, testing::ValuesIn(kTypeCases),
                         [](const auto& p) { return std::string(name(p.param.dtype)); });

TEST(BlockTypesTable, HasEveryType) {
  for (const DType t : kWeightTypes) {
    EXPECT_EQ(std::count_if(kTypeCases.begin(), kTypeCases.end(),
                            [=](const TypeCase& c) { return c.dtype == t; }),
              1)
        << name(t);
  }
}

std::string hex(uint64_t hash) { return fmt::format("{:#018x}", hash); }

// ---------------------------------------------------------------- values

constexpr int64_t kValues = int64_t{1} << 16;

std::vector<char> random_blocks(const TypeCase& c) {
  uint64_t state = 1;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
  };
  std::vector<char> bytes(row_bytes(c.dtype, kValues));
  for (char& b : bytes) b = static_cast<char>(next());
  if (c.dtype == DType::f32 || c.dtype == DType::bf16) {  // the exponent's upper 7 bits
    const int64_t n = block_bytes(c.dtype);
    for (int64_t i = n - 1; i < std::ssize(bytes); i += n) {
      bytes[i] = static_cast<char>((bytes[i] & 0x80) | next() % 127);
    }
  }
  for (int64_t i = 0; i < std::ssize(bytes); i += block_bytes(c.dtype)) {
    for (const size_t at : c.f16_at) {  // an exponent of 0 ... 30, so subnormals too
      bytes[i + at + 1] = static_cast<char>((bytes[i + at + 1] & 0x83) | next() % 31 << 2);
    }
    const Tensor block(bytes.data() + i, c.dtype, {block_size(c.dtype)});
    const int64_t exponent = c.dtype == DType::iq1_m ? block_bytes(c.dtype) - 1 : 0;
    while (c.f16_at.empty() && first_non_finite(block)) {
      bytes[i + exponent] = static_cast<char>(next());
    }
  }
  return bytes;
}

const GgufTensor& embedding(const GgufFile& file) { return *file.find_tensor("token_embd.weight"); }

/// Writes a tiny model that llama.cpp accepts, whose embedding is these blocks.
void write_model(const std::string& path, DType dtype, const std::vector<char>& blocks) {
  write_random_model(path, random_model_shape(block_size(dtype) > 32 ? "tiny-wide" : "tiny-gqa"),
                     {.dtype = dtype});
  const uint64_t offset = [&] {
    const GgufFile file = GgufFile::open(path);
    SNAPKV_CHECK(embedding(file).bytes() >= blocks.size());
    return embedding(file).file_offset;
  }();
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(blocks.data(), std::ssize(blocks));
  SNAPKV_CHECK(file.good());
}

TEST_P(BlockTypes, GgmlValues) {
  const TypeCase& c = GetParam();
  const std::vector<char> blocks = random_blocks(c);
  const std::vector<float> values = to_f32_values(blocks.data(), c.dtype, kValues);
  EXPECT_EQ(hex(fnv1a(std::as_bytes(std::span(values)))), hex(c.ggml_values));

  const char* folder = std::getenv("SNAPKV_GGML_VALUES");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + std::string(name(c.dtype));
  if (!std::filesystem::exists(path + ".values"))
    return write_model(path + ".gguf", c.dtype, blocks);
  const GgufFile ggml = GgufFile::open(path + ".values");
  ASSERT_EQ(embedding(ggml).tensor.dtype, DType::f32);
  int64_t n_different = 0;
  for (int64_t i = 0; i < kValues; ++i) {
    const float right = static_cast<const float*>(embedding(ggml).tensor.data)[i];
    n_different += std::bit_cast<uint32_t>(values[i]) != std::bit_cast<uint32_t>(right);
  }
  EXPECT_EQ(n_different, 0);
}

// ---------------------------------------------------------------- quantize()

TEST_P(BlockTypes, QuantizeKeepsValues) {
  const std::vector<float> x = random_values(16 * kSuperblockSize, 1);
  const TestTensor given({16, kSuperblockSize}, x);
  EXPECT_LE(relative_error(given.to(GetParam().dtype).values(), x), GetParam().rounding);
}

// All values above zero, all below, parts of very different size, and all values alike.
TEST_P(BlockTypes, QuantizeKeepsUnevenValues) {
  std::vector<float> x = random_values(4 * kSuperblockSize, 2);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t block = i / kSuperblockSize, part = i / kBlockSize % kSuperblockParts;
    if (block == 0) x[i] = std::abs(x[i]);
    if (block == 1) x[i] = -std::abs(x[i]);
    if (block == 2) x[i] *= static_cast<float>(part + 1);
    if (block == 3) x[i] = 5.0f;
  }
  const TestTensor given({4, kSuperblockSize}, x);
  EXPECT_LE(relative_error(given.to(GetParam().dtype).values(), x),
            std::max(GetParam().rounding, GetParam().uneven));
}

TEST_P(BlockTypes, QuantizeKeepsZeros) {
  const std::vector<float> zeros(2 * kSuperblockSize, 0.0f);
  const TestTensor given({2, kSuperblockSize}, zeros);
  EXPECT_EQ(given.to(GetParam().dtype).values(), zeros);
}

TEST_P(BlockTypes, RandomModelHasTheSameBytesOnEveryMachine) {
  const std::string path =
      testing::TempDir() + "/random-" + std::string(name(GetParam().dtype)) + ".gguf";
  RandomModelOptions options;
  options.dtype = GetParam().dtype;
  options.norm_stddev = 0.1f;
  options.qkv_bias = options.rope_freqs = true;
  options.tied_output = false;
  options.rope_linear_factor = 2;
  RandomModelShape shape = {64, 2, 4, 2, 32, 96, 300, 1e4};
  if (block_size(options.dtype) > 32) shape.n_embd = shape.n_ff = shape.head_dim = 256;
  write_random_model(path, shape, options);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  EXPECT_EQ(hex(fnv1a(std::as_bytes(std::span(bytes)))), hex(GetParam().random_model));
}

}  // namespace
}  // namespace snapkv::test
