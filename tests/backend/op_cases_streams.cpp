// SPDX-License-Identifier: MIT
// Cases for the ops of models with several residual streams, and for gates that are kept only where
// they stand out.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

/// A call on x [n, d] or, with k > 0, [n, k, d], in place.
OpCases stream_cases(int64_t k, Tolerance tolerance,
                     const std::function<void(const Place&, const Tensor&)>& call) {
  OpCases cases;
  for (const int64_t n : {0, 1, 2, 33}) {
    for (const int64_t d : {1, 7, 32, 100, 576, 2051}) {
      OpCase& c = cases.emplace_back(
          fmt::format("{} x {}{}", n, k > 0 ? fmt::format("{} x ", k) : "", d),
          [=](const Place& at) -> Results {
            const std::vector<int64_t> shape =
                k > 0 ? std::vector<int64_t>{n, k, d} : std::vector<int64_t>{n, d};
            const DeviceTensor x = at.put(random_tensor(shape, 1, DType::f32, 3.0f));
            call(at, x);
            return x.host();
          },
          tolerance);
      if (n * d > 3000) c.only_fast();
    }
  }
  return cases;
}

OpCases with_streams(Tolerance tolerance,
                     const std::function<void(const Place&, const Tensor&)>& call) {
  OpCases cases;
  for (const int64_t k : {int64_t{1}, int64_t{4}, kMostStreams}) {
    for (OpCase& c : stream_cases(k, tolerance, call)) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

// Mean and deviation of up to 2051 values in f32, which are subtracted from values as large as
// they.
OpCases keep_peaks_cases() {
  OpCases cases;
  for (const float deviations : {1.6448536f, 0.0f, -0.5f}) {
    for (OpCase& c : stream_cases(0, {5e-6, 1e-6}, [=](const Place&at, const Tensor&x) {
           ops::keep_peaks(at, x, deviations);
         })) {
      c.name += fmt::format(", {} deviations", deviations);
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

OpCases take_stream_cases() {
  OpCases cases;
  for (const bool scaled : {false, true}) {
    for (const int64_t n : {0, 1, 33}) {
      for (const int64_t d : {1, 7, 576, 2051}) {
        cases.emplace_back(
            fmt::format("{} x {}{}", n, d, scaled ? " with factors" : ""),
            [=](const Place& at) -> Results {
              const DeviceTensor x = at.put(random_tensor({n, 4, d}, 1, DType::f32, 3.0f));
              const DeviceTensor factors = at.put(random_tensor({d}, 2));
              const DeviceTensor first = at.zeros({n, d}), last = at.zeros({n, d});
              const Tensor none, some = factors;
              ops::take_stream(at, x, 0, scaled ? some : none, first);
              ops::take_stream(at, x, 3, scaled ? some : none, last);
              Results results = first.host();
              results.push_back(last.host());
              return results;
            },
            Tolerance{.rel = 1.2e-7});
      }
    }
  }
  return cases;
}

// Up to nine terms of magnitude 10.
OpCases mix_streams_cases() {
  return with_streams({1e-5, 1e-6}, [](const Place& at, const Tensor& x) {
    const int64_t k = x.shape[1];
    ops::mix_streams(at, x, at.put(random_tensor({x.shape[0], k * k}, 2)));
  });
}

OpCases add_to_streams_cases() {
  return with_streams({2e-6, 3e-7}, [](const Place& at, const Tensor& x) {
    const DeviceTensor y = at.put(random_tensor({x.shape[0], x.shape[2]}, 2));
    const DeviceTensor factors = at.put(random_tensor({x.shape[0], x.shape[1]}, 3));
    ops::add_to_streams(at, x, y, factors, 0);
    ops::add_to_streams(at, x, y, {}, 1);
  });
}

// f32 sums of squares of d values against f64, as rms_norm.
OpCases match_norms_cases() {
  OpCases cases = stream_cases(0, {.rel = 1e-6}, [](const Place& at, const Tensor& x) {
    ops::match_norms(at, x, at.put(random_tensor({x.shape[0], x.shape[1]}, 2)));
  });
  const auto zeros = [](const Place& at) -> Results {
    const DeviceTensor x = at.zeros({2, 64});
    ops::match_norms(at, x, at.put(random_tensor({2, 64}, 2)));
    return x.host();
  };
  cases.emplace_back("zeros stay zero", zeros, Bound{});
  return cases;
}

}  // namespace snapkv::test
