// SPDX-License-Identifier: MIT
// Cases for attention in decode.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/backend/attention_cases.h"

namespace snapkv::test {
namespace {

constexpr DType kCacheTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

/// No windows: decode gets exactly the rows that its query sees.
constexpr Variant kVariants[] = {{0, 3.0f, false},  {0, 0, true},     {0, 2.0f, true},
                                 {0, 1e-3f, false}, {0, 1e7f, false}, {0, 1e30f, false}};

struct Decode {
  int64_t n_group, head_dim;
  std::vector<std::vector<int32_t>> n_kv;  // [n_seq][n_head_kv]
  DType kv = DType::f16;
  float q_scale = 1.0f;
  int64_t shift = 0;  // bytes before each head's rows
  Variant variant = {};
  int64_t value_dim = 0;  // 0: head_dim
  bool v_in_k = false;    // values are the last ones of the keys

  std::string name() const {
    const std::string values = value_dim > 0 ? fmt::format(" and {}", value_dim) : "";
    return fmt::format("{} rows of {} x {}{}{} {}{}{}", n_kv[0][0], n_group, head_dim, values,
                       v_in_k ? " of these" : "", snapkv::name(kv),
                       shift > 0 ? fmt::format(" at {}", shift) : "", variant.name());
  }
  int64_t n_value() const { return value_dim > 0 ? value_dim : head_dim; }
};

/// The rows of each head, in separate memory that ends right after them.
struct DecodeTensors {
  DecodeTensors(const Place& at, const Decode& s) {
    uint64_t seed = 2;
    const auto rows = [&](int32_t n, int64_t width) {
      const TestTensor t = random_tensor({n, width}, ++seed, s.kv);
      memory.push_back(at.backend.allocate(s.shift + t.bytes(), "test rows"));
      char* data = static_cast<char*>(memory.back().data()) + s.shift;
      at.backend.upload(data, t.data(), t.bytes());
      return data;
    };
    for (const auto& sequence : s.n_kv) {
      for (const int32_t n : sequence) {
        const char* const k = rows(n, s.head_dim);
        const char* const v =
            s.v_in_k ? k + row_bytes(s.kv, s.head_dim - s.n_value()) : rows(n, s.n_value());
        heads.push_back({k, v, n});
      }
    }
  }
  std::vector<Buffer> memory;
  std::vector<HeadRows> heads;
};

Results run(const Place& at, const Decode& s) {
  const DecodeTensors t(at, s);
  const int64_t n_head = std::ssize(s.n_kv[0]) * s.n_group;
  const DeviceTensor q =
      at.put(random_tensor({std::ssize(s.n_kv), n_head, s.head_dim}, 1, DType::f32, s.q_scale));
  const DeviceTensor out = at.zeros({std::ssize(s.n_kv), n_head, s.n_value()});
  const DeviceTensor sinks = at.put(sinks_of(n_head));
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  ops::attention_decode(at, {q, t.heads, s.kv, scale, out, s.variant.on(sinks), s.v_in_k});
  return out.host();
}

/// f32 on the cpu, whatever the compute type; products of q8_0 rows may have 16-bit operands there,
/// with rounding errors of 2^-16 of the largest value (decode_vnni.h). On a GPU, operands consist
/// of two parts of 11 bits (f16) or 8 bits (bf16, and q8_0's products).
Bound decode_bound(const Place& at, DType kv) {
  if (!at.is_cuda()) {
    return {.each = kv == DType::q8_0 ? Tolerance{1e-4, 4e-4} : Tolerance{3e-5, 2e-4}};
  }
  return {.each =
              kv == DType::f32 || kv == DType::f16 ? Tolerance{1e-5, 5e-5} : Tolerance{5e-5, 3e-4}};
}

OpCase& add(OpCases& cases, const Decode& s) {
  return of_head_dim(s.head_dim, cases.emplace_back(
                                     s.name(), [=](const Place& at) { return run(at, s); },
                                     [=](const Place& at) { return decode_bound(at, s.kv); }));
}

void add_decode_shapes(OpCases& cases) {
  for (const DType kv : kCacheTypes) {
    add(cases, {4, 64, {{1, 2}, {255, 256}, {257, 1000}, {16, 65}}, kv});
    add(cases, {4, 64, {{1, 2, 3}, {511, 512, 513}, {5, 1025, 40}}, kv}).only_fast();
    add(cases, {2, 32, {{3000, 1, 700}}, kv});  // a GPU splits the longest; others end in some part
    for (const int64_t n_group : {1, 2, 3, 7, 8, 9, 16, 21}) {
      add(cases, {n_group, 32, {{37, 1}}, kv});
      for (const int64_t head_dim : {8, 32, 40, 64, 80, 96, 128, 160, 256}) {
        if (head_dim % block_size(kv) != 0 || n_group > 8) continue;
        add(cases, {n_group, head_dim, {{1, 127, 130, 601}}, kv}).only_fast();
      }
    }
    for (const int64_t head_dim :
         {1, 7, 8, 33, 40, 72, 80, 96, 128, 130, 160, 192, 256, 264, 288}) {
      if (head_dim % block_size(kv) != 0) continue;
      add(cases, {3, head_dim, {{37}}, kv});
      add(cases, {5, head_dim, {{70, 5}}, kv});
    }
    // The heads of a cache begin where the rows of the previous head end.
    for (const int64_t shift : {2, 4, 8, 14}) {
      if (kv == DType::f32 && shift % 4 != 0) continue;
      add(cases, {2, 64, {{37}}, kv, 1.0f, shift});
    }
  }
  // Values of another width than the keys', also those of latent attention within the keys.
  for (const DType kv : kCacheTypes) {
    for (const auto& [head_dim, value_dim] : {std::pair{64, 32}, {32, 96}, {192, 128}}) {
      add(cases, {3, head_dim, {{70, 5}, {1, 300}}, kv, 1.0f, 0, {}, value_dim});
    }
    add(cases, {4, 96, {{70, 5}, {1, 300}}, kv, 1.0f, 0, {}, 64, true});
    add(cases, {5, 96, {{70}}, kv, 1.0f, 0, {0, 0, true}, 32, true});
    add(cases, {16, 576, {{37}, {130}}, kv, 1.0f, 0, {}, 512, true});
    add(cases, {16, 576, {{1500}, {127}}, kv, 1.0f, 0, {}, 512, true}).only_fast();
  }
  add(cases, {12, 256, {{37}}});
  add(cases, {12, 256, {{37}}, DType::q8_0});
  add(cases, {16, 2048, {{20}}, DType::f32});  // too much for one block of a GPU
  add(cases, {2, 32, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 125, 126, 127, 128, 129, 131}}});
  add(cases, {5, 72, {{1, 67, 601}}});
  add(cases, {1, 8, {{33000}}}).only_fast();  // more than 64 chunks of 512 rows: chunks grow
  add(cases, {3, 64, {{2000, 1, 513}, {64, 700, 1500}}}).only_fast();
}

/// A step of several tokens of one sequence, each of which sees a row more than the one before, and
/// of a token of another one. `together`: in one call, else in one for each token.
Results run_tokens(const Place& at, const Decode& s, int64_t n_tokens, bool together) {
  const DecodeTensors t(at, s);
  const int64_t n_head_kv = std::ssize(s.n_kv[0]), n_head = n_head_kv * s.n_group;
  std::vector<HeadRows> heads;
  for (int64_t i = 0; i < n_tokens; ++i) {
    for (int64_t h = 0; h < n_head_kv; ++h) {
      heads.push_back(t.heads[h]);
      heads.back().n_kv -= static_cast<int32_t>(n_tokens - 1 - i);
    }
  }
  heads.insert(heads.end(), t.heads.begin() + n_head_kv, t.heads.end());
  const int64_t n = std::ssize(heads) / n_head_kv;
  const DeviceTensor q = at.put(random_tensor({n, n_head, s.head_dim}, 1));
  const DeviceTensor out = at.zeros({n, n_head, s.n_value()});
  const DeviceTensor sinks = at.put(sinks_of(n_head));
  const AttentionVariant variant = s.variant.on(sinks);
  for (int64_t i = 0; i < (together ? 1 : n); ++i) {
    const int64_t begin = together ? 0 : i, end = together ? n : i + 1;
    const auto rows = std::span(heads).subspan(begin * n_head_kv, (end - begin) * n_head_kv);
    ops::attention_decode(at, {q.view().slice(begin, end), rows, s.kv, 0.125f,
                               out.view().slice(begin, end), variant, s.v_in_k});
  }
  return out.host();
}

void add_steps_of_tokens(OpCases& cases) {
  const auto add_step = [&](const Decode& s, int64_t n_tokens, bool is_large) {
    OpCase& added = of_head_dim(
        s.head_dim, cases.emplace_back(
                        fmt::format("{} tokens of {}", n_tokens, s.name()),
                        [=](const Place& at) { return run_tokens(at, s, n_tokens, true); },
                        [=](const Place& at) { return decode_bound(at, s.kv); }));
    if (is_large) added.only_fast();
    // a GPU splits rows among blocks by how many tokens there are
    added.equals([=](const Place& at) { return run_tokens(at, s, n_tokens, at.is_cuda()); });
  };
  for (const DType kv : kCacheTypes) {
    add_step({2, 64, {{40, 9}, {300, 7}}, kv}, 5, false);
    for (const int64_t n_group : {1, 3, 6}) {
      add_step({n_group, 64, {{1030, 520}, {70, 5}}, kv}, 7, true);
      add_step({n_group, 64, {{1026, 3000}, {1500, 600}}, kv}, 8, true);
    }
    add_step({16, 96, {{1100}, {130}}, kv, 1.0f, 0, {}, 64, true}, 4, true);
  }
  add_step({5, 72, {{1300, 640}, {9, 8}}, DType::f16, 1.0f, 0, {0, 3.0f, true}}, 6, true);
}

/// Attention to the rows of each head that are chosen: `k` of them at random, always the last one.
Results run_chosen(const Place& at, const Decode& s, int64_t k) {
  const DecodeTensors t(at, s);
  const int64_t n_head = std::ssize(s.n_kv[0]) * s.n_group, n_heads = std::ssize(t.heads);
  TestTensor numbers({n_heads, k}, DType::i32);
  std::mt19937 random(7);
  for (int64_t h = 0; h < n_heads; ++h) {
    std::vector<int32_t> all(t.heads[h].n_kv - 1);
    std::iota(all.begin(), all.end(), 0);
    auto* const of_head = numbers.view().at<int32_t>(h);
    std::sample(all.begin(), all.end(), of_head, k - 1, random);  // in order
    of_head[k - 1] = t.heads[h].n_kv - 1;
  }
  const DeviceTensor q = at.put(random_tensor({std::ssize(s.n_kv), n_head, s.head_dim}, 1));
  const DeviceTensor out = at.zeros({std::ssize(s.n_kv), n_head, s.n_value()});
  const DeviceTensor chosen = at.put(numbers), sinks = at.put(sinks_of(n_head));
  ops::attention_decode(at, {.q = q,
                             .heads = t.heads,
                             .kv_dtype = s.kv,
                             .scale = 0.125f,
                             .out = out,
                             .variant = s.variant.on(sinks),
                             .v_in_k = s.v_in_k,
                             .chosen = chosen});
  return out.host();
}

void add_chosen_rows(OpCases& cases) {
  const auto add_choice = [&](const Decode& s, int64_t k, bool is_large) {
    OpCase& added = cases.emplace_back(
        fmt::format("{} chosen of {}", k, s.name()),
        [=](const Place& at) { return run_chosen(at, s, k); },
        [=](const Place& at) { return decode_bound(at, s.kv); });
    added.not_on_cuda();  // attends to copies
    if (is_large) added.only_fast();
  };
  for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t k : {1, 3, 64, 69}) {
      add_choice({5, 96, {{70}, {300}}, kv, 1.0f, 0, {0, 0, true}, 32, true}, k, false);
    }
    add_choice({3, 64, {{70, 500}, {90, 80}}, kv}, 67, false);
    add_choice({16, 576, {{1500}, {700}}, kv, 1.0f, 0, {}, 512, true}, 600, true);
  }
}

/// One sequence with `n_head_kv` heads of `n` rows, for which `make` makes keys and values.
template <typename F>
OpCase::Run decode_of(int64_t n_head_kv, int64_t n_group, int32_t n, int64_t head_dim, DType kv,
                      float q_scale, F make) {
  return [=](const Place& at) -> Results {
    std::vector<DeviceTensor> rows;
    std::vector<HeadRows> heads;
    for (int64_t h = 0; h < n_head_kv; ++h) {
      for (const bool is_key : {true, false}) {
        TestTensor values = random_tensor({n, head_dim}, 10 + 2 * h + is_key);
        make(values, h, is_key);
        rows.push_back(at.put(values.to(kv)));
      }
      heads.push_back({rows[2 * h].data(), rows[2 * h + 1].data(), n});
    }
    const std::vector<int64_t> shape = {1, n_head_kv * n_group, head_dim};
    const DeviceTensor q = at.put(random_tensor(shape, 1, DType::f32, q_scale));
    const DeviceTensor out = at.zeros(shape);
    ops::attention_decode(at, {q, heads, kv, 0.125f, out, {}});
    return out.host();
  };
}

}  // namespace

OpCases attention_decode_cases() {
  OpCases cases;
  add_decode_shapes(cases);
  add_steps_of_tokens(cases);
  add_chosen_rows(cases);
  for (const DType kv : kCacheTypes) {
    for (const Variant& variant : kVariants) {
      const Decode s{3, 64, {{1, 700}, {64, 130}}, kv, 3.0f, 0, variant};
      cases.emplace_back(
          s.name(), [=](const Place& at) { return run(at, s); }, Tolerance{1e-4, 5e-4});
      add(cases, {3, 64, {{1, 513}, {64, 2000}}, kv, 3.0f, 0, variant}).only_fast();
    }
    // A score of 4000 has an error of 2e-4 in f32, and of 3e-2 in two parts of 8 bits.
    const Decode extreme{2, 64, {{300, 3}}, kv, 1000.0f};
    cases.emplace_back(
        extreme.name() + " extreme", [=](const Place& at) { return run(at, extreme); },
        [=](const Place& at) -> Bound {
          const bool exact = !at.is_cuda() || kv == DType::f32 || kv == DType::f16;
          return {.each = exact ? Tolerance{2e-3, 2e-3} : Tolerance{5e-2, 5e-2}};
        });
    const auto equal = [](TestTensor& t, int64_t, bool is_key) {
      if (!is_key) std::fill(t.as(), t.as() + t.numel(), 127.0f / 128);
    };
    cases.emplace_back(fmt::format("equal scores give the mean {}", name(kv)),
                       decode_of(1, 1, 500, 32, kv, 0.0f, equal), Tolerance{.abs = 1e-6});
    const auto one_nan = [](TestTensor& t, int64_t h, bool is_key) {
      if (h == 0 && is_key) t.as()[150 * 64 + 3] = NAN;
    };
    cases.emplace_back(fmt::format("NaN stays in its head {}", name(kv)),
                       decode_of(2, 2, 200, 64, kv, 1.0f, one_nan),
                       [=](const Place& at) { return decode_bound(at, kv); });
    if (kv == DType::q8_0) continue;  // has no tiny values
    const auto tiny = [](TestTensor& t, int64_t, bool is_key) {
      for (int64_t i = 0; i < t.numel() && !is_key; ++i) t.as()[i] *= 1e-3f;
    };
    cases.emplace_back(fmt::format("tiny queries and values keep their digits {}", name(kv)),
                       decode_of(1, 2, 100, 64, kv, 1e-6f, tiny), Bound::of_norm(1e-4));
  }
  const auto none = [](const Place& at) -> Results {
    const DeviceTensor q = at.zeros({0, 4, 64}), out = at.zeros({0, 4, 64});
    ops::attention_decode(at, {q, {}, DType::f16, 1.0f, out, {}});
    return out.host();
  };
  cases.emplace_back("no sequences", none, Bound{});
  return cases;
}

}  // namespace snapkv::test
