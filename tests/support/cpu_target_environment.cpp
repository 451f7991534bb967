// SPDX-License-Identifier: MIT
// Linked into every test program: SNAPKV_CPU_TARGET is obeyed from the first test on, by kernels
// that tests call without a backend too. Where the processor lacks what it names, or has nothing
// beyond it, so that the tests without it are the same, all tests say that they are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "snapkv/compute.h"

namespace snapkv::test {
namespace {

class CpuTargetEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("SNAPKV_CPU_TARGET");
    if (name == nullptr || *name == '\0') return;
    const auto names = cpu_targets();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      GTEST_SKIP() << "[  SKIPPED ] all: this processor has no " << name;
    }
    if (names.size() > 1 && names.back() == name) {  // where there is "auto" alone it is no repeat
      GTEST_SKIP() << "[  SKIPPED ] all: this processor has no more than " << name;
    }
    set_cpu_target(name);
  }
};

[[maybe_unused]] const auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new CpuTargetEnvironment);

}  // namespace
}  // namespace snapkv::test
