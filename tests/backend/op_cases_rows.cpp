// SPDX-License-Identifier: MIT
// Cases for ops that work row by row: embedding, norm, rotation, activation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
// A value of a block type is one rounding away from exact products on every backend.
OpCases embed_cases() {
  OpCases cases;
  for (const DType type : kWeightTypes) {
    for (const int64_t d : {256, 768, 32, 96, 4096, 1, 15, 100}) {
      if (d % block_size(type) != 0) continue;
      for (const std::vector<int32_t>& ids :
           {std::vector<int32_t>{}, {7}, {3, 0, 9, 9, 4}, std::vector<int32_t>(100, 8)}) {
        OpCase& c = cases.emplace_back(
            fmt::format("{}: {} rows of {}", name(type), ids.size(), d),
            [=](const Place& at) -> Results {
              const DeviceTensor weight = at.put(random_tensor({10, d}, 1, type));
              const DeviceTensor out = at.zeros({std::ssize(ids), d});
              ops::embed(at, weight, ids, out);
              return out.host();
            },
            Bound{});
        if (d * ids.size() > 5000) c.only_fast();
      }
    }
  }
  // Also subnormal numbers, infinities and NaN.
  const auto every_f16 = [](const Place& at) -> Results {
    TestTensor weight({16, 4096}, DType::f16);
    for (int64_t i = 0; i < weight.numel(); ++i) {
      weight.as<f16_t>()[i].bits = static_cast<uint16_t>(i);
    }
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 16; ++i) ids.push_back(i);
    const DeviceTensor on_device = at.put(weight), out = at.zeros({16, 4096});
    ops::embed(at, on_device, ids, out);
    return out.host();
  };
  cases.emplace_back("every f16", every_f16, Bound{});
  return cases;
}

// f32 sums of squares of d values against f64: d / lanes additions of at most 2^-24 each.
OpCases rms_norm_cases() {
  OpCases cases;
  for (const int64_t n : {0, 1, 2, 33}) {
    for (const int64_t d : {1, 7, 32, 100, 576, 2048, 4099}) {
      for (const DType to : {DType::f32, DType::bf16}) {
        OpCase& c = cases.emplace_back(
            fmt::format("{} x {} to {}", n, d, name(to)),
            [=](const Place& at) -> Results {
              const DeviceTensor x = at.put(random_tensor({n, d}, 1, DType::f32, 3.0f));
              const DeviceTensor weight = at.put(random_tensor({d}, 2)),
                                 out = at.zeros({n, d}, at.result(to));
              ops::rms_norm(at, x, weight, 1e-5f, out);
              return out.host();
            },
            Tolerance{.rel = to == DType::f32 ? 1e-6 : kBf16});
        if (n * d > 5000) c.only_fast();
      }
    }
  }
  const auto in_place = [](const Place& at, bool other) -> Results {
    const DeviceTensor x = at.put(random_tensor({9, 96}, 1)),
                       weight = at.put(random_tensor({96}, 2));
    const DeviceTensor zeros = at.zeros({9, 96});
    const DeviceTensor& out = other ? zeros : x;
    ops::rms_norm(at, x, weight, 1e-6f, out);
    return out.host();
  };
  cases
      .emplace_back(
          "in place", [=](const Place& at) { return in_place(at, false); }, Tolerance{.rel = 1e-6})
      .equals([=](const Place& at) { return in_place(at, true); });
  const auto zeros = [](const Place& at) -> Results {
    const DeviceTensor x = at.zeros({2, 64}), weight = at.put(random_tensor({64}, 1));
    const DeviceTensor out = at.put(random_tensor({2, 64}, 2));
    ops::rms_norm(at, x, weight, 1e-5f, out);
    return out.host();
  };
  cases.emplace_back("zeros stay zero", zeros, Bound{});
  for (const auto& shape : {std::array<int64_t, 3>{6, 3, 7}, {8, 2, 64}, {4, 4, 576}}) {
    const int64_t n = shape[0], m = shape[1], d = shape[2];
    for (const DType to : {DType::f32, DType::bf16}) {
      const auto run = [=](const Place& at) -> Results {
        const DeviceTensor x = at.put(random_tensor({n, d}, 1, DType::f32, 3.0f));
        const DeviceTensor weight = at.put(random_tensor({m, d}, 2));
        const DeviceTensor out = at.zeros({n, d}, at.result(to));
        ops::rms_norm(at, x, weight, 1e-5f, out);
        return out.host();
      };
      cases.emplace_back(fmt::format("{} x {} of {} groups to {}", n, d, m, name(to)), run,
                         Tolerance{.rel = to == DType::f32 ? 1e-6 : kBf16});
    }
  }
  return cases;
}

// Sums in f32 as for rms_norm. x has a mean of 20, which f32 knows to 1e-6; this error remains when
// the mean is subtracted, and weights and biases multiply it and then nearly cancel in places.
OpCases layer_norm_cases() {
  OpCases cases;
  const auto add = [&](int64_t n, int64_t m, int64_t d, bool has_bias, DType to,
                       bool own_biases = false) {
    const auto run = [=](const Place& at, bool in_place) -> Results {
      TestTensor values = random_tensor({n, d}, 1, DType::f32, 3.0f);
      for (int64_t i = 0; i < values.numel(); ++i) values.as()[i] += 20.0f;
      const DeviceTensor x = at.put(values);
      const DeviceTensor bias =
          at.put(own_biases ? random_tensor({m, d}, 3) : random_tensor({d}, 3));
      const DeviceTensor weight =
          at.put(m == 1 ? random_tensor({d}, 2) : random_tensor({m, d}, 2));  // [d], or of m heads
      const DeviceTensor zeros = at.zeros({n, d}, at.result(to));
      const DeviceTensor& out = in_place ? x : zeros;
      ops::layer_norm(at, x, weight, has_bias ? bias.view() : Tensor(), 1e-5f, out);
      return out.host();
    };
    OpCase& c = cases.emplace_back(
        fmt::format("{} x {} of {}{} to {}", n, d, m, has_bias ? " + bias" : "", name(to)),
        [=](const Place& at) { return run(at, false); },
        Tolerance{.abs = 4e-5, .rel = to == DType::f32 ? 1e-5 : kBf16});
    if (to == DType::f32) c.equals([=](const Place& at) { return run(at, true); });
    if (n * d > 5000) c.only_fast();
  };
  for (const DType to : {DType::f32, DType::bf16}) {
    for (const bool has_bias : {false, true}) {
      for (const int64_t d : {1, 7, 32, 64, 100, 576, 4099}) {
        for (const int64_t n : {0, 1, 6, 33}) add(n, 1, d, has_bias, to);
        add(6, 3, d, has_bias, to);
        add(12, 4, d, has_bias, to, /*own_biases=*/true);
      }
    }
  }
  return cases;
}

// Angles are in f64 everywhere. Each result is a sum of two f32 products: 2 ulp of the pair's
// magnitude (at most 6 here).
OpCases rope_cases() {
  OpCases cases;
  const auto add = [&](RopeLayout layout, int64_t n, int64_t n_head, int64_t head_dim,
                       int64_t n_pairs) {
    cases.emplace_back(
        fmt::format("{} x {} x {}, {} pairs, {}", n, n_head, head_dim, n_pairs,
                    layout == RopeLayout::norm ? "norm" : "neox"),
        [=](const Place& at) -> Results {
          std::vector<double> inv_freq;
          for (int64_t i = 0; i < n_pairs; ++i) {
            inv_freq.push_back(std::pow(10000.0, -static_cast<double>(i) / n_pairs));
          }
          std::vector<int32_t> pos;
          for (int32_t t = 0; t < n; ++t) pos.push_back(t == 4 ? 1000003 : 7 * t);
          const DeviceTensor x = at.put(random_tensor({n, n_head, head_dim}, 1));
          ops::rope(at, x, pos,
                    {.inv_freq = inv_freq, .layout = layout, .magnitude = n == 5 ? 1.25f : 1.0f});
          return x.host();
        },
        Tolerance{.abs = 1e-6});
  };
  for (const RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    for (const int64_t n : {0, 1, 5, 40}) {
      for (const int64_t n_pairs : {1, 3, 16, 32, 37}) add(layout, n, 3, 80, n_pairs);
    }
    add(layout, 40, 32, 64, 32);  // enough work for several threads
  }
  return cases;
}

// exp within 1 ulp, then a division and two products. Inputs reach the ranges where exp(-s) under-
// and overflows; results there are at most subnormal. gelu_tanh rounds s before exp, which
// multiplies that error by |s|: this is negligible except where x e^-|s| is large.
OpCases activate_cases() {
  OpCases cases;
  constexpr const char* kNames[] = {"silu",    "gelu_tanh",    "gelu", "clamped_swiglu",
                                    "sigmoid", "relu_squared", "relu", "softplus",
                                    "tanh",    "identity"};
  const auto add = [&](Activation f, int64_t n, int64_t d, bool from_bf16, bool to_bf16,
                       bool has_factor) {
    const auto run_into = [=](const Place& at, bool in_place) -> Results {
      TestTensor x = random_tensor({n, d}, 1, DType::f32, 20.0f);
      if (x.numel() > 14) {
        const float extremes[] = {-200.0f, 200.0f, -88.0f, 0.0f};
        for (int i = 0; i < 4; ++i) x.as()[3 * i] = extremes[i];
      }
      const TestTensor y = random_tensor({n, d}, 2, DType::f32, 4.0f);
      const DeviceTensor in = from_bf16 ? at.put_compute(x) : at.put(x);
      const DeviceTensor factor = from_bf16 ? at.put_compute(y) : at.put(y);
      const DeviceTensor out = at.zeros({n, d}, to_bf16 ? at.backend.compute_dtype() : DType::f32);
      const DeviceTensor& to = in_place ? in : out;
      ops::activate(at, f, in, has_factor ? factor.view() : Tensor(), to);
      return to.host();
    };
    const bool same_type = from_bf16 == to_bf16;
    OpCase& c =
        cases
            .emplace_back(
                fmt::format("{} {} x {}{}{}{}", kNames[static_cast<int>(f)], n, d,
                            from_bf16 ? " from bf16" : "", to_bf16 ? " to bf16" : "",
                            has_factor ? " times" : ""),
                [=](const Place& at) { return run_into(at, false); },
                rounded_if(to_bf16, {.abs = f == Activation::silu ? 1e-36 : 1e-6, .rel = 1e-6}))
            .equals(same_type ? [=](const Place& at) { return run_into(at, true); }
                              : OpCase::Run());
    if (n * d > 1000) c.only_fast();
  };
  for (const Activation f :
       {Activation::silu, Activation::gelu_tanh, Activation::gelu, Activation::clamped_swiglu,
        Activation::sigmoid, Activation::relu_squared, Activation::relu, Activation::softplus,
        Activation::tanh, Activation::identity}) {
    for (const int64_t n : {0, 1, 2, 9}) {
      for (const int64_t d : {1, 15, 32, 333, 1536, 8195}) {
        for (const int types : {0, 1, 2, 3}) add(f, n, d, types & 1, types & 2, true);
        if (f != Activation::clamped_swiglu) add(f, n, d, false, false, false);
      }
    }
  }
  return cases;
}

namespace {

/// Cases for an op that changes n rows of d f32 values in place, with one or two roundings per
/// value.
template <typename F>
OpCases in_place_cases(float size, const Tolerance& tolerance, F f) {
  OpCases cases;
  for (const int64_t n : {0, 1, 3, 40}) {
    for (const int64_t d : {1, 15, 333, 1031}) {
      OpCase& c = cases.emplace_back(
          fmt::format("{} x {}", n, d),
          [=](const Place& at) -> Results {
            const DeviceTensor x = at.put(random_tensor({n, d}, 1, DType::f32, size));
            f(at, x);
            return x.host();
          },
          tolerance);
      if (n * d > 1000) c.only_fast();
    }
  }
  return cases;
}

}  // namespace

OpCases add_cases() {
  return in_place_cases(1, {2e-7, 1.2e-7}, [](const Place& at, const Tensor& x) {
    const DeviceTensor y = at.put(random_tensor({x.shape[0], x.shape[1]}, 2));
    for (const float factor : {1.0f, 0.22f}) ops::add(at, x, y, factor);
  });
}

/// Every third row of x, and factors of both signs.
OpCases add_rows_cases() {
  return in_place_cases(1, {2e-7, 1.2e-7}, [](const Place& at, const Tensor& x) {
    std::vector<int32_t> rows;
    std::vector<float> factors;
    for (int32_t t = 0; t < x.shape[0]; t += 3) {
      rows.push_back(t);
      factors.push_back(0.5f - 0.1f * static_cast<float>(t));
    }
    const DeviceTensor y = at.put(random_tensor({std::ssize(rows), x.shape[1]}, 2));
    ops::add_rows(at, x, y, rows, factors);
  });
}

OpCases scale_cases() {
  return in_place_cases(1, {.rel = 1.2e-7}, [](const Place& at, const Tensor& x) {
    std::vector<float> factors;
    for (int64_t t = 0; t < x.shape[0]; ++t) factors.push_back(0.5f - static_cast<float>(t));
    ops::scale(at, x, factors);
    ops::scale(at, x, std::array{1.5f});
  });
}

OpCases scale_rows_cases() {
  return in_place_cases(1, {.rel = 1.2e-7}, [](const Place& at, const Tensor& x) {
    ops::scale_rows(at, x, at.put(random_tensor({x.shape[0], 1}, 2)));
  });
}

// An expm1 within 4 ulp, from which about as much is subtracted near 0.
OpCases xielu_cases() {
  OpCases cases;
  for (const bool to_bf16 : {false, true}) {
    for (const int64_t n : {0, 1, 3, 40}) {
      for (const int64_t d : {1, 15, 333, 1031}) {
        OpCase& c = cases.emplace_back(
            fmt::format("{} x {}{}", n, d, to_bf16 ? " to bf16" : ""),
            [=](const Place& at) -> Results {
              TestTensor x = random_tensor({n, d}, 1, DType::f32, 4.0f);
              if (x.numel() > 3) {
                x.as()[0] = 0.0f;
                x.as()[1] = -1e-7f;
                x.as()[2] = -200.0f;
              }
              const DType type = to_bf16 ? at.backend.compute_dtype() : DType::f32;
              const DeviceTensor in = at.put(x), out = at.zeros({n, d}, type);
              ops::xielu(at, in, 0.8f, 1.3f, 0.5f, -1e-6f, out);
              return out.host();
            },
            rounded_if(to_bf16, {.abs = 2e-6, .rel = 1e-6}));
        if (n * d > 1000) c.only_fast();
      }
    }
  }
  return cases;
}

// A tanh within 4 ulp, times the cap. Far outside the cap, the result is the cap.
OpCases softcap_cases() {
  OpCases cases;
  for (const float cap : {30.0f, 7.0f, 0.01f}) {
    for (OpCase& c : in_place_cases(
             20, {1e-6, 1e-6}, [=](const Place&at, const Tensor&x) { ops::softcap(at, x, cap); })) {
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

// The same bits everywhere.
OpCases clamp_cases() {
  OpCases cases;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [low, high] :
       {std::pair{-8.0f, 8.0f}, {-0.5f, 0.5f}, {-kInfinity, 0.25f}, {-1.0f, kInfinity}}) {
    const float least = low, most = high;
    for (OpCase& c : in_place_cases(
             20, {}, [=](const Place&at, const Tensor&x) { ops::clamp(at, x, least, most); })) {
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

namespace {

/// Calls f(n, widths of the parts, whether they have the compute type, whether the whole has).
template <typename F>
void for_parts(F f) {
  for (const int64_t n : {0, 1, 40}) {
    for (const std::vector<int64_t>& widths :
         {std::vector<int64_t>{5}, {1, 2}, {64, 64}, {3, 0, 500}, {128, 64, 128, 64}}) {
      for (const int types : {0, 1, 2, 3}) f(n, widths, types % 2 == 1, types / 2 == 1);
    }
  }
}
std::string name_of(int64_t n, const std::vector<int64_t>& widths, bool round_parts, bool round) {
  return fmt::format("{} rows{} of {}{}", n, round ? " in the compute type" : "",
                     fmt::join(widths, ", "), round_parts ? " in the compute type" : "");
}

}  // namespace

// The same values in another place, perhaps rounded.
OpCases split_cases() {
  OpCases cases;
  for_parts([&](int64_t n, const std::vector<int64_t>& widths, bool round_parts, bool round) {
    cases.emplace_back(
        name_of(n, widths, round_parts, round),
        [=](const Place& at) -> Results {
          const TestTensor values = random_tensor({n, sum(widths)}, 1);
          const DeviceTensor x = round ? at.put_compute(values) : at.put(values);
          const DType type = round_parts ? at.backend.compute_dtype() : DType::f32;
          std::vector<DeviceTensor> parts;
          for (const int64_t width : widths) parts.push_back(at.zeros({n, width}, type));
          ops::split(at, x, std::vector<Tensor>(parts.begin(), parts.end()));
          return parts;
        },
        rounded_if(round_parts && !round, {}));
  });
  return cases;
}

OpCases join_cases() {
  OpCases cases;
  for_parts([&](int64_t n, const std::vector<int64_t>& widths, bool round_parts, bool round) {
    cases.emplace_back(
        name_of(n, widths, round_parts, round),
        [=](const Place& at) -> Results {
          std::vector<DeviceTensor> parts;
          for (const int64_t width : widths) {
            const TestTensor values = random_tensor({n, width}, parts.size() + 1);
            parts.push_back(round_parts ? at.put_compute(values) : at.put(values));
          }
          const DType type = round ? at.backend.compute_dtype() : DType::f32;
          const DeviceTensor out = at.zeros({n, sum(widths)}, type);
          ops::join(at, std::vector<Tensor>(parts.begin(), parts.end()), out);
          return out.host();
        },
        rounded_if(round && !round_parts, {}));
  });
  return cases;
}

}  // namespace snapkv::test
