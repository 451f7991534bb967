// SPDX-License-Identifier: MIT
// The tests that `snapkv bench` runs: lists as llama-bench takes them, and every combination of
// their values. Made by bench/command.cpp, run by bench/run.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/settings.h"

namespace snapkv::cli {

/// The command line of `snapkv bench`; lists are as typed, split at commas.
struct BenchSettings {
  ModelSettings model;  // n_threads is not used: `threads` is
  CacheSettings cache;  // policy name, budget and type are not used: the lists below are
  std::vector<std::string> n_prompt = {"512"};
  std::vector<std::string> n_gen = {"128"};
  std::vector<std::string> n_depth = {"0"};
  std::vector<std::string> n_seq = {"1"};
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

/// One line of the result: a prompt of n_prompt tokens, or n_gen tokens of n_seq sequences, after
/// n_depth tokens that are not timed.
struct BenchTest {
  int n_threads = 0;
  SessionOptions session;
  int64_t n_depth = 0;
  int64_t n_prompt = 0;  // 0: a test of decode
  int64_t n_gen = 0;     // 0: a test of prefill
  int64_t n_seq = 1;
  /// "pp512", "tg128 x8 @ d4096"
  std::string label() const;
};

/// What the numbers of a list may be.
struct ListRange {
  int64_t low, high;
};
inline constexpr ListRange kPromptRange = {0, kMostTokens / 4};
inline constexpr ListRange kBudgetRange = {1, kMostTokens};
inline constexpr ListRange kBatchRange = {1, 4096};
inline constexpr ListRange kThreadsRange = {0, 4096};

/// Accepts an item of a list: "512", "0-3", "256-1024+256" or "1-16*2".
CLI::Validator count_list(ListRange range);
/// The numbers of a list, each once. Throws kUsage naming `flag` and the item for anything else
/// than such items, for values out of range, and when they are too many.
std::vector<int64_t> parse_counts(const std::string& flag, const std::vector<std::string>& items,
                                  ListRange range);

/// All combinations, those that may share a session side by side. A budget says nothing to the
/// policy "full", which gets one test, and prompts are read one at a time, whatever the batch.
/// `model` as in session_options(). Throws kUsage naming the flag for values that can't work.
std::vector<BenchTest> make_bench_plan(const BenchSettings& settings,
                                       const ModelInfo* model = nullptr);

}  // namespace snapkv::cli
