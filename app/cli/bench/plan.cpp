// SPDX-License-Identifier: MIT
#include "cli/bench/plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/parse_number.h"
#include "cli/common/without_repeats.h"

namespace snapkv::cli {
namespace {

constexpr int64_t kMaxItems = 10000;  // in one list

// Removes the number at the beginning of `text` and returns it.
std::optional<int64_t> take_number(std::string_view& text) {
  const size_t n_digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> value = parse_whole(text.substr(0, n_digits));
  text.remove_prefix(n_digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

struct CountRange {
  int64_t first = 0, last = 0;
  int64_t step = 1, factor = 1;  // one of them is 1 and has no effect
  int64_t next(int64_t value) const { return factor > 1 ? value * factor : value + step; }
};

std::optional<CountRange> parse_range(std::string_view text) {
  CountRange range;
  const std::optional<int64_t> first = take_number(text);
  if (!first) return std::nullopt;
  range.first = range.last = *first;
  if (text.empty()) return range;
  if (!take(text, '-')) return std::nullopt;
  const std::optional<int64_t> last = take_number(text);
  if (!last || *last < *first) return std::nullopt;
  range.last = *last;
  if (take(text, '+')) {
    const std::optional<int64_t> step = take_number(text);
    if (!step || *step < 1 || *step > kMostTokens) return std::nullopt;
    range.step = *step;
  } else if (take(text, '*')) {
    const std::optional<int64_t> factor = take_number(text);
    if (!factor || *factor < 2 || *factor > kMostTokens || *first < 1) return std::nullopt;
    range.factor = *factor;
  }
  return text.empty() ? std::optional(range) : std::nullopt;
}

DType parse_kv_type(const std::string& text) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    if (text == name(t)) return t;
  }
  fail(ErrorCode::kUsage, "--kv-type: '{}' is not a type; known: f32, f16, bf16, q8_0", text);
}

// Returns every policy in every type, with every budget where the policy has one.
std::vector<SessionOptions> session_variants(const BenchSettings& s, const ModelInfo* model) {
  const auto budgets = parse_counts("--kv-budget", s.budgets, kBudgetRange);
  const std::vector<std::string> known = policy_names();
  const std::vector<std::string> policies = without_repeats(s.policies);
  for (const std::string& policy : policies) {
    if (std::find(known.begin(), known.end(), policy) == known.end()) {
      fail(ErrorCode::kUsage, "--kv-policy: '{}' is not a policy", policy);
    }
  }
  std::vector<std::vector<SessionOptions>> by_budget;  // [budgets][policies]
  for (const int64_t budget : budgets) {
    CacheSettings cache = s.cache;
    cache.params["budget"] = budget;
    by_budget.push_back(session_options(cache, kMostTokens, policies, model));
  }
  std::vector<SessionOptions> variants;
  for (const std::string& type : without_repeats(s.kv_types)) {
    for (size_t p = 0; p < policies.size(); ++p) {
      const bool has_budgets =
          policy_info(policies[p]).has_budget && s.cache.session.kv_memory == 0;
      for (size_t b = 0; b < (has_budgets ? budgets.size() : 1); ++b) {
        variants.push_back(by_budget[b][p]);
        variants.back().kv_type = parse_kv_type(type);
      }
    }
  }
  return variants;
}

}  // namespace

std::string BenchTest::label() const {
  std::string text = n_prompt > 0 ? fmt::format("pp{}", n_prompt) : fmt::format("tg{}", n_gen);
  if (n_seq > 1) text += fmt::format(" x{}", n_seq);
  if (n_step > 1) text += fmt::format(" by {}", n_step);
  if (n_depth > 0) text += fmt::format(" @ d{}", n_depth);
  return text;
}

CLI::Validator count_list(ListRange range) {
  CLI::Validator made;
  made.name(fmt::format("whole {} {}", range.low, range.high)).description("");
  return made.operation([range](std::string& item) {
    const std::optional<CountRange> counts = parse_range(item);
    if (!counts) {
      return fmt::format(
          "'{}' is neither a whole number from {} to {} nor a range (first-last, first-last+step, "
          "first-last*factor)",
          item, range.low, range.high);
    }
    if (counts->first >= range.low && counts->last <= range.high) return std::string();
    return fmt::format("'{}' is not within whole numbers from {} to {}", item, range.low,
                       range.high);
  });
}

std::vector<int64_t> parse_counts(const std::string& flag, const std::vector<std::string>& items,
                                  ListRange allowed) {
  const CLI::Validator check = count_list(allowed);
  std::vector<int64_t> values;
  for (const std::string& item : items) {
    if (const std::string message = check(item); !message.empty()) {
      fail(ErrorCode::kUsage, "{}: {}", flag, message);
    }
    const CountRange range = *parse_range(item);
    for (int64_t value = range.first; value <= range.last; value = range.next(value)) {
      values.push_back(value);
      if (std::ssize(values) > kMaxItems) {
        fail(ErrorCode::kUsage, "{}: more than {} values", flag, kMaxItems);
      }
    }
  }
  return without_repeats(values);
}

std::vector<BenchTest> make_bench_plan(const BenchSettings& s, const ModelInfo* model) {
  const auto n_prompt = parse_counts("--n-prompt", s.n_prompt, kPromptRange);
  const auto n_gen = parse_counts("--n-gen", s.n_gen, kPromptRange);
  const auto n_depth = parse_counts("--n-depth", s.n_depth, kPromptRange);
  const auto n_seq = parse_counts("--batch", s.n_seq, kBatchRange);
  const auto n_step = parse_counts("--step", s.n_step, kStepRange);
  auto threads = parse_counts("--threads", s.threads, kThreadsRange);
  // resolved here, so that the result reports the actual number
  std::replace(threads.begin(), threads.end(), int64_t{0}, int64_t{cpu_threads()});
  const std::vector<SessionOptions> variants = session_variants(s, model);

  std::vector<BenchTest> plan;
  BenchTest test;
  const auto add_step = [&](int64_t batch, int64_t step) {
    test.n_seq = batch;
    test.n_step = step;
    for (const int64_t n : n_gen) {
      test.n_prompt = 0;
      test.n_gen = n;
      if (n > 0) plan.push_back(test);
    }
  };
  const auto add_decode = [&] {
    for (const int64_t step : n_step) {
      // memory for steps of several tokens is planned only with guesses
      test.session.draft = step > 1 ? Draft::lookup : Draft::off;
      if (step > 1) test.session.draft_max = step - 1;
      for (const int64_t batch : n_seq) add_step(batch, step);
    }
    test.session.draft = Draft::off;
  };
  const auto add_prefill = [&] {
    for (const int64_t n : n_prompt) {
      test.n_prompt = n;
      test.n_gen = 0;
      test.n_seq = test.n_step = 1;
      if (n > 0) plan.push_back(test);
    }
  };
  for (const int64_t n_threads : without_repeats(threads)) {
    test.n_threads = static_cast<int>(n_threads);
    for (const SessionOptions& variant : variants) {
      test.session = variant;
      for (const int64_t depth : n_depth) {
        test.n_depth = depth;
        add_prefill();
        add_decode();
      }
    }
  }
  if (plan.empty()) {
    fail(ErrorCode::kUsage, "nothing to measure: --n-prompt and --n-gen are both 0");
  }
  return plan;
}

}  // namespace snapkv::cli
