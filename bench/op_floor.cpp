// SPDX-License-Identifier: MIT
#include "bench/op_floor.h"

#include <omp.h>

#include <algorithm>
#include <map>

#include "bench/gemm_peak.h"
#include "bench/memory_bandwidth.h"

namespace snapkv {
namespace {

double flops_per_second(Backend& backend) {
  static std::map<DType, double> rates;
  double& rate = rates[backend.compute_dtype()];
  if (rate == 0) rate = measure_gemm(backend, {}, 5).flops_per_second;
  return rate;
}

double bytes_per_second() {
  static const double rate = measure_read_bandwidth(size_t{512} << 20, omp_get_max_threads(), 4);
  return rate;
}

}  // namespace

void report_work(benchmark::State& state, Backend& backend, const OpWork& work) {
  using benchmark::Counter;
  const auto rate = [&](const char* name, double per_call) {
    if (per_call > 0) {
      state.counters[name] = Counter(per_call, Counter::kIsIterationInvariantRate);
    }
  };
  const double floor = std::max(work.flop > 0 ? work.flop / flops_per_second(backend) : 0,
                                work.bytes > 0 ? work.bytes / bytes_per_second() : 0);
  rate("GFLOP/s", work.flop * 1e-9);
  rate("GB/s", work.bytes * 1e-9);
  state.counters["floor_us"] = floor * 1e6;
  rate("of_floor", floor);
}

}  // namespace snapkv
