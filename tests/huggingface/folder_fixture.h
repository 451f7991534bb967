// SPDX-License-Identifier: MIT
// FolderTest: a valid folder of transformers, and what is expected where it is damaged.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "huggingface/folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {

/// Writes a valid folder, which the tests damage.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override { write("llama"); }
  void write(const std::string& name) {
    golden_ = read_golden(name);
    write_oracle_folder(path_, golden_);
  }
  GgufFile open() const { return huggingface::to_model(huggingface::open_folder(path_)); }

  /// Writes config.json with these fields changed; a null removes the field.
  void set_config(const Json& fields) {
    Json config = golden_.at("config");
    config.merge_patch(fields);
    write_text(path_ + "/config.json", config.dump());
  }
  void expect_bad(std::initializer_list<std::string_view> words) const {
    expect_error(ErrorCode::kBadModel, words, [&] { open(); });
  }
  void expect_bad_config(const Json& fields, std::initializer_list<std::string_view> words) {
    SCOPED_TRACE(fields.dump());
    set_config(fields);
    expect_bad({path_ + "/config.json"});
    expect_bad(words);
  }
  /// Writes tokenizer.json as `change` leaves it.
  template <typename Change>
  void set_tokenizer(Change change) {
    Json tokenizer = spm_tokenizer();
    change(tokenizer);
    write_text(path_ + "/tokenizer.json", tokenizer.dump());
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "model";
  Json golden_;

 private:
  const bool made_ = std::filesystem::create_directory(path_);
};

}  // namespace snapkv::test
