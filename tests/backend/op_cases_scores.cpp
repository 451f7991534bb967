// SPDX-License-Identifier: MIT
// Cases for the ops that the scores of policies are made of.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

// Sums are in f64 on every backend, but in different orders. The results therefore differ only in
// the rounding to f32, by one unit in the last place.
constexpr Tolerance kOneUlp{.abs = 0, .rel = 6.1e-8};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Rows of KV heads, with some values after each row that do not belong to the op.
TestTensor kv_rows(int64_t n_head_kv, int64_t capacity, int64_t d, DType dtype, uint64_t seed) {
  return random_tensor({n_head_kv, capacity, d + 3}, seed, dtype);
}
Tensor without_rest(Tensor rows) {
  rows.shape[2] -= 3;
  return rows;
}

/// The scores before an op writes some of them.
TestTensor old_scores(int64_t n_head_kv, int64_t columns) {
  return random_tensor({n_head_kv, columns}, 99);
}

struct Rows {
  std::vector<int32_t> n;
  int64_t d;
};
// No rows, one row, heads of different lengths, many blocks, so many that the cpu's threads share
// even scores; odd sizes and one element.
const Rows kRows[] = {{{0, 0}, 8},       {{1}, 1},    {{5, 0, 300}, 37},
                      {{1031, 700}, 64}, {{40}, 128}, {{9000, 8000}, 1}};

int64_t capacity_of(const Rows& rows) {
  return *std::max_element(rows.n.begin(), rows.n.end()) + 2;
}

std::string rows_name(const char* op, const Rows& rows, DType dtype) {
  return fmt::format("{} {} heads, {} rows, d {}, {}", op, rows.n.size(), capacity_of(rows) - 2,
                     rows.d, name(dtype));
}

template <typename AnyBound>
void add_case(OpCases& cases, const Rows& rows, std::string name, OpCase::Run run,
              const AnyBound& bound) {
  OpCase& c = cases.emplace_back(std::move(name), std::move(run), bound);
  if (capacity_of(rows) > 5000) c.only_fast();
}

}  // namespace

OpCases row_norms_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    for (DType dtype : kKvTypes) {
      for (int options : {0, 2, 5, 7}) {
        const bool l1 = options & 1, inverse = options & 2, accumulate = options & 4;
        const auto run = [=](Backend& backend) {
          const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows);
          const DeviceTensor x(backend, kv_rows(n_head, capacity, rows.d, dtype, 1));
          const DeviceTensor out(backend, old_scores(n_head, capacity));
          ops::row_norms(backend, {.x = without_rest(x),
                                   .n = rows.n,
                                   .out = out,
                                   .factor = -0.75f,
                                   .l1 = l1,
                                   .inverse = inverse,
                                   .accumulate = accumulate});
          return out.host();
        };
        // If a norm is added to an old score, the two may cancel.
        add_case(cases, rows, rows_name("row_norms", rows, dtype) + fmt::format(", {}", options),
                 run, accumulate ? Tolerance{3e-6, 6.1e-8} : kOneUlp);
      }
    }
  }
  cases.push_back({"row_norms of zeros",
                   [](Backend& backend) {
                     const std::vector<int32_t> n = {3};
                     const DeviceTensor x(backend, TestTensor({1, 3, 8}));
                     const DeviceTensor out(backend, old_scores(1, 3));
                     ops::row_norms(backend, {.x = x, .n = n, .out = out, .inverse = true});
                     return out.host();
                   },
                   kOneUlp});
  return cases;
}

OpCases row_dots_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows), d = rows.d;
    for (DType dtype : kKvTypes) {
      for (bool one_for_all : {false, true}) {
        const auto run = [=](Backend& backend) {
          const DeviceTensor x(backend, kv_rows(n_head, capacity, d, dtype, 2));
          const DeviceTensor y(backend, kv_rows(n_head, capacity, d, DType::f32, 3));
          const DeviceTensor out(backend, old_scores(n_head, capacity));
          Tensor factors = without_rest(y);
          if (one_for_all) factors.stride[1] = 0;
          ops::row_dots(backend, without_rest(x), factors, rows.n, out);
          return out.host();
        };
        // Products of either sign cancel, so the error is relative to their sizes, not to their
        // sum.
        add_case(cases, rows, rows_name(one_for_all ? "row_dots of one" : "row_dots", rows, dtype),
                 run, Tolerance{1e-13, 6.1e-8});
      }
    }
  }
  return cases;
}

OpCases index_scores_cases() {
  struct Shape {
    std::vector<int32_t> n_seen;
    int64_t n_head, d;
  };
  OpCases cases;
  for (const Shape& shape : {Shape{{0}, 4, 8},
                             {{1, 0, 2}, 1, 1},
                             {{63, 64, 65}, 3, 37},
                             {{300, 301, 302, 303, 5}, 9, 64},
                             {{1000}, 64, 128}}) {
    const int64_t n = std::ssize(shape.n_seen), n_head = shape.n_head, d = shape.d;
    const int64_t capacity = *std::max_element(shape.n_seen.begin(), shape.n_seen.end()) + 2;
    for (const DType dtype : kKvTypes) {
      const auto run = [=](Backend& backend) {
        const DeviceTensor rows(backend, random_tensor({capacity, d + 3}, 2, dtype));
        const DeviceTensor q(backend, random_tensor({n, n_head, d}, 3));
        const DeviceTensor weights(backend, random_tensor({n, n_head}, 4));
        const DeviceTensor out(backend, old_scores(n, capacity));
        Tensor keys = rows;
        keys.shape[1] = d;
        ops::index_scores(
            backend,
            {.q = q, .weights = weights, .keys = keys, .n_seen = shape.n_seen, .out = out});
        return out.host();
      };
      // sums in f32; terms of either sign cancel
      OpCase& added = cases.emplace_back(
          fmt::format("index_scores {} queries, {} keys, {} heads of {}, {}", n, capacity - 2,
                      n_head, d, name(dtype)),
          run,
          Tolerance{.abs = 2e-6 * static_cast<double>(n_head) * std::sqrt(static_cast<double>(d)),
                    .rel = 1e-6});
      if (capacity > 500) added.only_fast();
    }
  }
  return cases;
}

OpCases sum_rows_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows), d = rows.d;
    for (DType dtype : kKvTypes) {
      const auto sum = [=](Backend& backend) {
        const DeviceTensor x(backend, kv_rows(n_head, capacity, d, dtype, 4));
        const DeviceTensor weights(backend, old_scores(n_head, capacity));
        const DeviceTensor out(backend, old_scores(n_head, d));
        ops::sum_rows(backend, without_rest(x), weights, rows.n, out);
        return out.host();
      };
      add_case(cases, rows, rows_name("sum_rows", rows, dtype), sum, Tolerance{1e-12, 6.1e-8});
    }
  }
  return cases;
}

OpCases weigh_scores_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
    const auto weigh = [=](Backend& backend) {
      TestTensor values = old_scores(n_head, columns);
      values.as<float>()[0] = kInf;
      const DeviceTensor scores(backend, values);
      const DeviceTensor weights(backend, random_tensor({n_head, columns + 1}, 5));
      ops::weigh_scores(backend, scores, rows.n, -1.5f, 0.25f, weights);
      return scores.host();
    };
    add_case(cases, rows, rows_name("weigh_scores", rows, DType::f32), weigh, kOneUlp);
  }
  return cases;
}

OpCases add_scores_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
    const auto add = [=](Backend& backend) {
      const DeviceTensor sums(backend, TestTensor({2, n_head, columns + 1}));
      for (uint64_t i = 0; i < 40; ++i) {
        const DeviceTensor x(backend,
                             random_tensor({n_head, columns}, i, DType::f32, i % 9 * 1e3f));
        ops::add_scores(backend, x, rows.n, sums);
      }
      return sums.host();
    };
    // Every step is the same two roundings everywhere.
    add_case(cases, rows, rows_name("add_scores", rows, DType::f32), add, Bound{});
  }
  return cases;
}

OpCases set_scores_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
    const auto set = [=](Backend& backend) {
      TestTensor at({n_head, columns}, DType::i32);
      for (int64_t h = 0; h < n_head; ++h) {
        for (int64_t i = 0; i < columns; ++i) {
          at.as<int32_t>()[h * columns + i] = static_cast<int32_t>(columns - 1 - i);
        }
      }
      const DeviceTensor scores(backend, old_scores(n_head, columns)), places(backend, at);
      ops::set_scores(backend, scores, places, rows.n, kInf);
      return scores.host();
    };
    add_case(cases, rows, rows_name("set_scores", rows, DType::f32), set, Bound{});
  }
  return cases;
}

namespace {

// Ties, infinities, NaN, and zeros of both signs, among other values.
TestTensor difficult_scores(int64_t n_head, int64_t columns, bool finite) {
  TestTensor scores = old_scores(n_head, columns);
  const float special[] = {0.0f, -0.0f, 1.0f, kNan, kInf, -kInf};
  for (int64_t i = 0; i < scores.numel(); ++i) {
    float& s = scores.as<float>()[i];
    if (i % 3 == 0) s = std::round(s);
    if (!finite && i % 7 == 0) s = special[i / 7 % 6];
  }
  return scores;
}

}  // namespace

OpCases chunk_scores_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    for (const auto& [begin, length] :
         {std::pair<int64_t, int64_t>{0, 1}, {0, 7}, {4, 128}, {3, 1 << 30}, {2000, 5}}) {
      for (ChunkScore kind : {ChunkScore::mean, ChunkScore::softmax, ChunkScore::rank}) {
        for (bool accumulate : {false, true}) {
          const auto run = [=, b = begin, l = length](Backend& backend) {
            const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
            const DeviceTensor scores(backend,
                                      difficult_scores(n_head, columns, kind != ChunkScore::rank));
            const DeviceTensor out(backend, old_scores(n_head, columns + 2));
            ops::chunk_scores(backend, {.kind = kind,
                                        .scores = scores,
                                        .n = rows.n,
                                        .begin = b,
                                        .length = l,
                                        .out = out,
                                        .factor = 0.5f,
                                        .accumulate = accumulate});
            return out.host();
          };
          // An exponential is within 1 ulp of f64 everywhere. Adding to old scores may cancel, and
          // so may a mean of 1000 values of either sign.
          add_case(cases, rows,
                   rows_name("chunk_scores", rows, DType::f32) +
                       fmt::format(", kind {} from {} by {}{}", static_cast<int>(kind), begin,
                                   length, accumulate ? ", added" : ""),
                   run, Tolerance{accumulate ? 2e-7 : 1e-15, 6.1e-8});
        }
      }
    }
  }
  cases.push_back({"chunk_scores in place",
                   [](Backend& backend) {
                     const std::vector<int32_t> n = {50, 700};
                     const DeviceTensor s(backend, old_scores(2, 700));
                     ops::chunk_scores(backend, {.scores = s, .n = n, .length = 33, .out = s});
                     return s.host();
                   },
                   Tolerance{1e-15, 6.1e-8}});
  return cases;
}

OpCases lag_deviations_cases() {
  OpCases cases;
  for (const Rows& rows : kRows) {
    for (DType dtype : kKvTypes) {
      for (const auto& [begin, lag] :
           {std::pair<int64_t, int64_t>{0, 1}, {4, 16}, {0, 128}, {7, 600}}) {
        const auto run = [=, b = begin, l = lag](Backend& backend) {
          const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows);
          TestTensor values = kv_rows(n_head, capacity, rows.d, DType::f32, 6);
          // One channel has the same value in all rows.
          for (int64_t i = 0; i < values.numel(); i += rows.d + 3) values.as<float>()[i] = 2.0f;
          const DeviceTensor x(backend, values.to(dtype));
          const DeviceTensor out(backend, old_scores(n_head, capacity));
          ops::lag_deviations(backend, without_rest(x), rows.n, b, l, out);
          return out.host();
        };
        add_case(
            cases, rows,
            rows_name("lag_deviations", rows, dtype) + fmt::format(", from {} by {}", begin, lag),
            run, kOneUlp);
      }
    }
  }
  return cases;
}

OpCases moments_cases() {
  OpCases cases;
  struct Size {
    int64_t n, n_head, d;
  };
  for (const Size& s :
       {Size{0, 2, 8}, Size{1, 1, 1}, Size{3, 2, 37}, Size{517, 3, 64}, Size{300, 1, 100}}) {
    const auto run = [=](Backend& backend) {
      const DeviceTensor x(backend, random_tensor({s.n, s.n_head, s.d}, 7));
      const DeviceTensor shift(backend, random_tensor({s.n_head, s.d}, 8));
      const DeviceTensor out(backend, old_scores(s.n_head * (s.d + 1), s.d));
      Tensor result = out.view().reshaped({s.n_head, s.d + 1, s.d});
      ops::moments(backend, x, shift, result);
      return out.host();
    };
    // The cpu sums 256 products of size 2 in f32, and the differences y are f32.
    cases.push_back(
        {fmt::format("moments of {} x {} x {}", s.n, s.n_head, s.d), run, Tolerance{3e-4, 1e-5}});
  }
  return cases;
}

}  // namespace snapkv::test
