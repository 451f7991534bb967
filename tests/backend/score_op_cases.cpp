// SPDX-License-Identifier: MIT
#include "tests/backend/score_op_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace snapkv::test {
namespace {

// Sums are in f64 on every backend, in another order: what differs is the rounding of the result to
// f32, by one unit in its last place.
constexpr Tolerance kOneUlp{.abs = 0, .rel = 6.1e-8};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16};

/// A tensor in the memory of a backend.
struct OnBackend {
  OnBackend(Backend& backend_, const TestTensor& t)
      : backend(backend_),
        host(t),
        buffer(backend.allocate(std::max<size_t>(1, t.bytes()), "test tensor")),
        view(t.view()) {
    backend.upload(buffer.data(), t.data(), t.bytes());
    view.data = buffer.data();
  }
  operator const Tensor&() const { return view; }  // NOLINT: ops take views
  TestTensor result() const {
    TestTensor t = host;
    backend.download(t.data(), buffer.data(), t.bytes());
    return t;
  }
  Backend& backend;
  TestTensor host;
  Buffer buffer;
  Tensor view;
};

/// Rows of KV heads, after each row some values that are not the op's.
TestTensor kv_rows(int64_t n_head_kv, int64_t capacity, int64_t d, DType dtype, uint64_t seed) {
  return random_tensor({n_head_kv, capacity, d + 3}, seed, dtype);
}
Tensor without_rest(Tensor rows) {
  rows.shape[2] -= 3;
  return rows;
}

/// What scores hold before an op writes some of them.
TestTensor old_scores(int64_t n_head_kv, int64_t columns) {
  return random_tensor({n_head_kv, columns}, 99);
}

struct Rows {
  std::vector<int32_t> n;
  int64_t d;
};
// no rows, one row, heads of different lengths, many blocks; odd sizes and one element
const Rows kRows[] = {{{0, 0}, 8}, {{1}, 1}, {{5, 0, 300}, 37}, {{1031, 700}, 64}, {{40}, 128}};

int64_t capacity_of(const Rows& rows) {
  return *std::max_element(rows.n.begin(), rows.n.end()) + 2;
}

std::string rows_name(const char* op, const Rows& rows, DType dtype) {
  return fmt::format("{} {} heads, {} rows, d {}, {}", op, rows.n.size(), capacity_of(rows) - 2,
                     rows.d, name(dtype));
}

void add_norms(std::vector<ScoreOpCase>& cases) {
  for (const Rows& rows : kRows) {
    for (DType dtype : kKvTypes) {
      for (int options : {0, 2, 5, 7}) {
        const bool l1 = options & 1, inverse = options & 2, accumulate = options & 4;
        const auto run = [=](Backend& backend) {
          const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows);
          const OnBackend x(backend, kv_rows(n_head, capacity, rows.d, dtype, 1));
          const OnBackend out(backend, old_scores(n_head, capacity));
          ops::row_norms(backend, {.x = without_rest(x.view),
                                   .n = rows.n,
                                   .out = out,
                                   .factor = -0.75f,
                                   .l1 = l1,
                                   .inverse = inverse,
                                   .accumulate = accumulate});
          return out.result();
        };
        // where a norm is added to an old score, the two may cancel
        cases.push_back({rows_name("row_norms", rows, dtype) + fmt::format(", {}", options), run,
                         accumulate ? Tolerance{3e-6, 6.1e-8} : kOneUlp});
      }
    }
  }
  cases.push_back({"row_norms of zeros",
                   [](Backend& backend) {
                     const std::vector<int32_t> n = {3};
                     const OnBackend x(backend, TestTensor({1, 3, 8}));
                     const OnBackend out(backend, old_scores(1, 3));
                     ops::row_norms(backend, {.x = x, .n = n, .out = out, .inverse = true});
                     return out.result();
                   },
                   kOneUlp});
}

void add_products(std::vector<ScoreOpCase>& cases) {
  for (const Rows& rows : kRows) {
    for (DType dtype : kKvTypes) {
      const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows), d = rows.d;
      for (bool one_for_all : {false, true}) {
        const auto run = [=](Backend& backend) {
          const OnBackend x(backend, kv_rows(n_head, capacity, d, dtype, 2));
          const OnBackend y(backend, kv_rows(n_head, capacity, d, DType::f32, 3));
          const OnBackend out(backend, old_scores(n_head, capacity));
          Tensor factors = without_rest(y.view);
          if (one_for_all) factors.stride[1] = 0;
          ops::row_dots(backend, without_rest(x.view), factors, rows.n, out);
          return out.result();
        };
        // products of either sign cancel: relative to their sizes, not to their sum
        cases.push_back({rows_name(one_for_all ? "row_dots of one" : "row_dots", rows, dtype),
                         run,
                         {1e-13, 6.1e-8}});
      }
      const auto sum = [=](Backend& backend) {
        const OnBackend x(backend, kv_rows(n_head, capacity, d, dtype, 4));
        const OnBackend weights(backend, old_scores(n_head, capacity));
        const OnBackend out(backend, old_scores(n_head, d));
        ops::sum_rows(backend, without_rest(x.view), weights, rows.n, out);
        return out.result();
      };
      cases.push_back({rows_name("sum_rows", rows, dtype), sum, {1e-12, 6.1e-8}});
    }
  }
}

void add_score_arithmetic(std::vector<ScoreOpCase>& cases) {
  for (const Rows& rows : kRows) {
    const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
    const auto weigh = [=](Backend& backend) {
      TestTensor values = old_scores(n_head, columns);
      values.as<float>()[0] = kInf;
      const OnBackend scores(backend, values);
      const OnBackend weights(backend, random_tensor({n_head, columns + 1}, 5));
      ops::weigh_scores(backend, scores, rows.n, -1.5f, 0.25f, weights);
      return scores.result();
    };
    cases.push_back({rows_name("weigh_scores", rows, DType::f32), weigh, kOneUlp});
    const auto add = [=](Backend& backend) {
      const OnBackend sums(backend, TestTensor({2, n_head, columns + 1}));
      for (uint64_t i = 0; i < 40; ++i) {
        const OnBackend x(backend, random_tensor({n_head, columns}, i, DType::f32, i % 9 * 1e3f));
        ops::add_scores(backend, x, rows.n, sums);
      }
      return sums.result();
    };
    // every step is the same two roundings everywhere
    cases.push_back({rows_name("add_scores", rows, DType::f32), add, {}});
    const auto set = [=](Backend& backend) {
      TestTensor at({n_head, columns}, DType::i32);
      for (int64_t h = 0; h < n_head; ++h) {
        for (int64_t i = 0; i < columns; ++i) {
          at.as<int32_t>()[h * columns + i] = static_cast<int32_t>(columns - 1 - i);
        }
      }
      const OnBackend scores(backend, old_scores(n_head, columns)), places(backend, at);
      ops::set_scores(backend, scores, places, rows.n, kInf);
      return scores.result();
    };
    cases.push_back({rows_name("set_scores", rows, DType::f32), set, {}});
  }
}

// Ties, infinities, NaN and zeros of both signs among other values.
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

void add_chunks(std::vector<ScoreOpCase>& cases) {
  for (const Rows& rows : kRows) {
    for (const auto& [begin, length] :
         {std::pair<int64_t, int64_t>{0, 1}, {0, 7}, {4, 128}, {3, 1 << 30}, {2000, 5}}) {
      for (ChunkScore kind : {ChunkScore::mean, ChunkScore::softmax, ChunkScore::rank}) {
        for (bool accumulate : {false, true}) {
          const auto run = [=, b = begin, l = length](Backend& backend) {
            const int64_t n_head = std::ssize(rows.n), columns = capacity_of(rows);
            const OnBackend scores(backend,
                                   difficult_scores(n_head, columns, kind != ChunkScore::rank));
            const OnBackend out(backend, old_scores(n_head, columns + 2));
            ops::chunk_scores(backend, {.kind = kind,
                                        .scores = scores,
                                        .n = rows.n,
                                        .begin = b,
                                        .length = l,
                                        .out = out,
                                        .factor = 0.5f,
                                        .accumulate = accumulate});
            return out.result();
          };
          // an exponential is within 1 ulp of f64 everywhere; adding to old scores may cancel, and
          // so may a mean of 1000 values of either sign
          cases.push_back({rows_name("chunk_scores", rows, DType::f32) +
                               fmt::format(", kind {} from {} by {}{}", static_cast<int>(kind),
                                           begin, length, accumulate ? ", added" : ""),
                           run, Tolerance{accumulate ? 2e-7 : 1e-15, 6.1e-8}});
        }
      }
    }
  }
  cases.push_back({"chunk_scores in place",
                   [](Backend& backend) {
                     const std::vector<int32_t> n = {50, 700};
                     const OnBackend s(backend, old_scores(2, 700));
                     ops::chunk_scores(backend, {.scores = s, .n = n, .length = 33, .out = s});
                     return s.result();
                   },
                   {1e-15, 6.1e-8}});
}

void add_lags(std::vector<ScoreOpCase>& cases) {
  for (const Rows& rows : kRows) {
    for (DType dtype : kKvTypes) {
      for (const auto& [begin, lag] :
           {std::pair<int64_t, int64_t>{0, 1}, {4, 16}, {0, 128}, {7, 600}}) {
        const auto run = [=, b = begin, l = lag](Backend& backend) {
          const int64_t n_head = std::ssize(rows.n), capacity = capacity_of(rows);
          TestTensor values = kv_rows(n_head, capacity, rows.d, DType::f32, 6);
          // a channel that is the same in all rows
          for (int64_t i = 0; i < values.numel(); i += rows.d + 3) values.as<float>()[i] = 2.0f;
          const OnBackend x(backend, values.to(dtype));
          const OnBackend out(backend, old_scores(n_head, capacity));
          ops::lag_deviations(backend, without_rest(x.view), rows.n, b, l, out);
          return out.result();
        };
        cases.push_back(
            {rows_name("lag_deviations", rows, dtype) + fmt::format(", from {} by {}", begin, lag),
             run, kOneUlp});
      }
    }
  }
}

void add_moments(std::vector<ScoreOpCase>& cases) {
  struct Size {
    int64_t n, n_head, d;
  };
  for (const Size& s :
       {Size{0, 2, 8}, Size{1, 1, 1}, Size{3, 2, 37}, Size{517, 3, 64}, Size{300, 1, 100}}) {
    const auto run = [=](Backend& backend) {
      const OnBackend x(backend, random_tensor({s.n, s.n_head, s.d}, 7));
      const OnBackend shift(backend, random_tensor({s.n_head, s.d}, 8));
      const OnBackend out(backend, old_scores(s.n_head * (s.d + 1), s.d));
      Tensor result = out.view.reshaped({s.n_head, s.d + 1, s.d});
      ops::moments(backend, x, shift, result);
      return out.result();
    };
    // the cpu sums 256 products in f32, of size 2, and the differences y are f32
    cases.push_back(
        {fmt::format("moments of {} x {} x {}", s.n, s.n_head, s.d), run, {3e-4, 1e-5}});
  }
}

}  // namespace

std::vector<ScoreOpCase> score_op_cases() {
  std::vector<ScoreOpCase> cases;
  add_norms(cases);
  add_products(cases);
  add_score_arithmetic(cases);
  add_chunks(cases);
  add_lags(cases);
  add_moments(cases);
  return cases;
}

void expect_score_ops(Backend& backend, std::string_view prefix) {
  const auto reference = make_ref();
  for (const ScoreOpCase& c : score_op_cases()) {
    if (!c.name.starts_with(prefix)) continue;
    EXPECT_TRUE(all_close(c.run(backend), c.run(*reference), c.tolerance)) << c.name;
  }
}

}  // namespace snapkv::test
