// SPDX-License-Identifier: MIT
// Cases for attention in prefill.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/backend/attention_cases.h"

namespace snapkv::test {
namespace {

constexpr DType kKvTypes[] = {DType::f32, DType::f16, DType::bf16};

constexpr Variant kVariants[] = {{1, 0, false},     {7, 0, false},    {65, 0, false},
                                 {128, 0, false},   {512, 0, false},  {5000, 0, false},
                                 {0, 3.0f, false},  {0, 0, true},     {90, 2.0f, true},
                                 {0, 1e-3f, false}, {0, 1e7f, false}, {0, 1e30f, false}};

struct Prefill {
  int64_t n, n_head_kv, n_group, head_dim;
  std::vector<int32_t> n_past;  // [n_head_kv]
  DType kv = DType::f16;
  float q_scale = 1.0f;
  Variant variant = {};
  int64_t value_dim = 0;  // 0: head_dim
  bool v_in_k = false;    // values are the last ones of the keys
  SparseAttention sparse = {};

  std::string name() const {
    const std::string values = value_dim > 0 ? fmt::format(" and {}", value_dim) : "";
    const std::string share =
        sparse.on() ? fmt::format(" share {} but {}", sparse.share, sparse.n_dense) : "";
    return fmt::format("{} after {} x {} x {} x {}{}{} {}{}{}", n, n_past[0], n_head_kv, n_group,
                       head_dim, values, v_in_k ? " of these" : "", snapkv::name(kv),
                       variant.name(), share);
  }
  int64_t n_value() const { return value_dim > 0 ? value_dim : head_dim; }
  int64_t capacity() const { return *std::max_element(n_past.begin(), n_past.end()) + n; }
  TestTensor q() const {
    return random_tensor({n, n_head_kv * n_group, head_dim}, 1, DType::f32, q_scale);
  }
  /// Rows for a seed: 2 for keys, 3 for values.
  TestTensor rows(uint64_t seed) const {
    return random_tensor({n_head_kv, capacity(), seed == 3 ? n_value() : head_dim}, seed, kv);
  }
};

/// f32: sums of products in another order than ref's f64 sums, and a tanh with an error of at most
/// 2^-23 of the cap. With the cpu's bf16, and on a GPU with all rows but f32: q and probabilities
/// (and the cpu's k, v) have 8 bits of mantissa, or 11 for f16; each product has an error of that
/// size, and each probability of that size times the score. In the norm, the errors average out.
Bound prefill_bound(const Place& at, DType kv) {
  if (at.is_cuda() ? kv == DType::f32 : at.compute == DType::f32) return {.each = {3e-5, 2e-4}};
  return Bound::of_norm(at.is_cuda() && kv == DType::f16 ? 2e-3 : 1.5e-2);
}
/// The bound for single values, none of which may be wrong either.
Bound prefill_values(const Place& at, DType kv) {
  const Bound b = prefill_bound(at, kv);
  return b.norm > 0 ? Bound{.each = {10 * b.norm, 10 * b.norm}} : b;
}

struct PrefillTensors {
  DeviceTensor q, k, v, out, sinks;
};
PrefillTensors put(const Place& at, const Prefill& s) {
  const int64_t n_head = s.n_head_kv * s.n_group;
  return {at.put(s.q()), at.put(s.rows(2)), at.put(s.rows(3)),
          at.zeros({s.n, n_head, s.n_value()}), at.put(sinks_of(n_head))};
}
PrefillAttention arguments(const Prefill& s, const PrefillTensors& t) {
  Tensor v = t.v;
  if (s.v_in_k) {
    v = t.k;
    v.data = t.k.view().at<char>(0) + row_bytes(s.kv, s.head_dim - s.n_value());
    v.shape[2] = s.n_value();
  }
  return {t.q,
          t.k,
          v,
          s.n_past,
          1.0f / std::sqrt(static_cast<float>(s.head_dim)),
          t.out,
          s.variant.on(t.sinks),
          s.sparse};
}

Results run(const Place& at, const Prefill& s) {
  const PrefillTensors t = put(at, s);
  ops::attention_prefill(at, arguments(s, t));
  return t.out.host();
}

/// Runs in chunks: a row's blocks begin at row 0 of the cache for any chunk, so no bit may differ.
Results run_in_chunks(const Place& at, const Prefill& s) {
  const PrefillTensors t = put(at, s);
  const int64_t ends[] = {s.n / 2, s.n - 1, s.n};
  for (int64_t begin = 0; const int64_t end : ends) {
    std::vector<int32_t> n_past = s.n_past;
    for (int32_t& n : n_past) n += static_cast<int32_t>(begin);
    PrefillAttention a = arguments(s, t);
    a.q = a.q.slice(begin, end);
    a.out = a.out.slice(begin, end);
    a.n_past = n_past;
    ops::attention_prefill(at, a);
    begin = end;
  }
  return t.out.host();
}

/// Runs with K and V rows inside wider rows, as in a cache that interleaves them.
Results run_strided(const Place& at, const Prefill& s, int64_t gap) {
  PrefillTensors t = put(at, s);
  const TestTensor k = s.rows(2), v = s.rows(3);
  TestTensor both({s.n_head_kv, s.capacity(), 2 * s.head_dim + gap}, s.kv);
  const int64_t bytes = row_bytes(s.kv, s.head_dim);
  for (int64_t h = 0; h < s.n_head_kv; ++h) {
    for (int64_t j = 0; j < s.capacity(); ++j) {
      std::memcpy(both.view().at<char>(h, j), k.view().at<char>(h, j), bytes);
      std::memcpy(both.view().at<char>(h, j) + bytes, v.view().at<char>(h, j), bytes);
    }
  }
  const DeviceTensor wide = at.put(both);
  PrefillAttention a = arguments(s, t);
  a.k = wide;
  a.k.shape[2] = s.head_dim;
  a.v = a.k;
  a.v.data = static_cast<char*>(a.k.data) + bytes;
  ops::attention_prefill(at, a);
  return t.out.host();
}

/// Runs with the same rows at the beginning of a larger cache full of NaN.
Results run_before_nan(const Place& at, const Prefill& s) {
  const std::vector<int64_t> larger = {1, s.capacity() + 700, s.head_dim};
  const std::vector<float> nan(larger[1] * larger[2], NAN);
  TestTensor k(larger, nan, s.kv), v = k;
  const TestTensor rows_k = s.rows(2), rows_v = s.rows(3);
  std::memcpy(k.data(), rows_k.data(), rows_k.bytes());
  std::memcpy(v.data(), rows_v.data(), rows_v.bytes());
  PrefillTensors t = put(at, s);
  t.k = at.put(k);
  t.v = at.put(v);
  ops::attention_prefill(at, arguments(s, t));
  return t.out.host();
}

OpCase& add(OpCases& cases, const Prefill& s) {
  OpCase& added = cases.emplace_back(
      s.name(), [=](const Place& at) { return run(at, s); },
      [=](const Place& at) { return prefill_bound(at, s.kv); });
  return of_head_dim(s.head_dim, s.sparse.on() ? added.not_on_cuda() : added);
}

/// Some blocks are chosen of keys whose scores spread, so that another choice is another result.
void add_sparse(OpCases& cases) {
  const auto with = [](Prefill s, float share, int64_t n_dense = 0) {
    s.sparse = {.share = share, .n_dense = n_dense};
    return s;
  };
  for (const DType kv : kKvTypes) {
    add(cases, with({130, 1, 2, 16, {900}, kv, 4.0f}, 0.5f));
    add(cases, with({200, 2, 3, 64, {1500, 700}, kv, 4.0f}, 0.6f)).only_fast();
  }
  for (const float share : {0.01f, 0.3f, 0.9f, 0.999f}) {
    add(cases, with({140, 2, 2, 32, {1001, 640}, DType::f16, 4.0f}, share)).only_fast();
  }
  add(cases, with({256, 1, 2, 24, {1100}, DType::f16, 4.0f}, 0.3f, 1)).only_fast();
  add(cases, with({256, 1, 2, 24, {1100}, DType::f16, 4.0f}, 0.3f, 200)).only_fast();
  add(cases, with({20, 2, 2, 128, {2500, 3}, DType::bf16, 4.0f}, 0.4f)).only_fast();
  add(cases, with({20, 1, 2, 264, {1300}, DType::f16, 4.0f}, 0.4f)).only_fast();
  add(cases, with({9, 1, 4, 48, {1300}, DType::f16, 4.0f, {}, 32, true}, 0.4f)).only_fast();
  add(cases, with({40, 2, 2, 64, {1500, 800}, DType::f16, 4.0f, {0, 2.0f, true}}, 0.4f)).only_fast();
  // all blocks are those of attention to all rows, bit by bit
  const Prefill all{140, 2, 2, 64, {1500, 700}, DType::f16, 3.0f};
  add(cases, all).equals([=](const Place& at) {
    return run(at, at.is_cuda() ? all : with(all, 1.0f));
  }).only_fast();
}

void add_prefill_shapes(OpCases& cases) {
  for (const int64_t n_group : {1, 2, 3, 4, 8}) {
    add(cases, {19, 2, n_group, 64, {0, 60}});
    for (const int64_t head_dim : {32, 64, 80, 128}) {
      add(cases, {19, 2, n_group, head_dim, {0, 45}}).only_fast();
    }
  }
  for (const int64_t head_dim : {8, 24, 40, 72, 80, 96, 127, 128, 256, 264}) {
    add(cases, {7, 1, 2, head_dim, {70}, DType::bf16});
  }
  add(cases, {40, 1, 2, 256, {70}});
  for (const DType kv : kKvTypes) {
    for (const int64_t head_dim : {40, 64, 65, 72}) {
      add(cases, {33, 2, 3, head_dim, {5, 0}, kv}).only_fast();
      add(cases, {15, 2, 3, head_dim, {5, 130}, kv});
    }
  }
  // A GPU's key tiles have 64 rows: test before, at and after their ends, and more queries than a
  // tile.
  for (const int32_t n_past : {62, 63, 64, 127}) add(cases, {3, 1, 2, 64, {n_past}});
  add(cases, {150, 1, 1, 64, {0}});
  add(cases, {70, 2, 2, 64, {10, 100}, DType::bf16});
  add(cases, {1, 3, 1, 64, {0, 1, 190}});
  // 32 of a GPU's tiles for few blocks; the short heads have fewer than their share.
  add(cases, {3, 1, 4, 64, {2060}});
  add(cases, {2, 3, 1, 7, {2100, 0, 63}, DType::bf16});
  // The cpu's blocks have 512 rows.
  for (const int32_t n_past : {510, 511, 512, 1023}) add(cases, {3, 1, 2, 32, {n_past}});
  add(cases, {150, 2, 4, 32, {500, 1000}}).only_fast();
  add(cases, {200, 2, 3, 64, {1000, 77}}).only_fast();
  add(cases, {0, 2, 2, 64, {3, 4}});
}

/// Values of another width than the keys', also those of latent attention within the keys.
void add_value_widths(OpCases& cases) {
  for (const DType kv : kKvTypes) {
    for (const auto& [head_dim, value_dim] : {std::pair{64, 32}, {32, 72}, {192, 128}}) {
      add(cases, {9, 2, 3, head_dim, {70, 5}, kv, 1.0f, {}, value_dim});
    }
    add(cases, {21, 1, 4, 48, {130}, kv, 1.0f, {}, 32, true});
    add(cases, {5, 2, 3, 40, {3, 90}, kv, 1.0f, {0, 0, true}, 24, true});
    add(cases, {3, 1, 5, 40, {90}, kv, 1.0f, {30, 0, false}, 24, true});
    add(cases, {5, 1, 16, 576, {300}, kv, 1.0f, {}, 512, true}).only_fast();
    add(cases, {3, 1, 2, 576, {30}, kv, 1.0f, {}, 512, true});
  }
}

/// Runs with every key's score above those before it, so that running maxima change.
Results run_rising(const Place& at, const Prefill& s) {
  std::vector<float> k = s.rows(2).values();
  for (size_t i = 0; i < k.size(); ++i) {
    k[i] = 0.005f * static_cast<float>(i / s.head_dim) + 0.01f * k[i];
  }
  TestTensor q = s.q();
  std::fill(q.as(), q.as() + q.numel(), 3.0f);
  PrefillTensors t = put(at, s);
  t.q = at.put(q);
  t.k = at.put(TestTensor(s.rows(2).shape(), k, s.kv));
  ops::attention_prefill(at, arguments(s, t));
  return t.out.host();
}

}  // namespace

OpCases attention_prefill_cases() {
  OpCases cases;
  add_prefill_shapes(cases);
  add_value_widths(cases);
  for (const DType kv : kKvTypes) {
    const Prefill chunked{50, 2, 2, 64, {90, 3}, kv};
    add(cases, chunked).equals([=](const Place& at) { return run_in_chunks(at, chunked); });
    for (const int64_t gap : {8, 3}) {  // a distance that keeps rows aligned, and one that does not
      const Prefill s{9, 2, 2, 64, {80, 11}, kv};
      add(cases, s).equals([=](const Place& at) { return run_strided(at, s, gap); });
    }
    const Prefill last{10, 1, 2, 64, {505}, kv};  // the last block ends inside a panel
    add(cases, last).equals([=](const Place& at) { return run_before_nan(at, last); });

    // Results in the compute type: bf16 results must be rounded f32 results.
    for (const int64_t head_dim : {40, 37, 64}) {
      const Prefill s{21, 2, 1, head_dim, {0, 9}, kv};
      of_head_dim(
          head_dim,
          cases.emplace_back(
              s.name() + " to the compute type",
              [=](const Place& at) -> Results {
                PrefillTensors t = put(at, s);
                t.out = at.zeros(s.q().shape(), at.backend.compute_dtype());
                ops::attention_prefill(at, arguments(s, t));
                return t.out.host();
              },
              [=](const Place& at) -> Bound {
                const Bound b = prefill_bound(at, kv);
                if (b.norm > 0) return b;
                return {.each = {b.each.abs, at.compute == DType::bf16 ? 0x1p-8 : b.each.rel}};
              }))
          .equals([=](const Place& at) -> Results {
            return run(at, s)[0].to(at.backend.compute_dtype());
          });
    }

    // Scores of up to several thousand of either sign: almost everywhere, one probability is 1 or
    // the sum is 1. A score of 4000 has an error of 2e-4 in f32, which is the relative error of its
    // probability, and of 10 and more if products have 8 or 11 bits.
    Prefill extreme{40, 2, 2, 64, {0, 100}, kv, 1000.0f};
    cases.emplace_back(
        extreme.name() + " extreme", [=](const Place& at) { return run(at, extreme); },
        [=](const Place& at) -> Bound {
          const bool exact = prefill_bound(at, kv).norm == 0;
          return {.each = {exact ? 2e-3 : 10.0, 2e-3}};  // finite, between rows of at most 5
        });
    const Prefill rising{4, 1, 1, 64, {400}, kv};
    cases.emplace_back(
        rising.name() + " rising", [=](const Place& at) { return run_rising(at, rising); },
        [=](const Place& at) { return prefill_values(at, kv); });
  }
  const Prefill long_chunks{130, 2, 2, 64, {450, 3}};
  add(cases, long_chunks)
      .equals([=](const Place& at) { return run_in_chunks(at, long_chunks); })
      .only_fast();
  for (const Variant& variant : kVariants) {  // scores spread by about 3, so caps and sinks matter
    for (const DType kv : kKvTypes) {
      const Prefill s{40, 2, 2, 64, {0, 130}, kv, 3.0f, variant};
      add(cases, s).equals([=](const Place& at) { return run_in_chunks(at, s); });
      add(cases, {20, 1, 1, 264, {90}, kv, 3.0f, variant});
    }
    add(cases, {3, 1, 2, 96, {1500}, DType::f16, 3.0f, variant});
    add(cases, {3, 1, 2, 256, {511}, DType::f16, 3.0f, variant});
    const Prefill large{700, 2, 1, 64, {0, 3}, DType::f16, 3.0f, variant};
    add(cases, large).equals([=](const Place& at) { return run_in_chunks(at, large); }).only_fast();
  }
  for (const DType kv : kKvTypes) add(cases, {150, 2, 3, 64, {700, 37}, kv}).only_fast();
  add_sparse(cases);
  const auto mean = [](const Place& at) -> Results {  // equal scores
    const Prefill s{2, 1, 1, 32, {1500}, DType::f32};
    const TestTensor values({1, 1502, 32}, std::vector<float>(1502 * 32, 0.75f));
    PrefillTensors t = put(at, s);
    t.q = at.zeros({2, 1, 32});
    t.v = at.put(values);
    ops::attention_prefill(at, arguments(s, t));
    return t.out.host();
  };
  cases.emplace_back("equal scores give the mean", mean, Tolerance{.rel = 3e-7});
  return cases;
}

}  // namespace snapkv::test
