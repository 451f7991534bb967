// SPDX-License-Identifier: MIT
// Values that the reports of `snapkv bench` compute from its results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/run.h"

namespace snapkv::cli {

double mean(const std::vector<double>& v);
/// Sample standard deviation; 0 for a single value.
double stddev(const std::vector<double>& v);
/// Tokens per second of each repetition.
std::vector<double> tokens_per_second(const BenchResult& r);
double gflops(const BenchResult& r);
/// 100 * least time / mean time (bench/roofline.h).
double percent_of_limit(const BenchResult& r, const MachineLimits& limits);
/// Rows kept per head; 0: all.
int64_t budget_of(const BenchTest& test);
/// "llama 1.24 B q8_0"
std::string model_type(const ModelInfo& m);

}  // namespace snapkv::cli
