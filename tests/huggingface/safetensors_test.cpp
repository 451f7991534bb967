// SPDX-License-Identifier: MIT
// Headers of safetensors files: what is read from a valid one, and an error that names the file and
// the fault for every invalid one.
#include "huggingface/safetensors.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/cpu_timer.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace {

using huggingface::parse_safetensors;
using huggingface::SafetensorsEntry;

/// Parses a header that `n` bytes of data follow.
std::vector<SafetensorsEntry> parse(std::string_view header, size_t n = 0) {
  return parse_safetensors(safetensors_bytes(header, std::vector<std::byte>(n)), "FILE");
}

void expect_bad(std::initializer_list<std::string_view> words, std::string_view header,
                size_t n = 0) {
  SCOPED_TRACE(header.substr(0, 200));
  expect_error(ErrorCode::kBadModel, words, [&] { parse(header, n); });
}

TEST(SafetensorsTest, ReadsTensorsInTheOrderOfTheirData) {
  const auto entries = parse(R"({"__metadata__": {"format": "pt"},
      "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [8, 20]},
      "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
      "one": {"shape": [], "data_offsets": [20, 28], "dtype": "I64"},
      "none": {"dtype": "F16", "shape": [0, 7], "data_offsets": [8, 8]}}   )",
                             28);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].type->dtype, DType::f32);
  EXPECT_EQ(entries[0].shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(entries[1].name, "none");
  EXPECT_EQ(entries[2].name, "b");
  EXPECT_EQ(entries[2].end - entries[2].begin, 12u);
  EXPECT_EQ(entries[2].begin, entries[0].end);
  EXPECT_EQ(entries[3].type->name, "I64");
  EXPECT_FALSE(entries[3].type->dtype);
  EXPECT_TRUE(parse("{}").empty());
}

TEST(SafetensorsTest, NamesWhatIsWrongWithTheFile) {
  const auto check = [](std::string_view bytes, std::initializer_list<std::string_view> words) {
    expect_error(ErrorCode::kBadModel, words,
                 [&] { parse_safetensors(std::as_bytes(std::span(bytes)), "FILE"); });
  };
  check("", {"'FILE'", "truncated"});
  check("abc", {"'FILE'", "truncated"});
  using std::string_view_literals::operator""sv;
  check("\5\0\0\0\0\0\0\0{}"sv, {"'FILE'", "length of the header", "5"});
  check("\0\0\0\0\0\0\0\0{}"sv, {"'FILE'", "'{'"});
  check("\2\0\0\0\0\0\0\0[]"sv, {"'FILE'", "'{'"});
  check("\xff\xff\xff\xff\xff\xff\xff\xff{}", {"100000000", "18446744073709551615"});
  check("\x01\xe1\xf5\x05\0\0\0\0{}"sv, {"100000000", "100000001"});
}

TEST(SafetensorsTest, NamesWhatIsWrongWithTheHeader) {
  expect_bad({"'FILE'", "JSON"}, R"({"a": )");
  expect_bad({"JSON"}, R"({} {})");
  expect_bad({"JSON"}, "{\"\xff\": 1}");
  expect_bad({"'a'", "a number"}, R"({"a": 1})");
  expect_bad({"'a'", "an array"}, R"({"a": []})");
  expect_bad({"'a'", "null"}, R"({"a": null})");
  expect_bad({"__metadata__", "a number"}, R"({"__metadata__": {"x": 1}})");
  expect_bad({"__metadata__", "an object"}, R"({"__metadata__": {"x": {}}})");
  expect_bad({"'a'", "no dtype"}, R"({"a": {"shape": [], "data_offsets": [0, 0]}})");
  expect_bad({"'a'", "no shape"}, R"({"a": {"dtype": "U8", "data_offsets": [0, 0]}})");
  expect_bad({"'a'", "no data_offsets"}, R"({"a": {"dtype": "U8", "shape": []}})");
  expect_bad({"'a'", "'Q9'", "not a known type"}, R"({"a": {"dtype": "Q9"}})");
  expect_bad({"dtype of tensor 'a'", "an array"}, R"({"a": {"dtype": ["F32"]}})");
  expect_bad({"'a'", "field 'extra'"}, R"({"a": {"extra": 1}})");
  expect_bad({"shape of tensor 'a'", "an object"}, R"({"a": {"shape": [{}]}})");
  expect_bad({"shape of tensor 'a'", "a negative number"}, R"({"a": {"shape": [-1]}})");
  expect_bad({"shape of tensor 'a'", "a broken number"}, R"({"a": {"shape": [1.5]}})");
  expect_bad({"shape of tensor 'a'", "9223372036854775808"},
             R"({"a": {"shape": [9223372036854775808]}})");
  expect_bad({"shape of tensor 'a'"}, R"({"a": {"shape": [18446744073709551616]}})");
  expect_bad({"data_offsets of tensor 'a'", "has 3"}, R"({"a": {"data_offsets": [0, 1, 2]}})");
}

TEST(SafetensorsTest, ChecksSizesAndOffsets) {
  expect_bad(
      {"'a'", "overflows"},
      R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4]}})", 4);
  expect_bad({"'a'", "span 4 bytes", "F16 takes 2"},
             R"({"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 4]}})", 4);
  expect_bad({"'a'", "[4, 0]"}, R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})",
             4);
  expect_bad({"'a'", "whole bytes"},
             R"({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}})", 1);
  expect_bad({"'a'", "overflow"},
             R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [18446744073709551613,
                 18446744073709551615]}})",
             4);
  expect_bad({"take 8 bytes", "has 4", "truncated"},
             R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})", 4);
  expect_bad({"take 4 bytes", "has 5"},
             R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 5);
}

TEST(SafetensorsTest, RefusesOverlapsGapsAndNamesThatOccurTwice) {
  const auto two = [](const char* first, const char* a, const char* second, const char* b) {
    return fmt::format(
        R"({{"{}": {{"dtype": "U8", "shape": [4], "data_offsets": {}}},
             "{}": {{"dtype": "U8", "shape": [4], "data_offsets": {}}}}})",
        first, a, second, b);
  };
  expect_bad({"'b'", "offset 3", "inside"}, two("a", "[0, 4]", "b", "[3, 7]"), 7);
  expect_bad({"'b'", "offset 0", "inside"}, two("a", "[0, 4]", "b", "[0, 4]"), 4);
  expect_bad({"'b'", "offset 5", "gap"}, two("a", "[0, 4]", "b", "[5, 9]"), 9);
  expect_bad({"'a'", "offset 1", "gap"}, two("a", "[1, 5]", "b", "[5, 9]"), 9);
  expect_bad({"'a' occurs twice"}, two("a", "[0, 4]", "a", "[4, 8]"), 8);
}

/// Expects an error from the header and returns the processor time that it took, so that other work
/// on the machine does not count.
double seconds_of(const std::string& header) {
  const CpuTimer timer;
  EXPECT_THROW(parse(header), Error);
  return timer.seconds();
}

// What is linear in these takes a second even unoptimized, what is quadratic minutes or hours.
TEST(SafetensorsTest, HostileHeadersEndSoon) {
  constexpr size_t kBytes = 4'000'000;
  constexpr double kMostSeconds = 20;
  EXPECT_LT(seconds_of("{\"a\": " + std::string(kBytes, '[')), kMostSeconds);
  EXPECT_LT(seconds_of("{\"a\": {\"shape\": [" + std::string(kBytes, '1')), kMostSeconds);
  EXPECT_LT(seconds_of("{\"" + std::string(kBytes, 'x') + "\": 1}"), kMostSeconds);
  std::string many = "{";
  for (int i = 0; i < 200'000; ++i) {
    many += fmt::format(R"("{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", i % 199'999);
  }
  many.back() = '}';
  EXPECT_LT(seconds_of(many), kMostSeconds);  // the error: one name occurs twice
}

}  // namespace
}  // namespace snapkv::test
