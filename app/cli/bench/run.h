// SPDX-License-Identifier: MIT
// Runs the tests of a plan on one model and takes their times apart. Called by bench/command.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench/cost.h"
#include "cli/bench/plan.h"
#include "cli/bench/roofline.h"
#include "cli/common/progress.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Where a prompt's time went: means over the repetitions, seconds.
struct PrefillParts {
  double total = 0, pack = 0, linear = 0, attention = 0, score = 0, gather = 0;
};

/// One test, measured. Bytes and rates of all sequences together.
struct BenchResult {
  BenchTest test;
  std::string time;                     // when it began, UTC: "2026-01-31T12:00:00Z"
  std::vector<double> seconds;          // of each repetition
  std::optional<PrefillParts> parts;    // of prefill tests
  BenchWork work;                       // of one repetition
  std::optional<MachineLimits> limits;  // just before the test; of the CPU only
  size_t kv_bytes_full = 0, kv_bytes_peak = 0, kv_bytes = 0, kv_bytes_used = 0;  // at the end
  size_t peak_rss = 0;     // since the test began
  size_t peak_device = 0;  // the same of a device's memory; 0: none
  int64_t n_tokens() const { return test.n_prompt > 0 ? test.n_prompt : test.n_gen * test.n_seq; }
};

class BenchRunner {
 public:
  BenchRunner(std::shared_ptr<const Model> model, const ModelCost& cost,
              const BenchSettings& settings, ProgressDisplay& progress);

  /// Throws Error{kCancelled} after Ctrl-C and its like.
  BenchResult run(const BenchTest& test);

 private:
  void warm_up(const BenchTest& test);
  void measure_prefill(BenchResult& result);
  void measure_decode(BenchResult& result);
  /// Sessions that have read test.n_depth tokens: those of the test before, if they are alike.
  std::span<Session> sessions_for(const BenchTest& test);
  void read(Session& session, int64_t n_tokens, uint64_t stream);
  /// Which of the machine's products compute result.work.
  void choose_products(BenchResult& result) const;
  void finish(BenchResult& result, std::span<const Session> sessions) const;

  std::shared_ptr<const Model> model_;
  const ModelCost& cost_;
  const BenchSettings& settings_;
  ProgressDisplay& progress_;

  const bool measures_limits_;  // those of the CPU are known, where the model runs on it

  std::optional<BenchTest> held_for_;  // the test that made sessions_
  std::vector<Session> sessions_;
};

}  // namespace snapkv::cli
