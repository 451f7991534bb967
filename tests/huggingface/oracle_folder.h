// SPDX-License-Identifier: MIT
// OracleFolder: a folder that transformers saved, written again from its golden, with a config.json
// that may differ from it, in memory and converted.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/gguf.h"
#include "huggingface/folder.h"
#include "snapkv/convert.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

/// Whether a value of the metadata is the golden's.
inline bool is_same(const GgufValue& value, const Json& expected) {
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
  const auto all_near = [&](const auto& numbers) {
    if (!expected.is_array() || numbers.size() != expected.size()) return false;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!near(static_cast<double>(numbers[i]), expected[i])) return false;
    }
    return true;
  };
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text == expected;
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag == expected;
  if (const auto* n = std::get_if<uint64_t>(&value.value)) return near(*n, expected);
  if (const auto* n = std::get_if<int64_t>(&value.value)) return near(*n, expected);
  if (const auto* x = std::get_if<double>(&value.value)) return near(*x, expected);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value.value)) return all_near(*list);
  if (const auto* list = std::get_if<std::vector<double>>(&value.value)) return all_near(*list);
  return false;
}

class OracleFolder : public testing::Test {
 protected:
  /// name: of a golden (tools/hf_oracle.py).
  void write(const std::string& name) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    golden_ = read_golden(name);
    write_oracle_folder(folder_, golden_);
  }
  void set_config(const Json& fields) {
    Json config = golden_.at("config");
    config.merge_patch(fields);
    write_text(folder_ + "/config.json", config.dump());
  }
  GgufFile open() const { return huggingface::to_model(huggingface::open_folder(folder_)); }
  GgufFile converted(std::optional<DType> type = {}) const {
    convert_model({.from = folder_, .to = file_, .type = type, .overwrite = true});
    return GgufFile::open(file_);
  }
  static std::vector<float> logits(const std::string& path) {
    SessionOptions options;
    options.kv.name = "full";
    options.kv_type = DType::f32;
    Session session(Model::load({.path = path, .compute = Compute::f32}), options);
    session.prefill(generated_ids(60, 320, 1));
    session.decode(7);
    return {session.logits().begin(), session.logits().end()};
  }
  static void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
  }
  /// Each of these folders, and the file that it becomes.
  void expect_same_if_converted(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      SCOPED_TRACE(name);
      write(name);
      converted();
      expect_near(logits(file_), logits(folder_));
    }
  }
  /// Rates of decay, of which the folder has logarithms.
  static void expect_decay_rates(const GgufFile& file, const std::string& name_in_folder,
                                 std::array<int64_t, 2> shape) {
    const Tensor& rates = file.find_tensor("blk.0.ssm_a")->tensor;
    ASSERT_EQ(rates.rank, 2);
    EXPECT_EQ(rates.shape[0], shape[0]);
    EXPECT_EQ(rates.shape[1], shape[1]);
    const auto logs = oracle_values(name_in_folder, shape[0] * shape[1], false);
    const int64_t row = shape[0] / 2, column = shape[1] / 2;
    EXPECT_EQ(*rates.at<const float>(row, column), -std::exp(logs[row * shape[1] + column]));
  }
  /// Converted files have the metadata that llama.cpp's converter wrote of these goldens, but for
  /// the keys in `others`, each of which is missing or has another value in one of them. Returns
  /// how many keys are the same.
  size_t expect_metadata_of_goldens(std::span<const char* const> names,
                                    const std::set<std::string>& others) {
    size_t n_keys = 0;
    std::set<std::string> met;
    for (const char* name : names) {
      SCOPED_TRACE(name);
      write(name);
      const GgufFile file = converted(DType::f32);
      for (const auto& [key, value] : golden_.at("metadata").items()) {
        const auto at = file.metadata().find(key);
        const bool same = at != file.metadata().end() && is_same(at->second, value);
        if (others.contains(key)) {
          EXPECT_FALSE(same) << key;
          met.insert(key);
        } else {
          EXPECT_TRUE(same) << key << ": " << value.dump();
          ++n_keys;
        }
      }
    }
    EXPECT_EQ(met, others);
    return n_keys;
  }
  void refused(const Json& fields, std::initializer_list<std::string_view> words) {
    SCOPED_TRACE(fields.dump());
    set_config(fields);
    expect_error(ErrorCode::kBadModel, words, [&] { Model::load({.path = folder_}); });
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "model", file_ = dir_ / "model.gguf";
  Json golden_;
};

}  // namespace snapkv::test
