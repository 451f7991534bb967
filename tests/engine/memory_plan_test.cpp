// SPDX-License-Identifier: MIT
// plan_memory() is a dry run of the engine: how long it takes, and that it follows the code.
// memory_promise_test.cpp compares plans with what processes take.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "backend/measure/measuring_backend.h"
#include "bench/random_model.h"
#include "policy/policy.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/least_seconds.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace memory_plan_tests {

constexpr double kMostSeconds = 0.020;

SessionOptions options_of(const std::string& policy) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = 200;
  return options;
}

/// As many layers and heads as Llama 3 8B has, but narrow ones, to be written quickly.
ModelInfo large_model() {
  const RandomModelShape shape = {256, 32, 32, 8, 128, 512, 512};
  const std::string path = testing::TempDir() + "/many_layers.gguf";
  write_random_model(path, shape, {.dtype = DType::q4_0});
  return describe_model(path).info;
}

TEST(MemoryPlanTest, AMillionTokensArePlannedIn20Milliseconds) {
  const ModelInfo info = large_model();
  for (const std::string& policy : policy_names()) {
    for (const bool critical : {false, true}) {
      SessionOptions options = options_of(policy);
      options.kv.budget = 4096;
      if (critical && policy_info(policy).find("critical") == nullptr) continue;
      if (critical) set_param(options.kv, "critical", true);
      MemoryPlan plan;
      const double seconds =
          least_seconds(kMostSeconds, 5, [&] { plan = plan_memory(info, options, 1'000'000); });
      EXPECT_LT(seconds, kMostSeconds) << policy << (critical ? ", critical" : "");
      const size_t row = info.n_embd * sizeof(float);
      if (policy_info(policy).replays) {  // and what asks for each of 489 pieces
        EXPECT_GT(plan.hidden_states, 2'000'000u * row);
        EXPECT_LE(plan.hidden_states, (2'000'000u + 489 * 96) * row);
      } else {
        EXPECT_EQ(plan.hidden_states, 1'000'000u * row);
      }
    }
  }
}

// The time does not grow with the prompt, nor does memory: this would need 4 GiB for positions.
TEST(MemoryPlanTest, TheLongestPromptTakesNoLonger) {
  const ModelInfo info = large_model();
  for (const std::string& policy : policy_names()) {
    if (policy == "ada-snapkv") continue;  // ranks all heads' rows together, and says so
    const SessionOptions options = options_of(policy);
    const double seconds = least_seconds(
        kMostSeconds, 5, [&] { plan_memory(info, options, int64_t{1} << 30, DType::f32); });
    EXPECT_LT(seconds, kMostSeconds) << policy;
  }
  expect_error(ErrorCode::kDoesNotFit, {"ada-snapkv", "rows of a layer's heads"},
               [&] { plan_memory(info, options_of("ada-snapkv"), int64_t{1} << 30); });
  EXPECT_GT(longest_prompt(info, options_of("ada-snapkv"), size_t{1} << 50), 1 << 20);
}

// Parts of policies that only some configurations run are in the plan because they allocate.
TEST(MemoryPlanTest, FollowsWhatAPolicyDoes) {
  const ModelInfo& info = load_model("tiny-f32")->info();
  const int64_t n = 5000;
  const MemoryPlan plain = plan_memory(info, options_of("snapkv"), n, DType::f32);
  SessionOptions critical = options_of("snapkv");
  set_param(critical.kv, "critical", true);
  // the norms of all rows, and half of the selection
  EXPECT_GE(plan_memory(info, critical, n, DType::f32).scores,
            plain.scores + (n - 32) * info.n_head_kv * sizeof(float));
  // h2o has sums of twice the precision beside the votes of each piece of queries
  EXPECT_GT(plan_memory(info, options_of("h2o"), n, DType::f32).scores,
            plain.scores + n * info.n_head_kv * sizeof(float));
  // the queries of the window, and what the votes' kernel keeps for each of them
  SessionOptions wide = options_of("snapkv");
  wide.kv.window_size = 1000;
  wide.kv.budget = 2000;
  const size_t window = 1000 * info.n_head * info.head_dim * sizeof(float);
  EXPECT_GT(plan_memory(info, wide, n, DType::f32).scores, window);
  EXPECT_GT(plan_memory(info, wide, 1'000'000, DType::f32).kernels,
            2 * plan_memory(info, options_of("snapkv"), 1'000'000, DType::f32).kernels);
  EXPECT_LT(plan_memory(info, options_of("full"), n, DType::f32).scores, 1u << 10);
}

/// Needs an array of its own beside the scores of its rows.
class GreedySelector final : public LayerSelector {
 public:
  explicit GreedySelector(Backend& backend) : backend_(backend) {}
  Selection select(const PolicyInput& input, int64_t budget) override {
    const Buffer array = backend_.allocate(12'345'664, "anything");
    Selection selection;
    selection.n_kept.assign(input.n_rows.size(), static_cast<int32_t>(budget));
    return selection;
  }

 private:
  Backend& backend_;
};

// What a plan counts as scores is whatever a policy allocates, under any name.
TEST(MemoryPlanTest, CountsMemoryThatItHasNoNameFor) {
  constexpr const char* kNamed[] = {"KV cache"};
  MeasuringBackend backend({}, kNamed);
  const std::vector<int32_t> n_rows = {700, 700};
  PolicyInput input;
  input.n_rows = n_rows;
  const Buffer named = backend.allocate(1000, "KV cache");
  GreedySelector(backend).select(input, 100);
  EXPECT_EQ(backend.peak_of_others(), 12'345'664u);
  EXPECT_EQ(backend.peak("KV cache"), 1000u);
}

TEST(MemoryPlanTest, IsTheSameFromTheHeaderAndFromTheModel) {
  for (const char* name : {"tiny-f32", "needle"}) {
    const ModelInfo header = describe_model(model_path(name)).info;
    const auto model = load_model(name, Compute::automatic);
    for (const std::string& policy : policy_names()) {
      SCOPED_TRACE(std::string(name) + " " + policy);
      const SessionOptions options = options_of(policy);
      const MemoryPlan a = plan_memory(header, options, 3000, model->compute_dtype());
      const MemoryPlan b = plan_memory(model->info(), options, 3000, model->compute_dtype());
      EXPECT_EQ(a.total(), b.total());
      EXPECT_EQ(a.kernels, b.kernels);
      EXPECT_EQ(a.packed_weights, b.packed_weights);
    }
  }
}

// A plan outlives the model that it was made for.
TEST(MemoryPlanTest, NeedsNoWeights) {
  const std::string path = testing::TempDir() + "/gone.gguf";
  write_random_model(path, {256, 3, 4, 2, 64, 512, 512}, {});
  ModelInfo info;
  {
    const auto model = Model::load({.path = path, .device = "cpu"});
    info = model->info();
  }
  std::remove(path.c_str());
  EXPECT_GT(plan_memory(info, options_of("snapkv"), 3000).total(), info.weight_bytes);
  EXPECT_GT(longest_prompt(info, options_of("snapkv"), size_t{1} << 28), 3000);
}

TEST(MemoryPlanTest, OfAModelThatCannotRunIsAnError) {
  ModelInfo info = load_model("tiny-f32")->info();
  info.decoder = nullptr;
  expect_error(ErrorCode::kUsage, {"describe_model()", "can run"},
               [&] { plan_memory(info, options_of("snapkv"), 100); });
}

// A device's memory holds neither what the host has nor what its kernels keep for themselves.
TEST(MemoryPlanTest, OfADeviceThatIsNotThere) {
  const ModelInfo& info = load_model("tiny-f32")->info();
  for (const std::string& policy : policy_names()) {
    const SessionOptions options = options_of(policy);
    const MemoryPlan cpu = plan_memory(info, options, 3000, DType::f32);
    const MemoryPlan gpu = plan_memory(info, options, 3000, DType::f32, "cuda");
    EXPECT_EQ(gpu.kernels, 0u);
    EXPECT_EQ(gpu.kv_peak(), cpu.kv_peak());
    EXPECT_EQ(gpu.hidden_states, cpu.hidden_states);
    EXPECT_LE(gpu.scores, cpu.scores);
    // all matrices of a layer, in the compute dtype
    EXPECT_GE(gpu.packed_weights, size_t(3 * info.n_embd * info.n_ff) * sizeof(float));
  }
}

}  // namespace memory_plan_tests
}  // namespace snapkv::test
