// SPDX-License-Identifier: MIT
// Valid files: everything that was written can be read back.
#include "format/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv {
namespace {

using test::expect_error;
using test::GgufWriter;
using test::TempDir;

std::vector<std::byte> counted(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

GgufWriter example(uint32_t version, uint32_t alignment = 32) {
  GgufWriter w(version, alignment);
  w.add("u8", uint8_t{255}).add("i8", int8_t{-128}).add("u16", uint16_t{65535});
  w.add("i16", int16_t{-32768}).add("u32", uint32_t{4294967295u}).add("i32", int32_t{-5});
  w.add("u64", std::numeric_limits<uint64_t>::max());
  w.add("i64", std::numeric_limits<int64_t>::min());
  w.add("f32", 1.5f).add("f64", -2.25).add("yes", true).add("no", false);
  w.add("text", "caf\xc3\xa9").add("empty", "").add("i32+", int32_t{7});
  w.add("strings", std::vector<std::string>{"a", "", "ccc"});
  w.add("floats", std::vector<float>{0.5f, -1.0f}).add("doubles", std::vector<double>{3.0});
  w.add("bytes", std::vector<uint8_t>{1, 2, 255}).add("ints", std::vector<int32_t>{-1, 0, 1});
  w.add("bools", std::vector<bool>{true, false, true}).add("none", std::vector<uint32_t>{});
  w.add("longs", std::vector<uint64_t>{1, std::numeric_limits<uint64_t>::max()});
  w.add_f32("vector", {3}, {1, 2, 3});
  w.add_tensor("matrix", DType::f16, {2, 3}, counted(12));
  w.add_tensor("blocks8", DType::q8_0, {2, 64}, counted(136));
  w.add_tensor("blocks4", DType::q4_0, {3, 32}, counted(54));
  w.add_tensor("blocks4k", DType::q4_k, {3, 256}, counted(432));
  w.add_tensor("blocks5k", DType::q5_k, {1, 512}, counted(352));
  w.add_tensor("blocks6k", DType::q6_k, {2, 256}, counted(420));
  w.add_tensor("four", DType::bf16, {2, 1, 3, 5}, counted(60));
  return w;
}

void check_metadata(const GgufFile& file) {
  EXPECT_EQ(file.get_uint("u8"), 255u);
  EXPECT_EQ(file.get_uint("u16"), 65535u);
  EXPECT_EQ(file.get_uint("u32"), 4294967295u);
  EXPECT_EQ(file.get_uint("u64"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(file.get_uint("i32+"), 7u) << "a signed value that fits";
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("i8").value), -128);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("i16").value), -32768);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("i64").value),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(file.get_float("f32"), 1.5);
  EXPECT_EQ(file.get_float("f64"), -2.25);
  EXPECT_TRUE(file.get_bool("yes", false));
  EXPECT_FALSE(file.get_bool("no", true));
  EXPECT_EQ(file.get_string("text"), "caf\xc3\xa9");
  EXPECT_EQ(file.get_string("empty"), "");
  EXPECT_EQ(file.get_strings("strings"), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(file.get_floats("floats"), (std::vector<double>{0.5, -1.0}));
  EXPECT_EQ(file.get_floats("doubles"), (std::vector<double>{3.0}));
  EXPECT_EQ(file.get_ints("bytes"), (std::vector<int64_t>{1, 2, 255}));
  EXPECT_EQ(file.get_ints("ints"), (std::vector<int64_t>{-1, 0, 1}));
  EXPECT_EQ(file.get_ints("none"), (std::vector<int64_t>{}));
  EXPECT_EQ(std::get<std::vector<bool>>(file.metadata().at("bools").value),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(file.metadata().at("u16").type, GgufType::u16);
  EXPECT_EQ(file.metadata().at("bytes").type, GgufType::array);
  EXPECT_EQ(file.metadata().at("bytes").element, GgufType::u8);
}

void check_tensor(const GgufFile& file, std::string_view name, DType dtype,
                  std::vector<int64_t> shape, uint64_t bytes, uint64_t alignment) {
  const GgufTensor* t = file.find_tensor(name);
  ASSERT_NE(t, nullptr) << name;
  EXPECT_EQ(t->name, name);
  EXPECT_EQ(t->tensor.dtype, dtype);
  ASSERT_EQ(t->tensor.rank, static_cast<int>(shape.size()));
  for (size_t i = 0; i < shape.size(); ++i) EXPECT_EQ(t->tensor.shape[i], shape[i]) << name;
  EXPECT_TRUE(t->tensor.is_contiguous());
  EXPECT_EQ(t->bytes(), bytes);
  EXPECT_EQ(t->file_offset % alignment, 0u);
}

void check_tensors(const GgufFile& file, uint64_t alignment) {
  ASSERT_EQ(file.tensors().size(), 8u);
  EXPECT_EQ(file.tensors()[0].name, "vector");
  EXPECT_EQ(file.tensors()[7].name, "four");
  check_tensor(file, "vector", DType::f32, {3}, 12, alignment);
  check_tensor(file, "matrix", DType::f16, {2, 3}, 12, alignment);
  check_tensor(file, "blocks8", DType::q8_0, {2, 64}, 136, alignment);
  check_tensor(file, "blocks4", DType::q4_0, {3, 32}, 54, alignment);
  check_tensor(file, "blocks4k", DType::q4_k, {3, 256}, 432, alignment);
  check_tensor(file, "blocks5k", DType::q5_k, {1, 512}, 352, alignment);
  check_tensor(file, "blocks6k", DType::q6_k, {2, 256}, 420, alignment);
  check_tensor(file, "four", DType::bf16, {2, 1, 3, 5}, 60, alignment);
  EXPECT_EQ(*file.find_tensor("vector")->tensor.at<float>(2), 3.0f);
  const auto expected = counted(136);
  EXPECT_EQ(std::memcmp(file.find_tensor("blocks8")->tensor.data, expected.data(), 136), 0);
  EXPECT_EQ(file.find_tensor("absent"), nullptr);
}

TEST(GgufTest, Version2And3FromMemory) {
  for (const uint32_t version : {2u, 3u}) {
    for (const uint32_t alignment : {8u, 32u, 64u, 4096u}) {
      const auto bytes = example(version, alignment).bytes();
      const auto file = GgufFile::parse(bytes, "memory");
      EXPECT_EQ(file.version(), version);
      EXPECT_EQ(file.file_bytes(), bytes.size());
      EXPECT_EQ(file.path(), "memory");
      check_metadata(file);
      check_tensors(file, alignment);
    }
  }
}

TEST(GgufTest, FromDiskAndMoved) {
  const TempDir dir;
  example(3).write(dir / "model.gguf");
  GgufFile opened = GgufFile::open(dir / "model.gguf");
  const GgufFile file = std::move(opened);
  EXPECT_EQ(file.path(), dir / "model.gguf");
  check_metadata(file);
  check_tensors(file, 32);
  for (const GgufTensor& t : file.tensors()) {
    file.will_need(t);
    file.dont_need(t);
  }
  check_tensors(file, 32);
}

TEST(GgufTest, HintsLeaveMemoryAlone) {
  const auto bytes = example(3).bytes();
  const auto file = GgufFile::parse(bytes, "memory");
  for (const GgufTensor& t : file.tensors()) file.dont_need(t);
  check_tensors(file, 32);
}

TEST(GgufTest, WithoutTensorsTheDataSectionMayBeMissing) {
  auto bytes = GgufWriter().add("general.architecture", "llama").bytes();
  bytes.resize(4 + 4 + 8 + 8 + (8 + 20) + 4 + (8 + 5));
  const auto file = GgufFile::parse(bytes, "memory");
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
}

TEST(GgufTest, TypedAccessNamesKeyAndTypes) {
  const auto bytes = example(3).bytes();
  const auto file = GgufFile::parse(bytes, "the-file");
  const auto bad = ErrorCode::kBadModel;
  expect_error(bad, {"the-file", "'absent'", "missing"}, [&] { file.get_uint("absent"); });
  expect_error(bad, {"'text'", "string", "integer"}, [&] { file.get_uint("text"); });
  expect_error(bad, {"'i32'", "-5"}, [&] { file.get_uint("i32"); });
  expect_error(bad, {"'u8'", "u8", "f32"}, [&] { file.get_float("u8"); });
  expect_error(bad, {"'u8'", "bool"}, [&] { file.get_bool("u8", true); });
  expect_error(bad, {"'u8'", "string"}, [&] { file.get_string("u8"); });
  expect_error(bad, {"'ints'", "array of i32", "string"}, [&] { file.get_strings("ints"); });
  expect_error(bad, {"'strings'", "array of string"}, [&] { file.get_floats("strings"); });
  expect_error(bad, {"'floats'", "integers"}, [&] { file.get_ints("floats"); });
  expect_error(bad, {"'longs'", "18446744073709551615"}, [&] { file.get_ints("longs"); });
  // With a default, only a value of another type is an error.
  EXPECT_EQ(file.get_uint("absent", 9), 9u);
  EXPECT_EQ(file.get_float("absent", 0.25), 0.25);
  EXPECT_TRUE(file.get_bool("absent", true));
  EXPECT_EQ(file.get_string("absent", "x"), "x");
  EXPECT_EQ(file.get_uint("u8", 9), 255u);
  expect_error(bad, {"'text'"}, [&] { file.get_uint("text", 9); });
  expect_error(bad, {"'text'"}, [&] { file.get_float("text", 9); });
  expect_error(bad, {"'u8'"}, [&] { file.get_string("u8", "x"); });
}

}  // namespace
}  // namespace snapkv
