// SPDX-License-Identifier: MIT
// Hostile and damaged headers: each check of the parser, tested by its message.
#include <gtest/gtest.h>

#include <limits>

#include "format/gguf.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv {
namespace {

using test::ByteWriter;
using test::expect_error;
using test::GgufWriter;

constexpr int64_t kMaxDim = std::numeric_limits<int64_t>::max();

void expect_bad(const std::vector<std::byte>& bytes,
                std::initializer_list<std::string_view> words) {
  expect_error(ErrorCode::kBadModel, words, [&] { GgufFile::parse(bytes, "the-file"); });
  expect_error(ErrorCode::kBadModel, {"the-file"}, [&] { GgufFile::parse(bytes, "the-file"); });
}

ByteWriter header(uint64_t n_tensors, uint64_t n_kv, uint32_t version = 3) {
  ByteWriter w;
  w.put_bytes(std::as_bytes(std::span(std::string_view("GGUF")))).put(version);
  w.put(n_tensors).put(n_kv);
  return w;
}

/// A header, followed by `n` zero bytes, so that counts look possible.
std::vector<std::byte> with_room(ByteWriter w, size_t n = 200) {
  return w.put_bytes(std::vector<std::byte>(n)).bytes();
}

std::vector<std::byte> one_tensor(uint32_t ggml_type, std::vector<int64_t> shape, size_t n_bytes) {
  return GgufWriter()
      .add_raw_tensor("w", ggml_type, std::move(shape), std::vector<std::byte>(n_bytes))
      .bytes();
}

TEST(GgufErrorTest, Magic) {
  expect_bad({}, {"not a GGUF file", "expected 'GGUF'"});
  expect_bad({std::byte{'G'}, std::byte{'G'}}, {"not a GGUF file", "'GG'"});
  ByteWriter w;
  w.put(uint32_t{0x46554700}).put(uint32_t{3}).put(uint64_t{0}).put(uint64_t{0});
  expect_bad(w.bytes(), {"not a GGUF file", "\\x00GUF"});
}

TEST(GgufErrorTest, Version) {
  expect_bad(header(0, 0, 1).bytes(), {"version 1", "2 or 3"});
  expect_bad(header(0, 0, 4).bytes(), {"version 4", "2 or 3"});
  expect_bad(header(0, 0, 0).bytes(), {"version 0"});
  expect_bad(header(0, 0, 0x03000000).bytes(), {"big-endian"});
}

TEST(GgufErrorTest, HugeCountsDoNotAllocate) {
  for (const uint64_t n : {uint64_t{1} << 60, ~uint64_t{0}, uint64_t{1000}}) {
    expect_bad(header(0, n).bytes(), {"metadata count", std::to_string(n)});
    expect_bad(header(n, 0).bytes(), {"tensor count", std::to_string(n)});
    for (uint32_t type = 0; type <= 12; ++type) {
      if (type == 9) continue;
      ByteWriter w = header(0, 1);
      w.put_string("key").put(uint32_t{9}).put(type).put(n);
      expect_bad(with_room(w), {"key", std::to_string(n)});
    }
  }
}

TEST(GgufErrorTest, HugeStrings) {
  for (const uint64_t n : {uint64_t{1} << 60, ~uint64_t{0}, uint64_t{201}}) {
    expect_bad(with_room(header(0, 1).put(n)), {"truncated", "metadata key", std::to_string(n)});
    expect_bad(with_room(header(1, 0).put(n)), {"truncated", "tensor name"});
    ByteWriter w = header(0, 1);
    expect_bad(with_room(w.put_string("key").put(uint32_t{8}).put(n)), {"truncated", "key"});
  }
}

TEST(GgufErrorTest, MetadataEntries) {
  const auto entry = [](std::string_view key, uint32_t type) {
    ByteWriter w = header(0, 1);
    w.put_string(key).put(type);
    return w;
  };
  expect_bad(with_room(entry("", 0)), {"key 0", "empty"});
  expect_bad(with_room(entry("key", 13)), {"key", "unknown type 13"});
  expect_bad(with_room(entry("key", 9).put(uint32_t{13})), {"key", "unknown type 13"});
  expect_bad(with_room(entry("key", 9).put(uint32_t{9})), {"key", "arrays of arrays"});
  expect_bad(with_room(entry("key", 7).put(uint8_t{2})), {"key", "bool", "2"});
  expect_bad(with_room(entry("key", 9).put(uint32_t{7}).put(uint64_t{1}).put(uint8_t{255})),
             {"key", "bool", "255"});
  const std::vector<uint8_t> many((1 << 24) + 1);
  expect_bad(GgufWriter().add("key", many).bytes(), {"'key'", "16777217", "at most 16777216"});
  expect_bad(GgufWriter().add("key", uint8_t{1}).add("key", 1.0f).bytes(), {"'key'", "twice"});
  const std::string long_key(1000, '\n');
  const auto bytes = GgufWriter().add(long_key, true).add(long_key, true).bytes();
  expect_bad(bytes, {"\\x0a\\x0a", "...' occurs twice"});
}

TEST(GgufErrorTest, Alignment) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 48u, 1u << 21, 0x80000000u}) {
    expect_bad(GgufWriter().add("general.alignment", alignment).bytes(),
               {"general.alignment", std::to_string(alignment), "power of two"});
  }
  expect_bad(GgufWriter().add("general.alignment", "32").bytes(), {"general.alignment", "string"});
  expect_bad(GgufWriter().add("general.alignment", 32).bytes(), {"general.alignment", "i32"});
}

TEST(GgufErrorTest, TensorNames) {
  const std::vector<float> one = {1};
  expect_bad(GgufWriter().add_f32("w", {1}, one).add_f32("w", {1}, one).bytes(), {"'w'", "twice"});
  expect_bad(GgufWriter().add_f32("", {1}, one).bytes(), {"name", "empty"});
}

TEST(GgufErrorTest, TensorShapes) {
  expect_bad(one_tensor(0, {}, 40), {"'w'", "0 dimensions", "1 to 4"});
  expect_bad(one_tensor(0, {1, 1, 1, 1, 1}, 40), {"'w'", "5 dimensions"});
  expect_bad(one_tensor(0, {2, 0}, 40), {"'w'", "dimension 0 is 0"});
  expect_bad(one_tensor(0, {0, 2}, 40), {"'w'", "dimension 1 is 0"});
  expect_bad(one_tensor(0, {-1}, 40), {"'w'", "18446744073709551615"});
  expect_bad(one_tensor(0, {kMaxDim}, 40), {"'w'", "overflows"});
  expect_bad(one_tensor(1, {int64_t{1} << 32, int64_t{1} << 32}, 40), {"'w'", "overflows"});
  // 2^64 values, a quarter of that in bytes: the count overflows even if the bytes do not.
  expect_bad(one_tensor(2, {int64_t{1} << 32, int64_t{1} << 31}, 40), {"'w'", "overflows"});
  expect_bad(one_tensor(0, {1 << 30, 1 << 30, 1 << 30, 1 << 30}, 40), {"'w'", "overflows"});
  expect_bad(one_tensor(8, {2, 33}, 80), {"'w'", "33", "block size 32", "q8_0"});
  expect_bad(one_tensor(2, {64, 16}, 80), {"'w'", "16", "block size 32", "q4_0"});
  expect_bad(one_tensor(40, {2, 96}, 108), {"'w'", "96", "block size 64", "nvfp4"});
  expect_bad(one_tensor(12, {2, 288}, 288), {"'w'", "288", "block size 256", "q4_k"});
  expect_bad(one_tensor(13, {128}, 176), {"'w'", "128", "block size 256", "q5_k"});
  expect_bad(one_tensor(14, {1, 257}, 420), {"'w'", "257", "block size 256", "q6_k"});
}

TEST(GgufErrorTest, TensorTypesByName) {
  const std::pair<uint32_t, std::string_view> unsupported[] = {
      {4, "Q4_2 (4)"},       {9, "Q8_1 (9)"},
      {15, "Q8_K (15)"},     {24, "I8 (24)"},
      {26, "I32 (26)"},      {28, "F64 (28)"},
      {31, "Q4_0_4_4 (31)"}, {36, "IQ4_NL_4_4 or I2_S (36)"},
      {41, "Q1_0 (41)"},     {77, "77 (unknown)"},
      {~0u, "(unknown)"}};
  for (const auto& [type, name] : unsupported) {
    expect_bad(one_tensor(type, {256}, 1024),
               {"tensor 'w'", name, "not supported", "F32, F16, BF16, Q8_0"});
  }
}

TEST(GgufErrorTest, TensorPlaces) {
  const auto placed = [](uint64_t offset, uint64_t second, size_t n_data) {
    ByteWriter w = header(2, 0);
    w.put_string("a").put(uint32_t{1}).put(uint64_t{8}).put(uint32_t{0}).put(offset);
    w.put_string("b").put(uint32_t{1}).put(uint64_t{16}).put(uint32_t{0}).put(second);
    w.pad(32);
    return w.put_bytes(std::vector<std::byte>(n_data)).bytes();
  };
  EXPECT_EQ(GgufFile::parse(placed(0, 32, 96), "ok").tensors().size(), 2u);
  EXPECT_EQ(GgufFile::parse(placed(64, 0, 96), "ok").tensors().size(), 2u) << "any order";
  expect_bad(placed(0, 33, 200), {"'b'", "33", "alignment 32"});
  expect_bad(placed(0, 32, 95), {"'b'", "64 bytes", "offset 32", "95"});
  expect_bad(placed(0, 1 << 20, 96), {"'b'", "truncated or damaged"});
  expect_bad(placed(0, ~uint64_t{31}, 96), {"'b'", "truncated or damaged"});
  expect_bad(placed(32, 0, 96), {"'a'", "'b'", "overlap"});
  expect_bad(placed(0, 0, 96), {"overlap"});
}

}  // namespace
}  // namespace snapkv
