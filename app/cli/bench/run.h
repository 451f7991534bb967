// SPDX-License-Identifier: MIT
// Runs the tests of a plan on one model and measures where their time goes.
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

/// Where a prompt's time went: means over the repetitions, in seconds.
struct PrefillParts {
  double total = 0, pack = 0, linear = 0, attention = 0, score = 0, gather = 0;
};

/// The measurements of one test; bytes and rates are for all sequences together.
struct BenchResult {
  BenchTest test;
  std::string time;                     // start of the test, UTC: "2026-01-31T12:00:00Z"
  std::vector<double> seconds;          // per repetition
  std::optional<PrefillParts> parts;    // prefill tests only
  BenchWork work;                       // per repetition
  std::optional<MachineLimits> limits;  // measured just before the test; CPU only
  size_t kv_bytes_full = 0, kv_bytes_peak = 0, kv_bytes = 0, kv_bytes_used = 0;  // at the end
  size_t peak_rss = 0;     // since the test began
  size_t peak_device = 0;  // the same for a device's memory; 0: none
  int64_t n_tokens() const { return test.n_prompt > 0 ? test.n_prompt : test.n_gen * test.n_seq; }
};

class BenchRunner {
 public:
  BenchRunner(std::shared_ptr<const Model> model, const ModelCost& cost,
              const BenchSettings& settings, ProgressDisplay& progress);

  /// Throws Error{kCancelled} after Ctrl-C or another signal.
  BenchResult run(const BenchTest& test);

 private:
  void warm_up(const BenchTest& test);
  void measure_prefill(BenchResult& result);
  void measure_decode(BenchResult& result);
  /// Returns sessions that have read test.n_depth tokens: the previous test's, if it was alike.
  std::span<Session> sessions_for(const BenchTest& test);
  void read(Session& session, int64_t n_tokens, uint64_t stream);
  /// Chooses the machine's products that compute result.work.
  void choose_products(BenchResult& result) const;
  void finish(BenchResult& result, std::span<const Session> sessions) const;

  std::shared_ptr<const Model> model_;
  const ModelCost& cost_;
  const BenchSettings& settings_;
  ProgressDisplay& progress_;

  const bool measures_limits_;  // the CPU's limits are known; a model elsewhere has none

  std::optional<BenchTest> held_for_;  // the test that made sessions_
  std::vector<Session> sessions_;
};

}  // namespace snapkv::cli
