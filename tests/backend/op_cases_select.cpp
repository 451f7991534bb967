// SPDX-License-Identifier: MIT
// Cases for SnapKV's votes, pooling and top_k.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/backend/attention_cases.h"

namespace snapkv::test {
namespace {

struct Votes {
  int64_t window, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_rows;
  DType kv = DType::f16;
  GroupReduce group = GroupReduce::mean;
  float q_scale = 1.0f;
  bool whole = false;
  Variant variant = {};
  VoteReduce reduce = VoteReduce::sum;

  std::string name() const {
    return fmt::format("{} of {} x {} x {} x {} {}{}{}{}{}", window, n_rows[0], n_head_kv, n_group,
                       head_dim, snapkv::name(kv), group == GroupReduce::max ? " max" : "",
                       reduce == VoteReduce::max ? " of largest" : "", whole ? " whole" : "",
                       variant.name());
  }
  int32_t longest() const { return *std::max_element(n_rows.begin(), n_rows.end()); }
  TestTensor q() const {
    return random_tensor({window, n_head_kv * n_group, head_dim}, 1, DType::f32, q_scale);
  }
  TestTensor k() const { return random_tensor({n_head_kv, longest() + 5, head_dim}, 2, kv); }
};

WindowVotes arguments(const Votes& s, const Tensor& q, const Tensor& k, const Tensor& votes) {
  return {q,       k,  s.n_rows, 1.0f / std::sqrt(static_cast<float>(s.head_dim)), s.group, votes,
          s.whole, {}, s.reduce};
}

/// Votes in which the columns that no op may touch keep their -1.
TestTensor empty_votes(const Votes& s) {
  TestTensor votes({s.n_head_kv, s.whole ? s.longest() + 3 : s.longest() - s.window});
  std::fill(votes.as(), votes.as() + votes.numel(), -1.0f);
  return votes;
}

Results run(const Place& at, const Votes& s) {
  const DeviceTensor q = at.put(s.q()), k = at.put(s.k()), votes = at.put(empty_votes(s));
  const DeviceTensor sinks = at.put(sinks_of(s.n_head_kv * s.n_group));
  WindowVotes w = arguments(s, q, k, votes);
  w.variant = s.variant.on(sinks);
  ops::window_votes(at, w);
  return votes.host();
}

/// Runs with keys of all heads side by side in each row, and a gap between rows.
Results run_strided(const Place& at, const Votes& s, int64_t gap) {
  const TestTensor dense = s.k();
  const int64_t capacity = s.longest() + 5;
  TestTensor wide({capacity, s.n_head_kv, s.head_dim + gap}, s.kv);
  for (int64_t h = 0; h < s.n_head_kv; ++h) {
    for (int64_t j = 0; j < capacity; ++j) {
      std::memcpy(wide.view().at<char>(j, h), dense.view().at<char>(h, j),
                  row_bytes(s.kv, s.head_dim));
    }
  }
  const DeviceTensor q = at.put(s.q()), rows = at.put(wide), votes = at.put(empty_votes(s));
  Tensor k = rows;
  k.shape = {s.n_head_kv, capacity, s.head_dim};
  std::swap(k.stride[0], k.stride[1]);
  ops::window_votes(at, arguments(s, q, k, votes));
  return votes.host();
}

// Probabilities are positive, and sums of f32 products differ from ref's f64 sums only by their
// order; on a GPU, queries in parts of 16 bits are equally exact.
OpCase& add(OpCases& cases, const Votes& s, const Tolerance& tolerance = {1e-6, 2e-4}) {
  return of_head_dim(s.head_dim,
                     cases.emplace_back(
                         s.name(), [=](const Place& at) { return run(at, s); }, tolerance));
}

void add_window_shapes(OpCases& cases) {
  // One column before the window; windows that cross the end of 32 keys or of the cpu's blocks of
  // 512 columns; more than one row tile.
  for (const std::vector<int32_t>& n_rows :
       {std::vector<int32_t>{33, 34}, {63, 64}, {65, 96}, {511, 512}, {513, 544}}) {
    add(cases, {32, 2, 2, 32, n_rows});
  }
  add(cases, {1, 1, 1, 32, {2}});
  add(cases, {1, 1, 1, 32, {2}, DType::f32});
  add(cases, {16, 2, 2, 32, {300, 20}});  // one head shorter than the number of a GPU's ranges
  add(cases, {70, 1, 2, 8, {200}});       // more rows than a GPU's block keeps states of
  add(cases, {270, 1, 1, 8, {300}, DType::f32});
  add(cases, {64, 1, 4, 32, {1100}}).only_fast();
  add(cases, {32, 2, 4, 64, {3000, 1200}}).only_fast();
  for (const DType kv : {DType::f16, DType::f32}) {
    add(cases, {3, 1, 1, 8, {16600}, kv});  // more than 512 runs of 32 keys
  }
}

/// Adds sliding windows, capped scores and sinks: probabilities of scores that went through a tanh.
void add_variants(OpCases& cases, DType kv, bool whole, GroupReduce group) {
  for (const Variant& v : {Variant{1, 0, false},
                           {7, 0, false},
                           {50, 0, false},
                           {128, 0, false},
                           {5000, 0, false},
                           {0, 3.0f, false},
                           {0, 1e-3f, false},
                           {0, 1e7f, false},
                           {0, 1e30f, false},
                           {0, 0, true},
                           {70, 2.0f, true}}) {
    Votes s{20, 2, 2, 64, {200, 37}, kv, group, 3.0f, whole, v};
    add(cases, s, {2e-6, 5e-4});
    s.n_rows = {1300, 37};
    add(cases, s, {2e-6, 5e-4}).only_fast();
  }
}

void add_whole(OpCases& cases, GroupReduce group) {
  const auto whole = [&](int64_t window, int64_t n_group, int64_t head_dim,
                         std::vector<int32_t> n_rows, DType kv) -> OpCase& {
    return add(cases, {window, 2, n_group, head_dim, std::move(n_rows), kv, group, 1.0f, true});
  };
  for (const DType kv : {DType::f16, DType::f32}) {  // no row before the window; a single query
    whole(70, 2, 32, {70, 71}, kv);
    whole(1, 3, 40, {1, 130}, kv);
  }
  for (const int64_t n_group : {1, 3}) {  // a window over three blocks and two row tiles
    whole(70, n_group, 64, {600, 130}, DType::f16).only_fast();
    whole(600, n_group, 32, {600, 1300}, DType::bf16).only_fast();
    whole(1, n_group, 40, {1, 513}, DType::f32).only_fast();
  }
  whole(7, 3, 72, {515, 40}, DType::f16);
}

/// Many queries of which the largest probability counts, which the cpu computes in a way of its
/// own.
void add_largest(OpCases& cases) {
  const auto largest = [&](int64_t window, int64_t n_group, int64_t head_dim,
                           std::vector<int32_t> n_rows) {
    const auto n_head_kv = std::ssize(n_rows);
    return Votes{.window = window,
                 .n_head_kv = n_head_kv,
                 .n_group = n_group,
                 .head_dim = head_dim,
                 .n_rows = std::move(n_rows),
                 .group = GroupReduce::max,
                 .q_scale = 3.0f,
                 .reduce = VoteReduce::max};
  };
  for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool whole : {false, true}) {
      // a tile that crosses two query heads; columns that end within a block, and within a vector
      Votes s = largest(50, 3, 64, {600, 77});
      s.kv = kv;
      s.whole = whole;
      for (const Variant& v : {Variant{},
                               {7, 0, false},
                               {50, 0, false},
                               {5000, 0, false},
                               {0, 3.0f, false},
                               {0, 0, true},
                               {70, 2.0f, true}}) {
        s.variant = v;
        add(cases, s, {2e-6, 5e-4}).only_fast();
      }
    }
  }
  for (const int64_t head_dim : {8, 40, 128, 256}) add(cases, largest(48, 1, head_dim, {49}));
  add(cases, largest(256, 2, 64, {3000, 300}), {2e-6, 5e-4}).only_fast();
  for (const int32_t n : {8192, 8193}) {  // as many columns as that way takes, and one more
    add(cases, largest(48, 1, 8, {n}), {2e-6, 5e-4}).only_fast();
  }
}

}  // namespace

OpCases window_votes_cases() {
  OpCases cases;
  for (const GroupReduce group : {GroupReduce::mean, GroupReduce::max}) {
    for (const int64_t n_group : {1, 2, 3, 4, 8}) {
      add(cases, {16, 2, n_group, 64, {100, 37}, DType::f16, group});
    }
    add(cases, {9, 2, 3, 24, {100, 37}, DType::f32, group});
    for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
      Votes largest{16, 2, 3, 64, {600, 37}, kv, group};
      largest.reduce = VoteReduce::max;
      add(cases, largest);
      largest.whole = true;
      largest.variant = {50, 3.0f, true};
      add(cases, largest);
    }
    add_whole(cases, group);
    if (group == GroupReduce::max) add_largest(cases);
    add_variants(cases, DType::f16, false, group);
    add_variants(cases, DType::f16, true, group);
  }
  for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
    add_variants(cases, kv, kv == DType::f32, GroupReduce::mean);
    add(cases, {16, 2, 3, 64, {2999, 1300}, kv, GroupReduce::mean, 1.0f, true}).only_fast();
    for (const int64_t head_dim : {8, 32, 40, 65, 80, 96, 128}) {
      add(cases, {7, 2, 2, head_dim, {50, 51}, kv});
    }
    // A score of 4000 has an error of 2e-4 in f32, which is the relative error of its probability.
    for (const float q_scale : {1000.0f, 1e-6f}) {
      add(cases, {8, 2, 2, 64, {200, 20}, kv, GroupReduce::mean, q_scale}, {1e-3, 5e-3});
    }
    for (const int64_t gap : {8, 3}) {  // rows that are aligned, and rows that are not
      const Votes s{8, 2, 2, 64, {70, 41}, kv};
      add(cases, s).equals([=](const Place& at) { return run_strided(at, s, gap); });
    }
    // With votes for all rows, the prefix's columns are the same, bit for bit.
    const Votes prefix{20, 1, 4, 64, {200}, kv};
    add(cases, prefix).equals([=](const Place& at) -> Results {
      Votes all = prefix;
      all.whole = true;
      const std::vector<float> votes = run(at, all)[0].values();
      return TestTensor({1, 180}, std::vector<float>(votes.begin(), votes.begin() + 180));
    });
  }
  for (const int64_t head_dim : {256, 264}) {
    add(cases, {7, 1, 2, head_dim, {50}, DType::bf16});
  }
  add(cases, {7, 2, 3, 72, {600, 40}});
  add(cases, {8, 2, 2, 64, {600, 20}, DType::f32, GroupReduce::mean, 1000.0f}, {1e-3, 5e-3})
      .only_fast();
  add_window_shapes(cases);
  return cases;
}

OpCases pool_cases() {
  OpCases cases;
  const auto add_scores = [&](const std::string& what, const TestTensor& scores,
                              const std::vector<int32_t>& n, int kernel_size, Pooling pooling) {
    return &cases.emplace_back(
        fmt::format("{} {} {}", pooling == Pooling::max ? "max" : "avg", kernel_size, what),
        [=](const Place& at) -> Results {
          const DeviceTensor in = at.put(scores), out = at.zeros(scores.shape());
          ops::pool(at, in, n, kernel_size, pooling, out);
          return out.host();
        },
        // max copies values; avg sums up to 129 values of size 1 in f32
        pooling == Pooling::max ? Tolerance{} : Tolerance{1e-6, 1e-5});
  };
  for (const Pooling pooling : {Pooling::max, Pooling::avg}) {
    for (const int kernel_size : {1, 3, 7, 15, 63, 129}) {
      for (const std::vector<int32_t>& n :
           {std::vector<int32_t>{0, 1}, {2, 64}, {1500, 257}, {9000, 4097}}) {
        const int32_t longest = *std::max_element(n.begin(), n.end());
        OpCase* c = add_scores(fmt::format("of {}", longest), random_tensor({2, longest + 3}, 9), n,
                               kernel_size, pooling);
        if (longest > 2000) c->only_fast();
      }
    }
    add_scores("of NaN", TestTensor({1, 4}, {NAN, NAN, NAN, -3.0f}), {4}, 3, pooling);
  }
  return cases;
}

namespace {

/// Ties, both zeros, infinities, NaN of both signs and other values.
TestTensor difficult_scores(int64_t n_heads, int64_t n_columns, uint64_t seed) {
  TestTensor scores = random_tensor({n_heads, n_columns}, seed);
  const float special[] = {0.0f, -0.0f, NAN, -NAN, INFINITY, -INFINITY, 1e-42f, -1e-42f};
  for (int64_t i = 0; i < scores.numel(); ++i) {
    float& s = scores.as()[i];
    if (i % 3 == 0) s = std::round(s);
    if (i * 7919 % 11 == 0) s = special[i / 11 % 8];
  }
  return scores;
}

/// Scores that differ only in one digit of their sort keys.
TestTensor near_scores(uint32_t shift) {
  TestTensor scores({1, 900});
  for (uint32_t i = 0; i < 900; ++i) {
    const uint32_t bits = 0x10000000u + (i * 7 % 300 << shift);
    std::memcpy(scores.as() + i, &bits, sizeof(bits));
  }
  return scores;
}

}  // namespace

OpCases top_k_cases() {
  OpCases cases;
  const auto add_scores = [&](const std::string& what, const std::function<TestTensor()>& scores,
                              const std::vector<int32_t>& n, const std::vector<int32_t>& k,
                              int n_tail) -> OpCase& {
    return cases.emplace_back(
        fmt::format("{} of {} {}", k[0], n[0], what),
        [=](const Place& at) -> Results {
          const int32_t most = *std::max_element(k.begin(), k.end());
          const DeviceTensor in = at.put(scores());
          const DeviceTensor rows = at.zeros({std::ssize(n), most + n_tail + 1}, DType::i32);
          ops::top_k(at, in, n, k, n_tail, rows);
          return rows.host();
        },
        Bound{});
  };
  for (const int32_t n : {1, 2, 33, 100, 1025, 5000, 20000}) {
    const int32_t half = (n + 1) / 2;
    for (const int32_t k : {0, 1, n / 2, n}) {
      const std::vector<int32_t> each = {k, k / 2, std::min(k, half)};
      OpCase& c = add_scores(
          "", [=] { return difficult_scores(3, n + 2, n); }, {n, n, half}, each, k % 5);
      if (n > 5000) c.only_fast();
    }
  }
  constexpr int32_t kRow = 100'000;
  const auto of_long_rows = [] { return difficult_scores(2, kRow + 1, 2); };
  add_scores("long", of_long_rows, {kRow, 32'769}, {1000, 20'000}, 32);
  add_scores("long", of_long_rows, {kRow, 10}, {kRow, 0}, 3);
  add_scores("long", of_long_rows, {kRow, 0}, {99'999, 0}, 0);
  for (const int32_t n : {3000, 70'000}) {  // one block of a GPU, and several blocks
    add_scores(
        "equal",
        [=] {
          return TestTensor({1, n}, std::vector<float>(n, 0.25f));
        },
        {n}, {n / 3}, 2);
  }
  add_scores(
      "zeros",
      [] {
        return TestTensor({1, 5}, {0.0f, -0.0f, 0.0f, -0.0f, 0.0f});
      },
      {5}, {2}, 1);
  for (const uint32_t shift : {0, 10, 21}) {
    for (const int32_t k : {1, 2, 450, 899}) {
      add_scores(
          "near", [=] { return near_scores(shift); }, {900}, {k}, 0);
    }
  }
  add_scores(
      "no rows",
      [] {
        return TestTensor({1, 4});
      },
      {0}, {0}, 3);
  return cases;
}

}  // namespace snapkv::test
