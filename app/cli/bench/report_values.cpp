// SPDX-License-Identifier: MIT
#include "cli/bench/report_values.h"

#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include "cli/common/units.h"

namespace snapkv::cli {

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double stddev(const std::vector<double>& v) {
  if (v.size() < 2) return 0;
  const double m = mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(v.size() - 1));
}

std::vector<double> tokens_per_second(const BenchResult& r) {
  std::vector<double> rates;
  for (const double s : r.seconds) rates.push_back(static_cast<double>(r.n_tokens()) / s);
  return rates;
}

std::string model_type(const ModelInfo& m) {
  return fmt::format("{} {} {}", m.architecture, format_count(m.n_params), m.file_type);
}

int64_t budget_of(const BenchTest& test) {
  return test.session.kv.name == "full" ? 0 : test.session.kv.budget;
}

double gflops(const BenchResult& r) { return r.work.operations() / mean(r.seconds) / 1e9; }

double percent_of_limit(const BenchResult& r, const MachineLimits& limits) {
  return 100 * least_time(r.work, limits).seconds() / mean(r.seconds);
}

}  // namespace snapkv::cli
