// SPDX-License-Identifier: MIT
// Cases for ops that pass along sequences with a state: convolution, delta rule, scans.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

/// Sequences of these lengths, with random states before them.
struct Sequences {
  Sequences(const Place& at, const std::vector<int64_t>& lengths, int64_t n_state, bool in_pieces)
      : before(at.put(random_tensor({std::ssize(lengths), n_state}, 3))),
        between(at.zeros({std::ssize(lengths), n_state})),
        after(at.zeros({std::ssize(lengths), n_state})) {
    int64_t begin = 0;
    for (int64_t s = 0; s < std::ssize(lengths); ++s) {
      const int64_t end = begin + lengths[s];
      const void* from = before.view().at<void>(s);
      void* const to = after.view().at<void>(s);
      if (in_pieces && lengths[s] > 1) {
        void* const middle = between.view().at<void>(s);
        rows.push_back({begin, begin + 1, from, middle});
        rows.push_back({begin + 1, end, middle, to});
      } else {
        rows.push_back({begin, end, from, to});
      }
      begin = end;
    }
  }

  DeviceTensor before, between, after;  // [n_sequences, n_state]
  std::vector<SequenceRows> rows;
};

}  // namespace

// Sums of k products in f32. Each sequence gives its state, so a text may be cut anywhere.
OpCases short_conv_cases() {
  OpCases cases;
  const auto add = [&](std::vector<int64_t> lengths, int64_t d, int64_t k, DType to,
                       bool gates = true, bool has_bias = false) {
    const auto run = [=](const Place& at, bool in_pieces) -> Results {
      const int64_t n = sum(lengths);
      const DeviceTensor in = at.put(random_tensor({n, gates ? 3 : 1, d}, 1));
      const DeviceTensor weight = at.put(random_tensor({d, k}, 2));
      const DType type = to == DType::f32 ? DType::f32 : at.compute;
      const DeviceTensor out = at.zeros({n, d}, at.result(type));
      const Sequences sequences(at, lengths, (k - 1) * d, in_pieces);
      const DeviceTensor bias = at.put(random_tensor({d}, 4));
      ops::short_conv(at, {in, weight, sequences.rows, out, has_bias ? bias.view() : Tensor()});
      Results results = out.host();
      results.push_back(sequences.after.host());
      return results;
    };
    std::string name =
        fmt::format("{} of {} by {} to {}{}{}", fmt::join(lengths, ", "), d, k, snapkv::name(to),
                    gates ? "" : " without gates", has_bias ? " + bias" : "");
    OpCase& c = cases.emplace_back(
        std::move(name), [=](const Place& at) { return run(at, false); },
        rounded_if(to == DType::bf16, {1e-5, 1e-6}));
    c.equals([=](const Place& at) { return run(at, true); });
    if (d > 1000) c.only_fast();
  };
  for (const DType to : {DType::f32, DType::bf16}) {
    for (const int64_t k : {2, 3, 4, 7}) {
      add({1}, 64, k, to);
      add({1, 1, 1}, 40, k, to);  // a decode step
      add({9, 1, 2, 30}, 96, k, to);
      add({5}, 1, k, to);
      add({33, 40}, 2049, k, to);
      add({9, 1, 2, 30}, 96, k, to, /*gates=*/false);
      add({5, 6}, 1025, k, to, /*gates=*/false);
      add({5, 1}, 100, k, to, /*gates=*/false, /*has_bias=*/true);
    }
  }
  return cases;
}

// Sums in f32 of d_k products, over tokens whose keys have length 1, in several orders. Values that
// cancel keep the error of the state that they came from, so the bound is relative to the whole.
// by_channel: each channel of the keys has a decay. log_floor: of the decays. strength: of the
// decays; with 60, some states are kept as they are and many are forgotten at once, to below the
// smallest f32.
OpCases delta_rule_cases() {
  OpCases cases;
  const auto add = [&](std::vector<int64_t> lengths, int64_t n_head_k, int64_t n_head, int64_t d_k,
                       int64_t d_v, bool in_pieces = false, bool by_channel = false,
                       float strength = 1.0f, float log_floor = 0.0f) {
    const auto run = [=](const Place& at) -> Results {
      const int64_t n = sum(lengths), n_decay = by_channel ? n_head * d_k : n_head;
      TestTensor rates = random_tensor({n_head}, 5, DType::f32, strength);
      const float sign = log_floor < 0.0f ? 1.0f : -1.0f;
      for (int64_t h = 0; h < n_head; ++h) rates.as()[h] = sign * std::abs(rates.as()[h]);
      const DeviceTensor out = at.zeros({n, n_head, d_v});
      const DeviceTensor decay =
          at.put(random_tensor({n, n_decay}, 2, DType::f32, strength > 1.0f ? 9.0f : 3.0f));
      const DeviceTensor beta = at.put(random_tensor({n, n_head}, 4, DType::f32, 3.0f));
      const DeviceTensor rate = at.put(rates), bias = at.put(random_tensor({n_decay}, 6));
      DeltaRule r = {.qkv = {},
                     .decay = decay,
                     .beta = beta,
                     .rate = rate,
                     .decay_bias = bias,
                     .n_head_k = n_head_k,
                     .d_k = d_k,
                     .keys_take_turns = d_k % 2 == 0,
                     .log_floor = log_floor,
                     .sequences = {},
                     .out = out};
      const DeviceTensor qkv = at.put(random_tensor({n, r.n_qkv()}, 1));
      const Sequences sequences(at, lengths, r.n_state(), in_pieces);
      r.qkv = qkv;
      r.sequences = sequences.rows;
      ops::delta_rule(at, r);
      Results results = out.host();
      results.push_back(sequences.after.host());
      return results;
    };
    OpCase& c = cases.emplace_back(
        fmt::format("{} with {} of {} heads of {} x {}{}{}{}{}", fmt::join(lengths, ", "), n_head_k,
                    n_head, d_k, d_v, in_pieces ? " in pieces" : "",
                    by_channel ? " by channel" : "",
                    strength > 1.0f ? fmt::format(" decays {}", strength) : "",
                    log_floor < 0.0f ? " with a floor" : ""),
        run, Bound::of_norm(2e-6));
    if (sum(lengths) * n_head * d_k * d_v > 300'000) c.only_fast();
  };
  add({1}, 1, 1, 1, 1);
  for (const bool by_channel : {false, true}) {
    for (const bool in_pieces : {false, true}) {
      for (const int64_t n : {2, 3, 4, 5, 9}) add({n}, 2, 4, 16, 32, in_pieces, by_channel);
      add({1, 1, 1}, 2, 2, 24, 40, in_pieces, by_channel);  // a decode step
      add({7, 1, 2}, 1, 3, 7, 51, in_pieces, by_channel);
      add({70, 129}, 2, 4, 64, 48, in_pieces, by_channel);
    }
    add({130}, 2, 4, 128, 128, false, by_channel);
    add({1, 1}, 8, 16, 128, 128, false, by_channel);
    add({70, 3}, 2, 4, 32, 24, false, by_channel, 60.0f);
    add({1, 9}, 2, 4, 24, 40, true, by_channel, 1.0f, -5.0f);
  }
  return cases;
}

// As delta_rule: sums in f32, in several orders, that begin with a state's values.
OpCases selective_scan_cases() {
  OpCases cases;
  const auto add = [&](std::vector<int64_t> lengths, int64_t n_group, int64_t n_head,
                       int64_t d_state, int64_t d_head, bool in_pieces = false) {
    const auto run = [=](const Place& at) -> Results {
      const int64_t n = sum(lengths);
      TestTensor rates = random_tensor({n_head}, 5);
      for (int64_t h = 0; h < n_head; ++h) rates.as()[h] = -std::abs(rates.as()[h]);
      const DeviceTensor out = at.zeros({n, n_head, d_head});
      const DeviceTensor step = at.put(random_tensor({n, n_head}, 2, DType::f32, 3.0f));
      const DeviceTensor rate = at.put(rates), bias = at.put(random_tensor({n_head}, 6));
      const DeviceTensor skip = at.put(random_tensor({n_head}, 7));
      SelectiveScan s = {.xbc = {},
                         .step = step,
                         .rate = rate,
                         .step_bias = bias,
                         .skip = skip,
                         .n_group = n_group,
                         .d_state = d_state,
                         .sequences = {},
                         .out = out};
      const DeviceTensor xbc = at.put(random_tensor({n, s.n_xbc()}, 1));
      const Sequences sequences(at, lengths, s.n_state(), in_pieces);
      s.xbc = xbc;
      s.sequences = sequences.rows;
      ops::selective_scan(at, s);
      Results results = out.host();
      results.push_back(sequences.after.host());
      return results;
    };
    OpCase& c = cases.emplace_back(
        fmt::format("{} with {} groups of {} heads of {} x {}{}", fmt::join(lengths, ", "), n_group,
                    n_head, d_state, d_head, in_pieces ? " in pieces" : ""),
        run, Bound::of_norm(2e-6));
    if (sum(lengths) * n_head * d_state * d_head > 300'000) c.only_fast();
  };
  add({1}, 1, 1, 1, 1);
  for (const bool in_pieces : {false, true}) {
    for (const int64_t n : {2, 3, 4, 9}) add({n}, 2, 4, 16, 32, in_pieces);
    add({1, 1, 1}, 2, 6, 24, 40, in_pieces);  // a decode step
    add({7, 1, 2}, 1, 3, 7, 51, in_pieces);
    add({70, 129}, 2, 18, 16, 24, in_pieces);
  }
  add({66}, 1, 4, 128, 64);
  add({1, 1}, 2, 8, 128, 64);
  return cases;
}

// As selective_scan.
OpCases channel_scan_cases() {
  OpCases cases;
  const auto add = [&](std::vector<int64_t> lengths, int64_t d, int64_t d_state,
                       bool in_pieces = false, float strength = 1.0f) {
    const auto run = [=](const Place& at) -> Results {
      const int64_t n = sum(lengths);
      TestTensor rates = random_tensor({d_state, d}, 5);
      for (int64_t i = 0; i < d_state * d; ++i) {
        rates.as()[i] = -strength * std::abs(rates.as()[i]);
      }
      const DeviceTensor x = at.put(random_tensor({n, d}, 1)), out = at.zeros({n, d});
      const DeviceTensor step = at.put(random_tensor({n, d}, 2, DType::f32, 3.0f * strength));
      const DeviceTensor b = at.put(random_tensor({n, d_state}, 4));
      const DeviceTensor c = at.put(random_tensor({n, d_state}, 6));
      const DeviceTensor rate = at.put(rates), skip = at.put(random_tensor({d}, 7));
      const Sequences sequences(at, lengths, d_state * d, in_pieces);
      ops::channel_scan(at, {.x = x,
                             .step = step,
                             .b = b,
                             .c = c,
                             .rate = rate,
                             .skip = skip,
                             .sequences = sequences.rows,
                             .out = out});
      Results results = out.host();
      results.push_back(sequences.after.host());
      return results;
    };
    OpCase& c =
        cases.emplace_back(fmt::format("{} of {} channels with {}{}{}", fmt::join(lengths, ", "), d,
                                       d_state, in_pieces ? " in pieces" : "",
                                       strength > 1.0f ? fmt::format(" decays {}", strength) : ""),
                           run, Bound::of_norm(2e-6));
    if (sum(lengths) * d * d_state > 300'000) c.only_fast();
  };
  add({1}, 1, 1);
  for (const bool in_pieces : {false, true}) {
    for (const int64_t n : {2, 3, 4, 5, 9}) add({n}, 48, 16, in_pieces);
    add({1, 1, 1}, 40, 24, in_pieces);  // a decode step
    add({7, 1, 2}, 51, 7, in_pieces);
    add({70, 129}, 130, 16, in_pieces);
  }
  add({66}, 64, 128);
  add({70, 3}, 64, 16, false, 40.0f);
  return cases;
}

}  // namespace snapkv::test
