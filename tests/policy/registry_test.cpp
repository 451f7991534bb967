// SPDX-License-Identifier: MIT
// Every policy of the registry against the same invariants, the messages for bad configurations,
// the arithmetic of budgets, and what the base class promises to future policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "policy/score_policy.h"
#include "snapkv/policy.h"
#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

// ---------------------------------------------------------------- every registry entry

class EveryPolicy : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, EveryPolicy, testing::ValuesIn(one_layer_policies()), [](const auto& p) {
  std::string id = p.param;
  std::replace_if(
      id.begin(), id.end(), [](char c) { return !std::isalnum(c); }, '_');
  return id;
});

TEST_P(EveryPolicy, KeepsTheBudgetAndTheWindow) {
  for (Target target : {Target::ref, Target::cpu}) {
    const auto backend = make_backend(target);
    for (int64_t n_tokens : {40, 64, 65, 300, 1111}) {
      const PolicyConfig config{.name = GetParam(), .budget = 64, .window_size = 16};
      const auto policy = Policy::make(config);
      const Layer l = random_layer(n_tokens, 16, 4, 2, 32, DType::f16, 31);
      const Kept kept = run_policy(*backend, *policy, l, DType::f16);
      ASSERT_EQ(kept.size(), 2u);
      const int64_t budget = policy->budget_for(n_tokens);
      EXPECT_LE(budget, n_tokens);
      size_t total = 0;
      for (const std::vector<int32_t>& head : kept) {
        total += head.size();
        ASSERT_FALSE(head.empty());
        EXPECT_GE(head.front(), 0);
        EXPECT_TRUE(std::adjacent_find(head.begin(), head.end(), std::greater_equal<>()) ==
                    head.end())
            << "ascending and unique";
        ASSERT_GE(head.size(), 16u);
        EXPECT_EQ(head.back(), n_tokens - 1);
        EXPECT_EQ(head[head.size() - 16], n_tokens - 16) << "the window is kept";
        if (!policy->info().shares_budget) {
          EXPECT_LE(head.size(), static_cast<size_t>(budget));
        }
      }
      EXPECT_LE(total, static_cast<size_t>(2 * budget));
      if (GetParam() == "full" || n_tokens <= 64) {
        EXPECT_EQ(total, static_cast<size_t>(2 * n_tokens)) << "nothing is dropped";
      } else {
        EXPECT_EQ(total, 2u * 64u) << "the whole budget is used";
      }
    }
  }
}

TEST_P(EveryPolicy, DoesNotDependOnThreads) {
  const PolicyConfig config{.name = GetParam(), .budget = 200, .window_size = 16};
  const Layer l = random_layer(2000, 16, 8, 2, 64, DType::bf16, 33);
  EXPECT_EQ(run_policy(*make_cpu(1), config, l, DType::bf16),
            run_policy(*make_cpu(2), config, l, DType::bf16));
}

TEST_P(EveryPolicy, HeadsOfDifferentLengthsAlikeOnBothBackends) {
  const std::vector<int32_t> n_rows = {300, 40, 100};
  const PolicyConfig config{.name = GetParam(), .budget = 64, .window_size = 16};
  for (int64_t n_group : {1, 3}) {
    const Layer l = random_layer(300, 16, 3 * n_group, 3, 32, DType::f16, 35);
    const Kept kept = run_policy(*make_ref(), *Policy::make(config), l, DType::f16, 0, 1, n_rows);
    EXPECT_EQ(run_policy(*make_cpu(2), *Policy::make(config), l, DType::f16, 0, 1, n_rows), kept);
    EXPECT_EQ(kept[1].size(), 40u) << "a head within the budget keeps all";
    size_t total = 0;
    for (size_t h = 0; h < 3; ++h) {
      total += kept[h].size();
      EXPECT_EQ(kept[h][kept[h].size() - 16], n_rows[h] - 16);
    }
    EXPECT_LE(total, GetParam() == "full" ? 440u : 3u * 64u);
    EXPECT_GE(total, 40u + 2u * 64u);
  }
}

TEST(Registry, KnowsItsNames) {
  const std::vector<std::string> names = policy_names();
  for (const char* expected :
       {"full", "snapkv", "pyramidkv", "ada-snapkv", "chunkkv", "tova", "h2o", "expected-attention",
        "streaming-llm", "knorm", "keydiff", "kvzip", "random"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), expected), 1) << expected;
  }
  for (const std::string& policy : names) {
    EXPECT_EQ(Policy::make({.name = policy})->config().name, policy);
  }
}

// ---------------------------------------------------------------- configuration

void expect_usage(const PolicyConfig& config, std::initializer_list<std::string_view> words) {
  expect_error(ErrorCode::kUsage, words, [&] { validate(config); });
  expect_error(ErrorCode::kUsage, words, [&] { Policy::make(config); });
}

TEST(Validate, NamesFieldAndValues) {
  validate({});
  expect_usage({.name = "snapvk"}, {"snapvk", "full", "snapkv"});
  expect_usage({.name = ""}, {"full, snapkv"});
  expect_usage({.budget = 32}, {"budget is 32", "window_size", "32"});  // B = W
  expect_usage({.budget = 0}, {"budget is 0"});
  expect_usage({.budget = -5}, {"budget is -5"});
  validate({.budget = 33});
  for (double ratio : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    expect_usage({.ratio = ratio}, {"ratio is"});
  }
  validate({.ratio = 1.0});
  validate({.budget = 1, .ratio = 0.1});  // a ratio overrides the budget
  expect_usage({.window_size = 0}, {"window_size is 0"});
  expect_usage({.window_size = -2}, {"window_size is -2"});
  expect_usage({.params = {{"kernel_size", 4}}}, {"kernel_size is 4", "odd"});
  expect_usage({.params = {{"kernel_size", 0}}}, {"kernel_size is 0"});
  expect_usage({.params = {{"kernel_size", -3}}}, {"kernel_size is -3"});
  validate({.params = {{"kernel_size", 1}}});
  // "full" ignores these members.
  validate({.name = "full", .budget = 0, .ratio = 7, .window_size = 0, .sinks = -9});
}

TEST(Validate, RefusesParametersThatThePolicyDoesNotHave) {
  expect_usage({.name = "knorm", .params = {{"kernel_size", 7}}},
               {"\"knorm\" has no parameter \"kernel_size\"", "budget, ratio, window_size, sinks"});
  expect_usage({.name = "full", .params = {{"kernel_size", 7}}}, {"full", "it has: none"});
  expect_usage({.params = {{"kernel_sise", 7}}}, {"kernel_sise", "kernel_size, pooling"});
  expect_usage({.params = {{"budget", 64}}}, {"budget", "member"});
}

TEST(Validate, RefusesValuesOfAnotherType) {
  expect_usage({.params = {{"kernel_size", 7.0}}}, {"kernel_size is 7", "a whole number"});
  expect_usage({.params = {{"kernel_size", "7"}}}, {"kernel_size", "a whole number"});
  expect_usage({.params = {{"kernel_size", int64_t{1} << 40}}}, {"kernel_size", "65535"});
  expect_usage({.params = {{"pooling", "median"}}}, {"pooling is median", "max or avg"});
  expect_usage({.params = {{"critical", 1}}}, {"critical is 1", "true or false"});
  validate({.name = "ada-snapkv", .params = {{"head_floor", 1}}});  // 1 is a number too
}

TEST(Validate, MentionsOptionsThatFrontEndsMayCallOtherwise) {
  const auto expect_named = [](const PolicyConfig& config, std::string_view text) {
    try {
      validate(config);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& e) {
      const std::string message =
          e.message([](std::string_view option) { return "<" + std::string(option) + ">"; });
      EXPECT_NE(message.find(text), std::string::npos) << message;
    }
  };
  expect_named({.window_size = 0}, "<kv_window_size> is 0");
  expect_named({.params = {{"kernel_size", 4}}}, "<kv_kernel_size> is 4");
  expect_named({.budget = 9, .window_size = 9}, "<kv_budget> is 9");
  expect_named({.budget = 9, .window_size = 9}, "<kv_window_size> + <kv_sinks>");
}

TEST(Tables, ABudgetMayBeLeftToTheQuestion) {
  PolicyConfig config{.name = "snapkv-max", .budget = 50};
  EXPECT_FALSE(keeps_by_attention(config));
  set_param_text(config, "budget", "auto");
  EXPECT_TRUE(keeps_by_attention(config));
  EXPECT_EQ(config.budget, PolicyConfig{}.budget);
  EXPECT_EQ(policy_value(config, "least_attention"), PolicyValue(0.05));
  set_param(config, "least_attention", 0.25);
  set_param_text(config, "budget", "100");  // the most then
  EXPECT_EQ(policy_value(config, "least_attention"), PolicyValue(0.25));
  EXPECT_EQ(config.budget, 100);
  for (const PolicyInfo& info : all_policies()) {
    if (info.name == "snapkv-max" || !info.has_budget) continue;
    PolicyConfig other{.name = info.name};
    EXPECT_FALSE(keeps_by_attention(other)) << info.name;
    expect_error(ErrorCode::kUsage, {"budget auto", "snapkv-max", info.name},
                 [&] { set_param_text(other, "budget", "auto"); });
  }
  expect_error(ErrorCode::kUsage, {"window_size", "auto"},
               [&] { set_param_text(config, "window_size", "auto"); });
}

// Every row of every table: it is read from text, set, takes effect, and has its default otherwise.
TEST(Tables, ValuesGoThroughTextAndConfiguration) {
  for (const PolicyInfo& info : all_policies()) {
    for (const auto& [param, value] : policy_settings({.name = info.name})) {
      EXPECT_EQ(value, param->default_value) << info.name << " " << param->name;
      EXPECT_EQ(parse_value(*param, value_text(value)), value) << info.name << " " << param->name;
      PolicyConfig config{.name = info.name};
      set_param_text(config, param->name, value_text(value));
      EXPECT_EQ(policy_value(config, param->name), value);
      EXPECT_NO_THROW(validate(config));
      expect_error(ErrorCode::kUsage, {param->name, range_text(*param)},
                   [&, p = param] { parse_value(*p, "certainly not"); });
    }
    EXPECT_EQ(info.find("no such parameter"), nullptr);
  }
  const PolicyConfig config{.sinks = 3, .params = {{"kernel_size", 15}, {"pooling", "avg"}}};
  EXPECT_EQ(policy_value(config, "sinks"), PolicyValue(int64_t{3}));
  EXPECT_EQ(policy_value({.name = "streaming-llm"}, "sinks"), PolicyValue(int64_t{4}));
  EXPECT_EQ(describe_params(config), "window 32, sinks 3, kernel 15, avg pooling");
  EXPECT_EQ(describe_params({}), "window 32, kernel 7");
  EXPECT_EQ(describe_params({.name = "tova", .params = {{"critical", true}}}),
            "window 32, critical");
}

TEST(Budget, CountsTheWindowAndIsNeverMoreThanThePrompt) {
  const auto fixed = Policy::make({.budget = 1024});
  EXPECT_EQ(fixed->budget_for(100), 100);
  EXPECT_EQ(fixed->budget_for(1024), 1024);
  EXPECT_EQ(fixed->budget_for(1000000), 1024);
  EXPECT_EQ(fixed->window_size(), 32);
}

TEST(Budget, RatioRoundsDownButKeepsMoreThanTheWindow) {
  const auto policy = Policy::make({.ratio = 0.29, .window_size = 8});
  EXPECT_EQ(policy->budget_for(100), 29);  // 0.29 * 100 is 28.999999999999996 in binary
  EXPECT_EQ(policy->budget_for(1001), 290);
  EXPECT_EQ(policy->budget_for(20), 9);  // W + 1, not 5
  EXPECT_EQ(policy->budget_for(8), 8);
  EXPECT_EQ(policy->budget_for(0), 0);
  EXPECT_EQ(Policy::make({.ratio = 1.0})->budget_for(12345), 12345);
  EXPECT_EQ(Policy::make({.name = "full"})->budget_for(12345), 12345);
  EXPECT_EQ(Policy::make({.name = "full"})->window_size(), 0);
}

// ---------------------------------------------------------------- the base of other policies

// The smallest policy: a score of one expression, with budgets that differ by layer and head.
class OldestFirstSelector final : public Selector<RowParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    for (int64_t h = 0; h < std::ssize(input.n_prefix); ++h) {
      std::vector<float> row;
      for (int32_t j = 0; j < input.n_prefix[h]; ++j) row.push_back(static_cast<float>(-j));
      backend().upload(scores.at<void>(h), row.data(), row.size() * sizeof(float));
    }
  }
  std::vector<int32_t> prefix_budgets(const ScoreInput& input, const Tensor&, int64_t) override {
    return {5 - input.il, 2};
  }
};

const PolicyDefinition kOldestFirst =
    define_policy<ScorePolicy<OldestFirstSelector>>({.name = "oldest-first"}, row_fields());

std::unique_ptr<Policy> oldest_first() {
  return kOldestFirst.make(kOldestFirst.info,
                           {.name = "oldest-first", .budget = 8, .window_size = 2});
}

TEST(ScorePolicy, BudgetsMayDifferByLayerAndHead) {
  for (Target target : {Target::ref, Target::cpu}) {
    const auto backend = make_backend(target);
    const auto policy = oldest_first();
    const Layer l = random_layer(20, 2, 2, 2, 8, DType::f32, 41);
    EXPECT_EQ(run_policy(*backend, *policy, l, DType::f32, 0, 2),
              (Kept{{0, 1, 2, 3, 4, 18, 19}, {0, 1, 18, 19}}));
    EXPECT_EQ(run_policy(*backend, *policy, l, DType::f32, 1, 2),
              (Kept{{0, 1, 2, 3, 18, 19}, {0, 1, 18, 19}}));
  }
}

TEST(ScorePolicy, AHeadWithinTheBudgetKeepsAllWhateverThePolicySays) {
  for (Target target : {Target::ref, Target::cpu}) {
    const auto backend = make_backend(target);
    const Layer l = random_layer(20, 2, 2, 2, 8, DType::f32, 43);
    const TestTensor q({2, 2, 8}, l.q), k({2, 20, 8}, l.k);
    const std::vector<int32_t> n_rows = {20, 8};
    PolicyInput input;
    input.q_window = q;
    input.k = input.v = k;
    input.n_rows = n_rows;
    const auto policy = oldest_first();
    EXPECT_EQ(kept_rows(*backend, policy->make_selector(*backend)->select(input, 8), n_rows),
              (Kept{{0, 1, 2, 3, 4, 18, 19}, {0, 1, 2, 3, 4, 5, 6, 7}}));
  }
}

}  // namespace
}  // namespace snapkv::test
