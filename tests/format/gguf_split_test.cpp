// SPDX-License-Identifier: MIT
// Models that are split over several files.
#include <gtest/gtest.h>

#include <filesystem>

#include "format/gguf.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv {
namespace {

using test::expect_error;
using test::GgufWriter;
using test::TempDir;

GgufWriter seven_tensors() {
  GgufWriter w;
  w.add("general.architecture", "llama");
  for (int i = 0; i < 7; ++i) {
    w.add_f32("t" + std::to_string(i), {2}, {static_cast<float>(i), static_cast<float>(i) + 0.5f});
  }
  return w;
}

void expect_bad(const std::string& path, std::initializer_list<std::string_view> words) {
  expect_error(ErrorCode::kBadModel, words, [&] { GgufFile::open(path); });
}

/// Part `no` of `count` with one tensor and the given keys.
GgufWriter part(uint16_t no, uint16_t count, int32_t n_tensors, const std::string& tensor) {
  GgufWriter w;
  w.add("split.no", no).add("split.count", count).add("split.tensors.count", n_tensors);
  return std::move(w.add_f32(tensor, {1}, {1}));
}

TEST(GgufSplitTest, PartsReadAsOne) {
  const TempDir dir;
  for (const int n_parts : {2, 3, 7}) {
    const auto paths = seven_tensors().write_split(dir / ("m" + std::to_string(n_parts)), n_parts);
    uint64_t bytes = 0;
    for (const auto& path : paths) bytes += std::filesystem::file_size(path);
    const auto file = GgufFile::open(paths[0]);
    EXPECT_EQ(file.file_bytes(), bytes);
    EXPECT_EQ(file.get_string("general.architecture"), "llama");
    ASSERT_EQ(file.tensors().size(), 7u);
    for (int i = 0; i < 7; ++i) {
      const GgufTensor* t = file.find_tensor("t" + std::to_string(i));
      ASSERT_NE(t, nullptr);
      EXPECT_EQ(t, &file.tensors()[static_cast<size_t>(i)]);
      EXPECT_EQ(*t->tensor.at<float>(1), static_cast<float>(i) + 0.5f);
      file.dont_need(*t);
      EXPECT_EQ(*t->tensor.at<float>(0), static_cast<float>(i));
    }
    EXPECT_EQ(file.tensors()[6].part, n_parts - 1);
  }
}

TEST(GgufSplitTest, FingerprintsDifferByAnyTensorAndKey) {
  const TempDir dir;
  const auto fingerprint = [&](const GgufWriter& w) {
    w.write(dir / "model.gguf");
    return GgufFile::open(dir / "model.gguf").fingerprint();
  };
  const uint64_t one = fingerprint(seven_tensors());
  EXPECT_EQ(fingerprint(seven_tensors()), one);
  GgufWriter longer = seven_tensors(), other_key = seven_tensors(), last = seven_tensors();
  EXPECT_NE(fingerprint(longer.add_f32("t7", {1}, {0})), one);
  EXPECT_NE(fingerprint(other_key.add("llama.rope.freq_base", 5.0f)), one);
  // Values in the middle of a large tensor, at unchanged size.
  std::vector<float> values(1000, 1.0f);
  const uint64_t before = fingerprint(GgufWriter(last).add_f32("t7", {1000}, values));
  values[500] = 2.0f;
  EXPECT_NE(fingerprint(GgufWriter(last).add_f32("t7", {1000}, values)), before);
  // The last part of a split counts too.
  const auto paths = last.write_split(dir / "m", 3);
  const uint64_t split = GgufFile::open(paths[0]).fingerprint();
  GgufWriter changed;
  changed.add("general.architecture", "llama");
  for (int i = 0; i < 7; ++i) {
    changed.add_f32("t" + std::to_string(i), {2},
                    {static_cast<float>(i), i == 6 ? 0.0f : static_cast<float>(i) + 0.5f});
  }
  EXPECT_NE(GgufFile::open(changed.write_split(dir / "n", 3)[0]).fingerprint(), split);
}

TEST(GgufSplitTest, OnePartStandsAloneUnderAnyName) {
  const TempDir dir;
  part(0, 1, 1, "a").write(dir / "model.gguf");
  EXPECT_EQ(GgufFile::open(dir / "model.gguf").tensors().size(), 1u);
}

TEST(GgufSplitTest, AnotherPartNamesTheFirst) {
  const TempDir dir;
  const auto paths = seven_tensors().write_split(dir / "m", 3);
  expect_bad(paths[1], {"part 2 of 3", paths[0]});
  expect_bad(paths[2], {"part 3 of 3", paths[0]});
}

TEST(GgufSplitTest, MissingPart) {
  const TempDir dir;
  const auto paths = seven_tensors().write_split(dir / "m", 3);
  std::filesystem::remove(paths[2]);
  expect_error(ErrorCode::kRuntime, {paths[2], "No such file"}, [&] { GgufFile::open(paths[0]); });
}

TEST(GgufSplitTest, TruncatedPart) {
  const TempDir dir;
  const auto paths = seven_tensors().write_split(dir / "m", 3);
  std::filesystem::resize_file(paths[1], 60);
  expect_bad(paths[0], {paths[1], "truncated"});
}

TEST(GgufSplitTest, Names) {
  const TempDir dir;
  const auto paths = seven_tensors().write_split(dir / "m", 3);
  for (const std::string name : {"renamed.gguf", "m-0001-of-0003.gguf", "m-00001-of-0000x.gguf",
                                 "m_00001-of-00003.gguf", "-00001-of-00003.ggu"}) {
    std::filesystem::copy_file(paths[0], dir / name);
    expect_bad(dir / name, {name, "3 files", "-of-00003.gguf"});
  }
  std::filesystem::copy_file(paths[0], dir / "m-00001-of-00004.gguf");
  expect_bad(dir / "m-00001-of-00004.gguf", {"split.count", "3", "4 parts"});
  std::filesystem::remove(paths[1]);
  std::filesystem::copy_file(paths[0], paths[1]);
  expect_bad(paths[1], {"split.no", "part 2"});
}

TEST(GgufSplitTest, KeysThatDisagree) {
  const TempDir dir;
  const std::string first = dir / "m-00001-of-00002.gguf";
  const std::string second = dir / "m-00002-of-00002.gguf";
  part(0, 2, 2, "a").write(first);
  part(1, 2, 2, "b").write(second);
  EXPECT_EQ(GgufFile::open(first).tensors().size(), 2u);

  part(0, 2, 2, "b").write(second);
  expect_bad(first, {second, "split.no", "0", "expected 1"});
  part(1, 3, 2, "b").write(second);
  expect_bad(first, {second, "split.count", "3", "expected 2"});
  part(1, 2, 2, "a").write(second);
  expect_bad(first, {second, "'a'", "another part"});
  GgufWriter().add_f32("b", {1}, {1}).write(second);
  expect_bad(first, {second, "split.no", "missing"});
  part(1, 2, 2, "b").write(second);

  part(0, 2, 3, "a").write(first);
  expect_bad(first, {"split.tensors.count", "3", "2"});
  GgufWriter no_total;
  no_total.add("split.no", uint16_t{0}).add("split.count", uint16_t{2}).write(first);
  expect_bad(first, {"split.tensors.count", "missing"});
  GgufWriter().add("split.count", uint16_t{2}).write(first);
  expect_bad(first, {"split.no", "missing"});
  GgufWriter().add("split.count", "two").write(first);
  expect_bad(first, {"split.count", "integer"});
  GgufWriter().add("split.count", int32_t{-2}).write(first);
  expect_bad(first, {"split.count", "integer"});
}

}  // namespace
}  // namespace snapkv
