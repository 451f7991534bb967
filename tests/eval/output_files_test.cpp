// SPDX-License-Identifier: MIT
// check_outputs: what a run would write over is found under whatever name it has.
#include "eval/common/output_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string make(const std::string& name) {
    std::ofstream(folder_ + "/" + name) << "text";
    return folder_ + "/" + name;
  }
  std::vector<std::string> names_of_model(const std::string& path) {
    std::vector<std::string> names;
    for (const RunFile& file : model_files(path)) {
      EXPECT_EQ(file.option, "--model");
      names.push_back(fs::path(file.path).filename().string());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  std::string folder_;
};

TEST_F(OutputFiles, AreNoInputsAndNoOtherOutputs) {
  const std::string text = make("a.txt"), other = make("b.txt");
  fs::create_hard_link(text, folder_ + "/hard");
  fs::create_symlink(text, folder_ + "/soft");
  fs::create_symlink(folder_ + "/new", folder_ + "/soft_new");
  for (const char* name : {"a.txt", "hard", "soft", "../AreNoInputsAndNoOtherOutputs/a.txt"}) {
    SCOPED_TRACE(name);
    const std::string path = folder_ + "/" + name;
    test::expect_error(ErrorCode::kUsage, {"--out " + path, "--text " + text, "is read"}, [&] {
      check_outputs({{"--out", path}}, {{"--text", other}, {"--text", text}});
    });
    test::expect_error(ErrorCode::kUsage, {"--html " + path, "--out " + text, "is written"}, [&] {
      check_outputs({{"--out", text}, {"--html", path}}, {});
    });
  }
  for (const char* name : {"new", "soft_new", "./new"}) {
    SCOPED_TRACE(name);
    const std::string path = folder_ + "/" + name;
    test::expect_error(ErrorCode::kUsage, {"--html " + path, "--out"}, [&] {
      check_outputs({{"--out", folder_ + "/new"}, {"--html", path}}, {});
    });
  }
  check_outputs({{"--out", ""}, {"--html", ""}}, {{"--text", ""}});
  check_outputs({{"--out", "/dev/null"}, {"--html", "/dev/null"}}, {{"--text", "/dev/null"}});
  check_outputs({{"--out", folder_ + "/new"}, {"--html", folder_ + "/page"}}, {{"--text", text}});
}

TEST_F(OutputFiles, KnowTheFilesOfAModel) {
  using Names = std::vector<std::string>;
  const std::string single = make("a.gguf"), part = make("m-00001-of-00002.gguf");
  make("m-00002-of-00002.gguf");
  make("n-00001-of-00002.gguf");
  make("m-0000x-of-00002.gguf");
  EXPECT_EQ(names_of_model(single), Names{"a.gguf"});
  EXPECT_EQ(names_of_model(part), (Names{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}));
  EXPECT_EQ(names_of_model("none.gguf"), Names{"none.gguf"});
  fs::create_directory(folder_ + "/hf");
  for (const char* name : {"config.json", "model.safetensors", "page.html"}) {
    make(std::string("hf/") + name);
  }
  EXPECT_EQ(names_of_model(folder_ + "/hf"), (Names{"config.json", "model.safetensors"}));
}

}  // namespace
}  // namespace snapkv::eval
