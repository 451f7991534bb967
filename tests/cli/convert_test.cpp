// SPDX-License-Identifier: MIT
// snapkv convert: the command that calls convert_model(). Also a folder as the model of other
// commands.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "run_process.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace convert_tests {

std::string make_model() {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/huggingface/golden/llama.json");
  const std::string folder = make_folder();
  write_oracle_folder(folder, Json::parse(in));
  return folder;
}

TEST(ConvertCommand, WritesAFileThatAnswersAsTheFolderDoes) {
  const std::string folder = make_model(), file = make_folder() + "/model.gguf";
  const Result r = run({"convert", folder, "-o", file});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("39 tensors"), std::string::npos) << r.err;
  const auto answer = [](const std::string& model) {
    return run(
        {"generate", "-m", model, "-p", "ab abc", "-n", "20", "--temp", "0", "--ignore-eos"});
  };
  const Result of_folder = answer(folder), of_file = answer(file);
  EXPECT_EQ(of_folder.code, 0) << of_folder.err;
  EXPECT_EQ(of_folder.out, of_file.out);
}

TEST(ConvertCommand, RefusesToOverwriteWithoutForce) {
  const std::string folder = make_model(), file = make_file("model.gguf", "precious");
  const Result refused = run({"convert", folder, "-o", file});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("exists already"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(read_file(file), "precious");
  EXPECT_EQ(run({"convert", folder, "-o", file, "--force", "--type", "q8_0"}).code, 0);
  EXPECT_EQ(read_file(file).substr(0, 4), "GGUF");
}

TEST(ConvertCommand, Failures) {
  const std::string folder = make_model(), file = make_folder() + "/model.gguf";
  EXPECT_EQ(run({"convert", folder}).code, 2);
  EXPECT_EQ(run({"convert", "-o", file}).code, 2);
  EXPECT_EQ(run({"convert", folder, "-o", file, "--type", "q3_k"}).code, 2);
  EXPECT_EQ(run({"convert", folder + "/none", "-o", file}).code, 1);
  EXPECT_EQ(run({"convert", folder + "/model.safetensors", "-o", file}).code, 2);
  std::filesystem::remove(folder + "/config.json");
  EXPECT_EQ(run({"convert", folder, "-o", file}).code, 3);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace convert_tests
}  // namespace snapkv::test
