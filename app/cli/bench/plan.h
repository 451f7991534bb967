// SPDX-License-Identifier: MIT
// The tests that `snapkv bench` runs: parses lists as llama-bench does, and combines all their
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

/// The command line of `snapkv bench`; lists are kept as typed, split at commas.
struct BenchSettings {
  ModelSettings model;  // n_threads is unused; see `threads`
  CacheSettings cache;  // policy name, budget and type are unused; see the lists below
  std::vector<std::string> n_prompt = {"512"};
  std::vector<std::string> n_gen = {"128"};
  std::vector<std::string> n_depth = {"0"};
  std::vector<std::string> n_seq = {"1"};
  std::vector<std::string> n_step = {"1"};
  std::vector<std::string> threads = {"0"};
  std::vector<std::string> policies = {"snapkv"};
  std::vector<std::string> budgets = {"1024"};
  std::vector<std::string> kv_types = {"f16"};
  int64_t repetitions = 5;
  uint64_t seed = 0;
  bool no_warmup = false;
  bool no_check = false;
  bool no_limits = false;
  std::string output = "md";
  std::string html;
};

/// One line of the result: a prompt of n_prompt tokens, or n_gen tokens for each of n_seq
/// sequences, n_step of them at a time as guesses are checked, after n_depth tokens that are not
/// timed.
struct BenchTest {
  int n_threads = 0;
  SessionOptions session;
  int64_t n_depth = 0;
  int64_t n_prompt = 0;  // 0: a decode test
  int64_t n_gen = 0;     // 0: a prefill test
  int64_t n_seq = 1;
  int64_t n_step = 1;
  /// "pp512", "tg128 x8 @ d4096", "tg128 by 4"
  std::string label() const;
};

/// The range that the numbers of a list may have.
struct ListRange {
  int64_t low, high;
};
inline constexpr ListRange kPromptRange = {0, kMostTokens / 4};
inline constexpr ListRange kBudgetRange = {1, kMostTokens};
inline constexpr ListRange kBatchRange = {1, 4096};
inline constexpr ListRange kStepRange = {1, kMostStepTokens};
inline constexpr ListRange kThreadsRange = {0, 4096};

/// Accepts an item of a list: "512", "0-3", "256-1024+256" or "1-16*2".
CLI::Validator count_list(ListRange range);
/// Returns the numbers of a list without repeats. Throws kUsage naming `flag` and the item for an
/// item of another form, for a value out of range, and for too many values.
std::vector<int64_t> parse_counts(const std::string& flag, const std::vector<std::string>& items,
                                  ListRange range);

/// Returns all combinations, with those that can share a session next to each other. The policy
/// "full" has no budget and gets one test. Prompts are read one at a time, whatever the batch.
/// `model` is as in session_options(). Throws kUsage naming the flag for values that can't work.
std::vector<BenchTest> make_bench_plan(const BenchSettings& settings,
                                       const ModelInfo* model = nullptr);

}  // namespace snapkv::cli
