// SPDX-License-Identifier: MIT
// Linked into every test program: makes testing::TempDir() a folder of this process alone, which is
// removed at its end. ctest runs the cases of one program as parallel processes, and other people
// may run another build's tests on the same machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace snapkv::test {
namespace {

class OwnTempDir : public testing::Environment {
 public:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/snapkv-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr) << folder;
    folder_ = folder;
    setenv("TEST_TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;  // a folder that cannot be removed does not fail a test
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_;
};

[[maybe_unused]] const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new OwnTempDir);

}  // namespace
}  // namespace snapkv::test
