// SPDX-License-Identifier: MIT
// The registry of backends: names, what "auto" means, and what is said of backends that a build
// lacks.
#include "backend/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "snapkv/log.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

constexpr const char* kGpu = "registry-test-gpu";

/// A device with memory of its own that "auto" tries before all others.
BackendDefinition gpu() {
  BackendDefinition definition;
  definition.info = {.name = kGpu,
                     .help = "a test's",
                     .own_memory = true,
                     .missing = "this snapkv was built without the test's GPU"};
  definition.auto_rank = 1000;
  return definition;
}

class Registry : public testing::Test {
 protected:
  ~Registry() override {
    BackendDefinition definition = gpu();  // out of the way of "auto"
    definition.auto_rank = 0;
    register_backend(definition);
    set_log_sink({});
  }
};

TEST_F(Registry, HasTheLibrarysBackendsByName) {
  const std::vector<std::string> names = device_names();
  for (const char* name : {"auto", "cpu", "cuda", "reference"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_TRUE(find_backend("cuda").info.own_memory);
  for (const char* name : {"cpu", "reference"}) {
    EXPECT_FALSE(find_backend(name).info.own_memory);
    EXPECT_EQ(Backend::make({.device = name})->device(), name);
  }
  expect_error(ErrorCode::kUsage, {"device is tpu; it must be cpu, cuda"},
               [] { find_backend("tpu"); });
  expect_error(ErrorCode::kUsage, {"device is tpu"}, [] { Backend::make({.device = "tpu"}); });
}

TEST_F(Registry, ListsDevicesForPrograms) {
  const std::vector<DeviceInfo> all = devices();
  EXPECT_EQ(all.size() + 1, device_names().size());
  for (const DeviceInfo& info : all) {
    EXPECT_NE(device_help().find("; " + info.name + ": " + info.help), std::string::npos);
    EXPECT_EQ(info.missing.empty(), find_backend(info.name).make != nullptr);
  }
}

TEST_F(Registry, AutoIsTheHighestRankThatCanBeMade) {
  register_backend(gpu());  // missing in this build: nothing is said of it
  std::string log;
  set_log_sink([&](LogLevel, std::string_view message) { log += message; });
  EXPECT_NE(Backend::make({.device = "auto"})->device(), kGpu);
  EXPECT_EQ(log.find(kGpu), std::string::npos) << log;

  BackendDefinition broken = gpu();
  broken.make = [](const BackendOptions&) -> std::unique_ptr<Backend> {
    fail(ErrorCode::kRuntime, "its fan is loose");
  };
  register_backend(broken);
  EXPECT_NE(Backend::make({.device = "auto"})->device(), kGpu);
  EXPECT_NE(log.find("registry-test-gpu is not used: its fan is loose"), std::string::npos) << log;
  expect_error(ErrorCode::kRuntime, {"its fan is loose"}, [] { Backend::make({.device = kGpu}); });

  static const BackendOptions* seen = nullptr;
  BackendDefinition good = gpu();
  good.make = [](const BackendOptions& options) {
    seen = &options;
    return Backend::make({.device = "reference"});
  };
  register_backend(good);
  int stream = 0;
  const BackendOptions options = {.device = "auto", .stream = &stream};
  EXPECT_EQ(Backend::make(options)->device(), "reference");
  EXPECT_EQ(seen, &options);
}

TEST_F(Registry, ABuildSaysWhatItLacks) {
  register_backend(gpu());
  expect_error(ErrorCode::kUsage, {"built without the test's GPU"},
               [] { Backend::make({.device = kGpu}); });
}

TEST_F(Registry, PlansForAutoAreForTheHost) {
  register_backend(gpu());
  EXPECT_EQ(planned_backend("auto").info.name, "cpu");
  EXPECT_EQ(planned_backend(kGpu).info.name, kGpu);  // need not be there
  expect_error(ErrorCode::kUsage, {"device is tpu"}, [] { planned_backend("tpu"); });
}

// What prompts are read with: the processor's answers depend on its instructions, a GPU's do not.
TEST_F(Registry, PlannedDevicesAnswerAsTheBackendsDo) {
  for (const Compute compute : {Compute::automatic, Compute::f32}) {
    const auto backend = Backend::make({.device = "cpu", .n_threads = 1, .compute = compute});
    const auto planned = find_backend("cpu").plan(
        {.device = "cpu", .asked = compute, .compute = backend->compute_dtype(), .n_threads = 1});
    for (const DType type : {DType::f32, DType::f16, DType::q4_0, DType::q4_k, DType::q5_0}) {
      const ProductTraits a = backend->products(type), b = planned->products(type);
      EXPECT_EQ(a.packed_min_tokens, b.packed_min_tokens);
      EXPECT_EQ(a.packed_in_bytes, b.packed_in_bytes);
      EXPECT_TRUE(a.packs_at_use && b.packs_at_use);
    }
    EXPECT_NE(planned->kernels_to_ask(), nullptr);
  }
  const auto f32 = Backend::make({.device = "cpu", .n_threads = 1, .compute = Compute::f32});
  EXPECT_EQ(f32->products(DType::q4_0).packed_min_tokens, 64);
  EXPECT_FALSE(f32->products(DType::q4_0).packed_in_bytes);
  // blocks are multiplied in 8 bits here or there: all prompts must be read alike
  const auto rounding = Backend::make({.device = "cpu", .n_threads = 1});
  EXPECT_EQ(rounding->products(DType::q4_0).packed_min_tokens, 1);

  const ProductTraits cuda = find_backend("cuda").plan({.device = "cuda"})->products(DType::q4_0);
  EXPECT_EQ(cuda.packed_min_tokens, 33);
  EXPECT_FALSE(cuda.packed_in_bytes || cuda.packs_at_use);
  const auto reference = Backend::make({.device = "reference"});
  EXPECT_EQ(reference->products(DType::q4_0).packed_min_tokens, ProductTraits::kNever);
}

}  // namespace
}  // namespace snapkv::test
