// SPDX-License-Identifier: MIT
#include "bench/op_floor.h"

#include <omp.h>

#include <algorithm>
#include <map>

#include "base/timer.h"
#include "bench/gemm_peak.h"
#include "bench/machine_limits.h"
#include "bench/memory_bandwidth.h"

namespace snapkv {
namespace {

/// A rate that is measured again if it is more than a few seconds old, since the rates of a shared
/// machine change by the minute.
class FreshRate {
 public:
  template <typename F>
  double get(F measure) {
    constexpr double kSeconds = 5;
    if (rate_ == 0 || age_.seconds() > kSeconds) {
      rate_ = measure();
      age_ = Timer();
    }
    return rate_;
  }

 private:
  double rate_ = 0;
  Timer age_;
};

double flops_per_second(Backend& backend) {
  static std::map<DType, FreshRate> rates;
  return rates[backend.compute_dtype()].get(
      [&] { return measure_gemm(backend, {}, 3).flops_per_second; });
}

double bytes_per_second() {
  static FreshRate rate;
  return rate.get(
      [] { return measure_read_bandwidth(bytes_beyond_caches(), omp_get_max_threads(), 3); });
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
