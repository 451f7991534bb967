// SPDX-License-Identifier: MIT
// Cases for matrix products of few rows and of many.
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

bool is_plain(DType t) { return block_size(t) == 1; }

// Sums of n_in products of normal(0, 1) values have a magnitude of sqrt(n_in). f32 sums in another
// order than the reference's f64 sums differ by about that times a few 1e-7. If a vector has one
// lane, each of n_in partial sums of magnitude sqrt(i) is rounded by up to 2^-24: a random walk of
// 0.25e-7 * n_in, of which five times is allowed.
Bound f32_sums(const Place& at, int64_t n_in) {
  const double n = static_cast<double>(n_in);
  return {.each = {2e-6 * std::sqrt(n) + 1e-6 + (at.is_cuda() ? 0 : 1.2e-7 * n), 2e-6}};
}

/// The rounding that project() may do. With bf16, activations for block types are rounded to 8
/// bits: d / sqrt(12) with d = max / 127 and a maximum of about 2.1 sigma in 32 values, which gives
/// 0.5%. The cpu rounds activations for bf16 weights to 8 significant bits: 2^-8 / sqrt(3) / 1.4 =
/// 0.17%. With few outputs, results scatter around that.
OpCase::BoundAt rounding(DType weight, int64_t n_in) {
  return [=](const Place& at) -> Bound {
    if (at.compute == DType::f32) return f32_sums(at, n_in);
    if (!is_plain(weight)) return Bound::of_norm(0.012);
    return weight == DType::bf16 && !at.is_cuda() ? Bound::of_norm(0.006) : f32_sums(at, n_in);
  };
}

struct Product {
  DType type;
  int64_t n, n_out, n_in;
  bool bias = false, accumulate = false;

  std::string name() const {
    return fmt::format("{} {} x [{}, {}]{}{}", snapkv::name(type), n, n_out, n_in,
                       bias ? " + bias" : "", accumulate ? ", added" : "");
  }
};

/// The tensors of a product on a backend.
struct Operands {
  Operands(const Place& at, const Product& p, uint64_t seed = 2)
      : w(at.put(random_tensor({p.n_out, p.n_in}, seed, p.type))),
        bias(at.put(random_tensor({p.n_out}, seed + 1))),
        out(at.put(random_tensor({p.n, p.n_out}, seed + 2))),
        projection{.w = w,
                   .bias = p.bias ? bias.view() : Tensor(),
                   .out = out,
                   .accumulate = p.accumulate} {}
  DeviceTensor w, bias, out;
  Projection projection;
};

Results project(const Place& at, const Product& p, const TestTensor& x) {
  const Operands operands(at, p);
  const DeviceTensor in = at.put(x);
  ops::project(at, in, std::array{operands.projection});
  return operands.out.host();
}

/// The same, row by row.
Results project_rows(const Place& at, const Product& p, const TestTensor& x) {
  // The tensor cores, which multiply more than 4 rows of bf16 weights, add in another order.
  if (at.is_cuda() && p.type == DType::bf16 && p.n > 4) return project(at, p, x);
  const Operands operands(at, p);
  const DeviceTensor in = at.put(x);
  for (int64_t t = 0; t < p.n; ++t) {
    Projection one = operands.projection;
    one.out = one.out.slice(t, t + 1);
    ops::project(at, in.view().slice(t, t + 1), std::array{one});
  }
  return operands.out.host();
}

OpCase& add(OpCases& cases, const Product& p) {
  const auto x = [=] { return random_tensor({p.n, p.n_in}, 1); };
  return cases
      .emplace_back(
          p.name(), [=](const Place& at) { return project(at, p, x()); }, rounding(p.type, p.n_in))
      .equals([=](const Place& at) { return project_rows(at, p, x()); });
}

int64_t columns(DType type, int64_t n_in) {
  return (n_in + block_size(type) - 1) / block_size(type) * block_size(type);
}

/// Activations that rounding to 8 bits does not change, with d a power of two: the 8-bit kernels
/// must give exact products.
TestTensor whole_activations(int64_t n, int64_t n_in) {
  TestTensor x({n, n_in});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as()[i] = i % 32 == i / 32 % 32 ? 127.0f : static_cast<float>(i * 37 % 255 - 127);
    x.as()[i] *= 1.0f / 64;
  }
  return x;
}

void add_type(OpCases& cases, DType type) {
  // Every number of rows that has its own kernel, and one more and one less; of types that share
  // their kernels with others but for the lookup of levels, some.
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33}) {
    if (has_codebook(type) && n != 1 && n != 4 && n != 9 && n != 33) continue;
    add(cases, {type, n, 5, columns(type, 288), n % 2 == 1, n % 3 == 0});
    add(cases, {type, n, 37, columns(type, 1536), n % 2 == 0, n % 3 != 0});
  }
  for (const bool bias : {false, true}) {
    for (const bool accumulate : {false, true}) {
      if (has_codebook(type) && bias == accumulate) continue;
      for (const int64_t n : {1, 2, 7, 13, 33}) {
        if (has_codebook(type) && n != 2 && n != 13) continue;
        for (const auto& [n_out, n_in] : {std::pair{1, 32}, {7, 64}, {67, 288}, {201, 2080}}) {
          add(cases, {type, n, n_out, columns(type, n_in), bias, accumulate}).only_fast();
        }
      }
    }
  }
  add(cases, {type, 1, 131, 512, true, true});  // with this many rows, a GPU uses other kernels
  for (const int64_t n : {1, 2, 6}) add(cases, {type, n, 5, 11008});
  for (const int64_t n : {1, 2, 3, 7, 13}) {
    const Product p{type, n, 6, 1024};
    cases.emplace_back(
        p.name() + ", whole activations",
        [=](const Place& at) { return project(at, p, whole_activations(n, p.n_in)); },
        [=](const Place& at) { return f32_sums(at, p.n_in); });
  }
  // Rows that begin where no 16-byte access is possible: views into a larger matrix.
  const Product p{type, 3, 9, is_plain(type) ? 257 : columns(type, 288)};
  const auto x = [=] { return random_tensor({p.n, p.n_in}, 1); };
  cases.emplace_back(
      p.name() + " at an odd address",
      [=](const Place& at) -> Results {
        const int64_t offset = type == DType::f32 ? 4 : 2;  // bytes
        const TestTensor w = random_tensor({p.n_out, p.n_in}, 2, type);
        TestTensor memory({w.bytes() / 2 + 2}, DType::bf16);
        std::memcpy(memory.as<char>() + offset, w.data(), w.bytes());
        const DeviceTensor there = at.put(memory), in = at.put(x());
        const DeviceTensor out = at.zeros({p.n, p.n_out});
        Tensor view = w;
        view.data = static_cast<char*>(there.data()) + offset;
        ops::project(at, in, std::array{Projection{.w = view, .bias = {}, .out = out}});
        return out.host();
      },
      rounding(type, p.n_in));
}

/// Activations with rows of zeros, with a NaN and with an infinity: the results are zeros, NaN and
/// not finite (written as -1 here).
Results special_activations(const Place& at, DType type) {
  const int64_t n = 6, n_in = 512;  // more rows than some kernels take
  TestTensor x({n, n_in});
  x.as()[n_in + 300] = std::numeric_limits<float>::quiet_NaN();
  x.as()[2 * n_in + 300] = HUGE_VALF;
  TestTensor out = project(at, {type, n, 4, n_in}, x)[0];
  for (int64_t i = 8; i < 12; ++i) out.as()[i] = std::isfinite(out.as()[i]) ? 1.0f : -1.0f;
  return out;
}

/// Weights in which one row has a scale of NaN and another of infinity; -1 for what is not finite.
/// Kernels that read the next row's beginning behind a row's end must not add it.
Results special_scales(const Place& at, DType type, int64_t n, int64_t n_in) {
  constexpr int64_t kRows = 4;
  TestTensor w = random_tensor({kRows, n_in}, 3, type);
  visit_weight_type(type, [&](auto t) {
    if constexpr (block_size(t.dtype) > 1 && kHasF16Scale<t.dtype>) {
      const uint16_t kBits[] = {0x7e00, 0x7c00};  // NaN, infinity
      for (int64_t row : {1, 2}) {
        auto* block = reinterpret_cast<char*>(w.data()) + row * row_bytes(type, n_in);
        std::memcpy(block + kScaleAt<t.dtype>, &kBits[row - 1], sizeof(uint16_t));
      }
    }
  });
  const DeviceTensor in = at.put(random_tensor({n, n_in}, 4)), weights = at.put(w),
                     out = at.zeros({n, kRows});
  ops::project(at, in, std::array{Projection{.w = weights, .bias = {}, .out = out}});
  TestTensor result = out.host();
  for (int64_t i = 0; i < n * kRows; ++i) {
    result.as()[i] = std::isfinite(result.as()[i]) ? 1.0f : -1.0f;
  }
  return result;
}

/// Activations that need all 24 bits of f32.
Results unrounded_activations(const Place& at) {
  TestTensor x({8, 256});
  for (int64_t t = 0; t < 8; ++t) {
    x.as()[t * 256 + 31 * t] = 1.0f + static_cast<float>(t) * 0x1p-23f;
  }
  const DeviceTensor in = at.put(x), out = at.zeros({8, 8});
  const DeviceTensor w = at.put(TestTensor({8, 256}, std::vector<float>(8 * 256, 1), DType::bf16));
  ops::project(at, in, std::array{Projection{.w = w, .bias = {}, .out = out}});
  return out.host();
}

}  // namespace

OpCases project_cases() {
  OpCases cases;
  for (const DType type : kWeightTypes) {
    add_type(cases, type);
    cases.emplace_back(
        fmt::format("{} NaN and infinity show", name(type)),
        [=](const Place& at) { return special_activations(at, type); }, Bound{});
    constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 512}, {6, 512}, {1, 288}, {1, 416}};
    for (const auto& [n, n_in] : kShapes) {
      if (n_in % block_size(type) != 0) continue;
      cases.emplace_back(
          fmt::format("{} scales of NaN and infinity show, {} rows, {} columns", name(type), n, n_in),
          [=, rows = n, columns = n_in](const Place& at) {
            return special_scales(at, type, rows, columns);
          },
          Bound{});
    }
  }
  cases.emplace_back("products of bf16 round no activation", unrounded_activations,
                     [](const Place& at) -> Bound {
                       return {.each = {0, at.compute == DType::f32 || at.is_cuda() ? 0 : 0x1p-8}};
                     });
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {  // any number of columns
    for (const int64_t n_in : {1, 15, 31, 33, 40, 100, 255, 300}) {
      for (const int64_t n : {1, 3, 6}) add(cases, {type, n, 11, n_in, true, true});
    }
  }
  // One call with several matrices, of one type or several, must equal one call for each.
  for (const int64_t n : {1, 3, 6}) {
    const auto run = [=](const Place& at, bool together) -> Results {
      const DeviceTensor x = at.put(random_tensor({n, 512}, 1));
      std::vector<Operands> operands;
      std::vector<Projection> projections;
      for (size_t i = 0; i < 6 + kWeightTypes.size(); ++i) {
        const DType type = i < 6 ? DType::q8_0 : kWeightTypes[i - 6];
        const int64_t n_out = 16 + 5 * static_cast<int64_t>(i % 4);
        const Product p{type, n, n_out, 512, i % 2 == 0, i % 3 == 0};
        operands.emplace_back(at, p, 10 * i);
        projections.push_back(operands.back().projection);
      }
      if (together) ops::project(at, x, projections);
      for (const Projection& p : projections) {
        if (!together) ops::project(at, x, std::array{p});
      }
      Results results;
      for (const Operands& o : operands) results.push_back(o.out.host());
      return results;
    };
    cases
        .emplace_back(
            fmt::format("several types, {} rows", n),
            [=](const Place& at) { return run(at, true); },
            [](const Place& at) {
              return at.compute == DType::f32 ? f32_sums(at, 512) : Bound::of_norm(0.012);
            })
        .equals([=](const Place& at) { return run(at, false); });
  }
  return cases;
}

// Each projection multiplies rows of its own, as project() would.
OpCases project_each_cases() {
  OpCases cases;
  const auto add_each = [&](DType type, const std::vector<int64_t>& rows, int64_t n_out,
                            int64_t n_in) {
    const auto make = [=](const Place& at, uint64_t i) {
      return Operands(at, {type, rows[i], n_out, n_in, i % 2 == 1, i % 3 == 2}, 10 * i + 2);
    };
    const auto x = [=] {
      int64_t n = 0;
      for (const int64_t some : rows) n += some;
      return random_tensor({n, n_in}, 1);
    };
    const auto results = [](const std::vector<Operands>& all) {
      Results out;
      for (const Operands& o : all) out.push_back(o.out.host());
      return out;
    };
    cases
        .emplace_back(
            fmt::format("{} rows x [{}, {}] {}", fmt::join(rows, ", "), n_out, n_in, name(type)),
            [=](const Place& at) {
              std::vector<Operands> all;
              std::vector<Projection> projections;
              for (size_t i = 0; i < rows.size(); ++i) {
                all.push_back(make(at, i));
                projections.push_back(all.back().projection);
              }
              const DeviceTensor in = at.put(x());
              ops::project_each(at, in, projections);
              return results(all);
            },
            rounding(type, n_in))
        .equals([=](const Place& at) {
          const DeviceTensor in = at.put(x());
          std::vector<Operands> all;
          for (int64_t begin = 0; const int64_t n : rows) {
            all.push_back(make(at, all.size()));
            ops::project(at, in.view().slice(begin, begin + n), std::array{all.back().projection});
            begin += n;
          }
          return results(all);
        });
  };
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    add_each(type, {1, 1, 1, 1}, 48, 96);
    add_each(type, {3, 3}, 37, 64);
    add_each(type, {2, 0, 7}, 5, 128);
  }
  add_each(DType::q4_k, {1, 1}, 130, 512);
  return cases;
}

/// The bound for sums of products of normal(0, 1) values of which one factor is rounded to 8 bits,
/// as in rounding(), with weights that the reference has in the compute type: six times what is
/// expected.
Bound rounded_sums(int64_t n_in, double of_result) {
  return {.each = {0.03 * std::sqrt(static_cast<double>(n_in)), of_result}};
}

/// Rows in which every byte of levels is `byte` and every scale is 1.
TestTensor equal_levels(DType type, int byte, int64_t n_out, int64_t n_in) {
  TestTensor w({n_out, n_in}, type);
  std::memset(w.data(), byte, w.bytes());
  visit_weight_type(type, [&](auto t) {
    constexpr DType T = t.dtype;
    constexpr uint16_t kOne = 0x3c00;
    char* blocks = reinterpret_cast<char*>(w.data());
    for (int64_t at = 0; at < static_cast<int64_t>(w.bytes()); at += block_bytes(T)) {
      if constexpr (T == DType::mxfp4) {
        blocks[at] = 127;
      } else if constexpr (T == DType::nvfp4) {
        std::memset(blocks + at, 0x40, BlockNVFP4::kScales);  // 2, of doubled levels
      } else if constexpr (T == DType::iq1_m) {
        auto& block = *reinterpret_cast<BlockIQ1_M*>(blocks + at);
        for (int i = 0; i < 4; ++i) {
          block.scales[i] = static_cast<uint16_t>((block.scales[i] & 0xfff) |
                                                  (kOne >> (4 * i) & 15) << 12);
        }
      } else if constexpr (block_size(T) > 1) {
        std::memcpy(blocks + at + kScaleAt<T>, &kOne, sizeof(kOne));
        if constexpr (kHasMin<T>) std::memcpy(blocks + at + kMinAt<T>, &kOne, sizeof(kOne));
      }
    }
  });
  return w;
}

/// Products of such rows with activations of 127 and of -127: the largest sums that kernels meet.
Results largest_products(const Place& at, DType type, int byte) {
  const int64_t n_out = 5, n_in = 512;
  TestTensor x({2, n_in});
  for (int64_t i = 0; i < n_in; ++i) x.as()[i] = 127.0f, x.as()[n_in + i] = -127.0f;
  const DeviceTensor weight = at.put(equal_levels(type, byte, n_out, n_in));
  const DeviceTensor in = at.put_compute(x), out = at.zeros({2, n_out});
  PackedWeight packed;
  ops::pack(at, weight, packed);
  ops::project_packed(at, in, packed, {}, out, false);
  return out.host();
}

// The layout of a packed weight is the backend's own business. The product with the identity
// extracts its values, rounded only to the compute type, or not at all for products in 8 bits.
OpCases pack_cases() {
  OpCases cases;
  for (const DType type : kWeightTypes) {
    for (const int64_t n_out : {1, 7, 130}) {
      const int64_t n_in = columns(type, n_out == 7 && is_plain(type) ? 37 : 64);
      cases.emplace_back(
          fmt::format("{} [{}, {}]", name(type), n_out, n_in),
          [=](const Place& at) -> Results {
            TestTensor identity({n_in, n_in});
            for (int64_t i = 0; i < n_in; ++i) identity.as()[i * n_in + i] = 1.0f;
            const TestTensor w = random_tensor({n_out, n_in}, 2, type);
            const DeviceTensor weight = at.put(at.is_ref() ? w.to(at.compute) : w);
            const DeviceTensor x = at.put_compute(identity), out = at.zeros({n_in, n_out});
            PackedWeight packed;
            ops::pack(at, at.put(random_tensor({n_out + 3, n_in}, 9)), packed);  // reused
            ops::pack(at, weight, packed);
            ops::project_packed(at, x, packed, {}, out, false);
            return out.host();
          },
          [=](const Place& at) -> Bound {
            if (!at.rounds_to_bytes(type)) return {};
            return {.each = {1e-6, 1e-6 + (at.compute == DType::bf16 ? 0x1p-8 : 0)}};
          });
    }
  }
  return cases;
}

// Compared with ref on operands rounded to the compute type, so that only the order of f32 sums
// differs. The library adds all products of a sum one after another: each of n_in partial sums of
// magnitude sqrt(i) is rounded by up to 2^-24, a random walk of 0.25e-7 * n_in; five times that is
// allowed.
OpCases project_packed_cases() {
  OpCases cases;
  const auto add_packed = [&](const Product& p, bool to_compute, bool at_use = false) -> OpCase& {
    return cases.emplace_back(
        p.name() + (to_compute ? " to the compute type" : "") + (at_use ? " packed at use" : ""),
        [=](const Place& at) -> Results {
          const TestTensor w = random_tensor({p.n_out, p.n_in}, 2, p.type);
          const DeviceTensor weight = at.put(at.is_ref() ? w.to(at.compute) : w);
          const DeviceTensor x = at.put_compute(random_tensor({p.n, p.n_in}, 1));
          const DeviceTensor bias = at.put(random_tensor({p.n_out}, 3));
          const TestTensor start = random_tensor({p.n, p.n_out}, 4);
          const DeviceTensor out =
              to_compute ? at.zeros({p.n, p.n_out}, at.backend.compute_dtype()) : at.put(start);
          PackWorkspace workspace;
          PackedWeight packed;
          ops::pack(at, at.put(random_tensor({p.n_out + 3, p.n_in}, 9)), packed);  // reused
          if (at_use) packed.workspace = &workspace;
          ops::pack(at, weight, packed);
          ops::project_packed(at, x, packed, p.bias ? bias.view() : Tensor(), out, p.accumulate);
          return out.host();
        },
        [=](const Place& at) -> Bound {
          const bool rounds = to_compute && at.compute == DType::bf16;
          if (at.rounds_to_bytes(p.type)) return rounded_sums(p.n_in, rounds ? 0x1p-8 : 0);
          return {.each = {1.5e-7 * static_cast<double>(p.n_in) + 1e-6, rounds ? 0x1p-8 : 2e-6}};
        });
  };
  for (const DType type : kWeightTypes) {
    for (const auto& [n_out, n_values] :
         {std::pair{130, 544}, {7, 64}, {1, 32}, {64, 256}, {193, 1056}, {48, 96}}) {
      const int64_t n_in = columns(type, n_values);
      for (const int64_t n : {0, 1, 7, 33, 100}) {
        if (has_codebook(type) && n != 7 && n != 33) continue;
        add_packed({type, n, n_out, n_in, n % 2 == 1, false}, false).only_fast();
        add_packed({type, n, n_out, n_in, false, true}, false).only_fast();
        add_packed({type, n, n_out, n_in, false, false}, true).only_fast();
      }
    }
    for (const int64_t n_out : {130, 512}) {
      add_packed({type, 33, n_out, columns(type, 1056), true, false}, false, true).only_fast();
    }
    add_packed({type, 5, 19, columns(type, 288), true, false}, false);
    add_packed({type, 3, 7, columns(type, 64), true, true}, false);
    add_packed({type, 3, 7, columns(type, 64), false, false}, true);
  }
  // Activations that rounding to 8 bits does not change, in one chunk of many rows. Each row must
  // give the same as alone, and NaN and infinity must show.
  for (const DType type : kWeightTypes) {
    if (is_plain(type)) continue;
    // The largest levels of nibbles and of more bits, of mxfp4 and q8_0, and the smallest of q8_0.
    for (const int byte : {0xff, 0x77, 0x7f, 0x80}) {
      cases.emplace_back(
          fmt::format("{} levels of {:x}", name(type), byte),
          [=](const Place& at) { return largest_products(at, type, byte); },
          [=](const Place& at) -> Bound {
            // Otherwise, levels with more bits than bf16 has are rounded, and sums may cancel.
            const bool exact = at.compute == DType::f32 || at.rounds_to_bytes(type);
            return {.each = {exact ? 1.0 : 1e-3 * 512 * 127 * 255, exact ? 1e-5 : 0x1p-8}};
          });
    }
    for (const auto& [n, n_out, n_in] : {std::array{3, 6, 1024}, {40, 65, 2080}, {1100, 70, 256}}) {
      if (n > 1000 && type != DType::q8_0 && type != DType::q6_k) continue;
      const Product p{type, n, n_out, columns(type, n_in)};
      const auto run = [=](const Place& at, bool row_by_row) -> Results {
        const TestTensor w = random_tensor({p.n_out, p.n_in}, 2, p.type);
        const DeviceTensor weight = at.put(at.is_ref() ? w.to(at.compute) : w);
        const DeviceTensor x = at.put_compute(whole_activations(p.n, p.n_in));
        const DeviceTensor out = at.zeros({p.n, p.n_out});
        PackedWeight packed;
        ops::pack(at, weight, packed);
        const int64_t rows = row_by_row ? 1 : p.n;
        for (int64_t t = 0; t < p.n; t += rows) {
          ops::project_packed(at, x.view().slice(t, t + rows), packed, {},
                              out.view().slice(t, t + rows), false);
        }
        return out.host();
      };
      cases
          .emplace_back(
              p.name() + ", whole activations", [=](const Place& at) { return run(at, false); },
              [=](const Place& at) -> Bound {
                const double n_sums = static_cast<double>(p.n_in);
                // The reference's weights are rounded to bf16.
                const double rounding = at.rounds_to_bytes(p.type) && at.compute == DType::bf16
                                            ? 0x1p-8 * 3 * std::sqrt(n_sums)
                                            : 0;
                return {.each = {4e-6 * std::sqrt(n_sums) + 3e-7 * n_sums + rounding, 2e-6}};
              })
          .equals([=](const Place& at) { return run(at, at.rounds_to_bytes(p.type)); })
          .only_fast();
    }
  }
  for (const int64_t n_in : {1, 15, 33, 300}) {  // plain types allow any number of columns
    add_packed({DType::f16, 9, 70, n_in, false, false}, false);
  }
  return cases;
}

}  // namespace snapkv::test
