// SPDX-License-Identifier: MIT
// Linked into every test program: applies SNAPKV_CPU_TARGET from the first test on, including to
// kernels that tests call without a backend. If the processor lacks that target, or has nothing
// beyond it, so that the tests would repeat the normal run, all tests report that they are skipped.
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
    if (names.size() > 1 && names.back() == name) {  // with "auto" alone it is not a repeat
      GTEST_SKIP() << "[  SKIPPED ] all: this processor has no more than " << name;
    }
    set_cpu_target(name);
  }
};

[[maybe_unused]] const auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new CpuTargetEnvironment);

}  // namespace
}  // namespace snapkv::test
