// SPDX-License-Identifier: MIT
// A model file that becomes shorter or is written to while a command uses it; --weights copy, which
// is not affected; and a model with a NaN among its weights.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "run_process.h"

namespace snapkv::test {
namespace changed_model_tests {

class ChangedModel : public testing::Test {
 protected:
  /// Runs generate with `args` and calls `change` once `seen` has appeared in its output.
  Result run_and_change(std::vector<std::string> args, const std::string& seen,
                        const std::function<void()>& change) {
    Command r;
    r.args = {"generate", "-m", path_, "-t", "2", "--temp", "0"};
    r.args.insert(r.args.end(), args.begin(), args.end());
    r.terminal = true;
    r.interrupt_when = [&](const std::string& out, const std::string& err) {
      if (!changed_ && (out + err).find(seen) != std::string::npos) {
        changed_ = true;
        change();
      }
      return false;
    };
    return run(r);
  }

  const std::string path_ = make_file("model.gguf", read_file(needle_model()));
  bool changed_ = false;
};

TEST_F(ChangedModel, ThatShrinksEndsTheCommandWithItsName) {
  const Result r =
      run_and_change({"-p", rome_prompt(4), "-n", "4000", "--ignore-eos", "--weights", "mapped"},
                     " 48213", [&] { std::filesystem::resize_file(path_, 4096); });
  EXPECT_TRUE(changed_);
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_NE(r.err.find("'" + path_ + "' became shorter"), std::string::npos) << r.err;
}

TEST_F(ChangedModel, ThatShrinksDoesNotMatterToACopy) {
  const Result r =
      run_and_change({"-p", rome_prompt(4), "-n", "200", "--ignore-eos", "--weights", "copy"},
                     " 48213", [&] { std::filesystem::resize_file(path_, 4096); });
  EXPECT_TRUE(changed_);
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST_F(ChangedModel, ThatIsWrittenToIsNoticedAtTheEndOfThePrompt) {
  const Result r = run_and_change(
      {"-p", rome_prompt(300), "-n", "4", "--chunk", "16", "--compute", "f32"}, "prefill", [&] {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path_)) - 1);
        file.put('x');
      });
  EXPECT_TRUE(changed_);
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("'" + path_ + "' was written to"), std::string::npos) << r.err;
}

TEST_F(ChangedModel, ANanAmongTheWeightsIsNamedOnRequest) {
  std::string model = read_file(path_);
  const uint16_t nan = 0x7e00;
  std::memcpy(model.data() + model.size() - 1000, &nan, sizeof nan);  // in an f16 matrix
  const std::string path = make_file("nan.gguf", model);
  const Result checked = run({"generate", "-m", path, "-p", "x", "-n", "1", "--check-tensors"});
  EXPECT_EQ(checked.code, 3) << checked.err;
  EXPECT_NE(checked.err.find("holds an infinity or a NaN"), std::string::npos) << checked.err;
  const Result evaluated = run({"eval", "needle", "-m", path, "--out", path + ".jsonl"});
  EXPECT_EQ(evaluated.code, 3) << evaluated.err;
  EXPECT_NE(evaluated.err.find("blk."), std::string::npos) << evaluated.err;
  EXPECT_EQ(run({"generate", "-m", path_, "-p", "x", "-n", "1", "--check-tensors"}).code, 0);
}

}  // namespace changed_model_tests
}  // namespace snapkv::test
