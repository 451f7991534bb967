// SPDX-License-Identifier: MIT
// The check that `snapkv bench` makes before timing: right kernels pass in every type, and wrong
// results are an error.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/bench/check.h"
#include "cli/bench/tokens.h"
#include "tests/support/expect_error.h"
#include "tests/support/processor.h"
#include "tests/support/test_models.h"

namespace snapkv::cli {
namespace bench_check_tests {

TEST(BenchCheckTest, EveryTypePasses) {
  struct Case {
    const char* name;
    Compute compute;
    int n_tokens;  // one more than the smallest number that packs weights, and at least 33
  };
  const Case cases[] = {{"needle", Compute::bf16, 33},    {"tiny-f32", Compute::f32, 97},
                        {"tiny-bf16", Compute::bf16, 33}, {"tiny-q8_0", Compute::f32, 81},
                        {"tiny-q8_0", Compute::bf16, 33}, {"tiny-q4_0", Compute::bf16, 33},
                        {"tiny-q4_k", Compute::bf16, 33}, {"tiny-q6_k", Compute::f32, 33}};
  for (const auto& [name, compute, n_tokens] : cases) {
    if (!test::runs(compute)) continue;
    const auto model = test::load_model(name, compute, 1);
    const BenchCheck check = check_model(model, DType::f16, 2, 1, {});
    EXPECT_LE(check.max_difference, check.tolerance);
    EXPECT_NE(check.what.find(fmt::format("reference, {} tokens", n_tokens)), std::string::npos)
        << check.what;
    EXPECT_NE(check.what.find("batch of 2"), std::string::npos) << check.what;
  }
}

TEST(BenchCheckTest, OtherResultsThanTheReferencesAreAnError) {
  // The reference device loads the file again and finds other weights.
  RandomModelOptions options;
  const RandomModelShape shape = random_model_shape("tiny-gqa");
  const std::string folder = testing::TempDir();
  const std::string path = folder + "bench_check.gguf", other = folder + "bench_check_other.gguf";
  write_random_model(path, shape, options);
  options.seed = 1;
  write_random_model(other, shape, options);
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!test::runs(compute)) continue;
    const auto model = Model::load({.path = path, .compute = compute});
    std::filesystem::copy_file(path, path + ".kept",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(other, other + ".copy",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(other + ".copy", path);  // the model's mapping keeps the old file
    test::expect_error(ErrorCode::kRuntime, {path, "log-probabilities", "reference", "tolerance"},
                       [&] { check_model(model, DType::f16, 1, 1, {}); });
    std::filesystem::rename(path + ".kept", path);
  }
}

TEST(BenchCheckTest, TokensDependOnTheSeedOnly) {
  const std::vector<int32_t> a = random_tokens(1000, 77, 5), b = random_tokens(1000, 77, 5);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, random_tokens(1000, 77, 6));
  std::vector<int> seen(77);
  for (const int32_t id : a) {
    ASSERT_GE(id, 0);
    ASSERT_LT(id, 77);
    ++seen[static_cast<size_t>(id)];
  }
  for (const int n : seen) EXPECT_GT(n, 0);
}

}  // namespace bench_check_tests
}  // namespace snapkv::cli
