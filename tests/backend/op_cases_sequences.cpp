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

// A difference and a multiplication in f32. Each sequence gives its state.
OpCases token_shift_cases() {
  OpCases cases;
  const auto add = [&](std::vector<int64_t> lengths, int64_t d, int64_t n_mix, bool from_bf16,
                       bool to_bf16, bool has_added) {
    const auto run = [=](const Place& at, bool in_pieces) -> Results {
      const int64_t n = sum(lengths);
      const TestTensor rows = random_tensor({n, d}, 1);
      const DeviceTensor x = from_bf16 ? at.put_compute(rows) : at.put(rows);
      const DeviceTensor mix = at.put(random_tensor({n_mix, d}, 2));
      std::vector<DeviceTensor> kept;
      std::vector<Tensor> outs, added;
      for (int64_t i = 0; i < n_mix; ++i) {
        kept.push_back(at.zeros({n, d}, to_bf16 ? at.backend.compute_dtype() : DType::f32));
        outs.push_back(kept.back());
      }
      for (int64_t i = 0; has_added && i < n_mix; ++i) {
        kept.push_back(at.put(random_tensor({n, d}, 10 + i)));
        added.push_back(kept.back());
      }
      const Sequences sequences(at, lengths, d, in_pieces);
      ops::token_shift(
          at, {.x = x, .mix = mix, .added = added, .sequences = sequences.rows, .outs = outs});
      Results results = sequences.after.host();
      for (int64_t i = 0; i < n_mix; ++i) results.push_back(kept[i].host());
      return results;
    };
    std::string name = fmt::format("{} of {} in {} mixes{}{}{}", fmt::join(lengths, ", "), d, n_mix,
                                   from_bf16 ? " from bf16" : "", to_bf16 ? " to bf16" : "",
                                   has_added ? " with more" : "");
    OpCase& c = cases.emplace_back(
        std::move(name), [=](const Place& at) { return run(at, false); },
        rounded_if(to_bf16, {1e-6, 1e-6}));
    if (!from_bf16) c.equals([=](const Place& at) { return run(at, true); });
    if (d > 1000) c.only_fast();
  };
  for (const int types : {0, 1, 2, 3}) {
    const bool from = types & 1, to = types & 2;
    add({1}, 64, 6, from, to, false);
    add({1, 1, 1}, 40, 5, from, to, true);  // a decode step
    add({9, 1, 2, 30}, 96, 1, from, to, false);
    add({5}, 1, 2, from, to, true);
    add({33, 40}, 2049, 6, from, to, false);
    add({5, 6}, 1025, 5, from, to, true);
  }
  return cases;
}

// A sigmoid and two roundings.
OpCases blend_cases() {
  OpCases cases;
  for (const int64_t n : {0, 1, 3, 40}) {
    for (const int64_t d : {1, 15, 333, 1031}) {
      const auto run = [=](const Place& at) -> Results {
        const DeviceTensor x = at.put(random_tensor({n, d}, 1)),
                           y = at.put(random_tensor({n, d}, 2));
        const DeviceTensor gates = at.put(random_tensor({n, d}, 3, DType::f32, 20.0f));
        ops::blend(at, x, y, gates);
        return x.host();
      };
      OpCase& c = cases.emplace_back(fmt::format("{} x {}", n, d), run, Tolerance{1e-6, 1e-6});
      if (n * d > 1000) c.only_fast();
    }
  }
  return cases;
}

// As delta_rule: sums in f32 of d products, in several orders, that begin with a state's values.
// The decays exp(-exp(x)) multiply the error of exp(x) by that, up to where they are nearly 0.
OpCases wkv_cases() {
  OpCases cases;
  const auto add = [&](WkvRule rule, std::vector<int64_t> lengths, int64_t n_head_kv,
                       int64_t n_head, int64_t d, bool in_pieces = false, float strength = 1.0f) {
    const auto run = [=](const Place& at) -> Results {
      const int64_t n = sum(lengths), width = n_head * d;
      const bool is_rwkv7 = rule == WkvRule::rwkv7, has_bonus = rule != WkvRule::gated;
      const DeviceTensor r = at.put(random_tensor({n, width}, 1)), out = at.zeros({n, n_head, d});
      const DeviceTensor decay = at.put(random_tensor({n, width}, 2, DType::f32, 3.0f * strength));
      const DeviceTensor k = at.put(random_tensor({n, n_head_kv * d}, 4));
      const DeviceTensor v = at.put(random_tensor({n, n_head_kv * d}, 5));
      const DeviceTensor rate = at.put(random_tensor({n, width}, 6, DType::f32, 3.0f));
      const DeviceTensor bonus = at.put(random_tensor({width}, 7));
      const DeviceTensor removal = at.put(random_tensor({width}, 8));
      const DeviceTensor replacement = at.put(random_tensor({width}, 9));
      const DeviceTensor shares = at.zeros({n, n_head});
      const Sequences sequences(at, lengths, width * d, in_pieces);
      const auto if_rwkv7 = [&](const DeviceTensor& t) { return is_rwkv7 ? t.view() : Tensor(); };
      ops::wkv(at, {.rule = rule,
                    .r = r,
                    .decay = decay,
                    .k = k,
                    .v = v,
                    .rate = if_rwkv7(rate),
                    .bonus = has_bonus ? bonus.view() : Tensor(),
                    .removal = if_rwkv7(removal),
                    .replacement = if_rwkv7(replacement),
                    .sequences = sequences.rows,
                    .out = out,
                    .shares = if_rwkv7(shares)});
      Results results = out.host();
      results.push_back(sequences.after.host());
      results.push_back(shares.host());
      return results;
    };
    constexpr const char* kNames[] = {"rwkv6", "gated", "rwkv7"};
    OpCase& c = cases.emplace_back(
        fmt::format("{} {} with {} of {} heads of {}{}{}", kNames[static_cast<int>(rule)],
                    fmt::join(lengths, ", "), n_head_kv, n_head, d, in_pieces ? " in pieces" : "",
                    strength > 1.0f ? fmt::format(" decays {}", strength) : ""),
        run, Bound::of_norm(5e-6));
    if (sum(lengths) * n_head * d * d > 300'000) c.only_fast();
  };
  for (const WkvRule rule : {WkvRule::rwkv6, WkvRule::gated, WkvRule::rwkv7}) {
    add(rule, {1}, 1, 1, 1);
    for (const bool in_pieces : {false, true}) {
      for (const int64_t n : {2, 7, 8, 9, 17}) add(rule, {n}, 2, 4, 16, in_pieces);
      add(rule, {1, 1, 1}, 3, 3, 40, in_pieces);  // a decode step
      add(rule, {7, 1, 2}, 1, 3, 51, in_pieces);
      add(rule, {70, 129}, 2, 4, 64, in_pieces);
    }
    add(rule, {130}, 2, 2, 128);
    add(rule, {1, 1}, 8, 16, 64);
    add(rule, {70, 3}, 2, 4, 32, false, 20.0f);
  }
  return cases;
}

}  // namespace snapkv::test
