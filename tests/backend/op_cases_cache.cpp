// SPDX-License-Identifier: MIT
// Cases for rows of the KV cache: storing, gathering and converting them. Every bit must equal
// ref's.
#include <cmath>
#include <limits>

#include "tests/backend/op_cases.h"

namespace snapkv::test {
namespace {

constexpr DType kCacheTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

/// Values of every kind, including halves between two values of a type, values that round to 0 or
/// to infinity, and values that are not finite.
TestTensor awkward_tensor(const std::vector<int64_t>& shape, uint64_t seed) {
  TestTensor x = random_tensor(shape, seed, DType::f32, 10.0f);
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = HUGE_VALF;
  const float values[] = {1e-8f,
                          -1e-8f,
                          3e-41f,
                          70000.0f,
                          -1e38f,
                          6.1e-5f,
                          0.0f,
                          -0.0f,
                          65519.9f,
                          65520.0f,
                          nan,
                          -nan,
                          inf,
                          -inf,
                          1.0f + 0x1p-8f,
                          1.0f + 0x3p-8f,
                          1.0f + 0x1p-11f,
                          1.0f + 0x3p-11f,
                          0x1p-25f};
  const int64_t n = x.numel();
  for (int64_t i = 0; i < n / 96; ++i) {  // one in a third of all blocks
    x.as()[96 * i + i % 32] = values[i % std::size(values)];
  }
  for (int64_t i = 0; i < std::min<int64_t>(n, 32); ++i) x.as()[n - 1 - i] *= 1e-7f;  // d = 0
  return x;
}

std::vector<DeviceTensor> on_device(const Place& at, const std::vector<TestTensor>& heads) {
  std::vector<DeviceTensor> tensors;
  for (const TestTensor& head : heads) tensors.push_back(at.put(head));
  return tensors;
}
/// Each head's memory, starting `offset` bytes into it.
template <typename T = void>
std::vector<T*> pointers(const std::vector<DeviceTensor>& heads, int64_t offset = 0) {
  std::vector<T*> p;
  for (const DeviceTensor& head : heads) {
    p.push_back(reinterpret_cast<T*>(static_cast<char*>(head.data()) + offset));
  }
  return p;
}

/// Rows in no particular order, each more than once.
TestTensor some_rows(int64_t n_head, int64_t n_columns, int32_t n_rows) {
  TestTensor rows({n_head, n_columns}, DType::i32);
  for (int64_t i = 0; i < rows.numel(); ++i) {
    rows.as<int32_t>()[i] = static_cast<int32_t>((i * 7919 + 13) % n_rows);
  }
  return rows;
}

}  // namespace

OpCases store_rows_cases() {
  OpCases cases;
  for (const DType dtype : kCacheTypes) {
    const auto add = [&](const std::string& what, int64_t n, int64_t d, int64_t before) {
      // `before`: rows that the cache already has, which make the new ones unaligned.
      cases.emplace_back(
          fmt::format("{} {} x {}{}", name(dtype), n, d, what),
          [=](const Place& at) -> Results {
            const DeviceTensor src = at.put(awkward_tensor({n, 3, d}, 1));
            const auto heads =
                on_device(at, std::vector<TestTensor>(3, TestTensor({before + n + 1, d}, dtype)));
            ops::store_rows(at, src, dtype, pointers(heads, before * row_bytes(dtype, d)));
            return heads;
          },
          Bound::same_bits());
    };
    for (const int64_t n : {0, 1, 2, 5, 37, 300}) {
      for (const int64_t d : {5, 8, 32, 40, 64, 66, 128}) {
        if (d % block_size(dtype) == 0) add("", n, d, 0);
      }
    }
    add(" after another", 1, dtype == DType::q8_0 ? 32 : 6, 1);
    // Zeros; values too small for a scale; one large value; levels, and halves between them.
    cases.emplace_back(
        fmt::format("{} blocks of their own", name(dtype)),
        [=](const Place& at) -> Results {
          TestTensor x({1, 1, 128});
          std::fill(x.as() + 32, x.as() + 64, 1e-7f);
          x.as()[64 + 5] = -254.0f;
          for (int i = 0; i < 32; ++i) x.as()[96 + i] = static_cast<float>(i) - 3.5f;
          x.as()[96 + 31] = 127.0f;
          const DeviceTensor src = at.put(x);
          const auto heads = on_device(at, {TestTensor({1, 128}, dtype)});
          ops::store_rows(at, src, dtype, pointers(heads));
          return heads;
        },
        Bound::same_bits());
  }
  return cases;
}

OpCases store_positions_cases() {
  OpCases cases;
  for (const int64_t n : {0, 1, 3, 1000, (1 << 18) + 5}) {  // the last needs several launches
    cases.emplace_back(
        fmt::format("{}", n),
        [=](const Place& at) -> Results {
          std::vector<int32_t> pos;
          for (int64_t i = 0; i < n; ++i) pos.push_back(static_cast<int32_t>(7 * i + 1'000'000));
          const auto heads =
              on_device(at, std::vector<TestTensor>(3, TestTensor({n + 1}, DType::i32)));
          ops::store_positions(at, pos, pointers<int32_t>(heads));
          return heads;
        },
        Bound::same_bits());
  }
  return cases;
}

OpCases gather_rows_cases() {
  OpCases cases;
  struct Shape {
    int64_t capacity, columns;
    std::vector<int32_t> n;
    bool large = false;
  };
  for (const Shape& s : {Shape{50, 45, {3, 0, 41}}, {900, 700, {700, 3}, true}}) {
    const int64_t n_head = std::ssize(s.n);
    const auto new_heads = [=](const Place& at, int64_t d, DType dtype) {
      return on_device(at, std::vector<TestTensor>(n_head, TestTensor({s.columns, d}, dtype)));
    };
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
      for (const int64_t d : {1, 3, 4, 10, 64, 80, 128}) {
        const auto run = [=](const Place& at, int64_t gap) -> Results {
          const TestTensor values = random_tensor({n_head, s.capacity, d}, 3, dtype, 1000.0f);
          TestTensor wide({n_head, s.capacity, d + gap}, dtype);
          for (int64_t i = 0; i < n_head * s.capacity; ++i) {
            std::memcpy(wide.as<char>() + i * row_bytes(dtype, d + gap),
                        values.as<char>() + i * row_bytes(dtype, d), row_bytes(dtype, d));
          }
          const DeviceTensor src = at.put(wide);
          const DeviceTensor rows =
              at.put(some_rows(n_head, s.columns, static_cast<int32_t>(s.capacity)));
          const auto heads = new_heads(at, d, dtype);
          Tensor view = src;
          view.shape[2] = d;
          ops::gather_rows(at, view, rows, s.n, pointers(heads));
          return heads;
        };
        OpCase& c = cases.emplace_back(
            fmt::format("{} of {} x {} {}", s.columns, s.capacity, d, name(dtype)),
            [=](const Place& at) { return run(at, 0); }, Bound::same_bits());
        c.equals([=](const Place& at) { return run(at, 3); });  // rows with a gap between them
        if (s.large) c.only_fast();
      }
    }
    // Memory of layout [n_tokens, n_head_kv, d], from which some values of each head are taken.
    for (const int64_t d : {64, 62, 63}) {
      cases.emplace_back(
          fmt::format("{} of {} x {}, heads side by side", s.columns, s.capacity, d),
          [=](const Place& at) -> Results {
            const DeviceTensor src =
                at.put(random_tensor({s.capacity, n_head, 64}, 4, DType::bf16));
            const DeviceTensor rows =
                at.put(some_rows(n_head, s.columns, static_cast<int32_t>(s.capacity)));
            const auto heads = new_heads(at, d, DType::bf16);
            Tensor view = src;
            view.shape = {n_head, s.capacity, d};
            std::swap(view.stride[0], view.stride[1]);
            ops::gather_rows(at, view, rows, s.n, pointers(heads));
            return heads;
          },
          Bound::same_bits());
    }
  }
  return cases;
}

OpCases convert_rows_cases() {
  OpCases cases;
  const auto add = [&](DType from, DType to, int64_t d, const std::vector<int32_t>& n,
                       int64_t capacity, bool listed) {
    return &cases.emplace_back(
        fmt::format("{} to {}, {} x {}{}", name(from), name(to), capacity, d,
                    listed ? ", listed" : ""),
        [=](const Place& at) -> Results {
          std::vector<TestTensor> values;
          for (uint64_t h = 0; h < n.size(); ++h) {
            // q8_0 turns values that are not finite into a single thing, NaN, in every type.
            values.push_back(from == DType::q8_0 ? random_tensor({capacity, d}, h, from)
                                                 : awkward_tensor({capacity, d}, h).to(from));
          }
          const auto src = on_device(at, values);
          const int64_t columns = *std::max_element(n.begin(), n.end()) + 1;
          const DeviceTensor rows =
              at.put(some_rows(std::ssize(n), columns, static_cast<int32_t>(capacity)));
          const auto heads =
              on_device(at, std::vector<TestTensor>(n.size(), TestTensor({columns, d}, to)));
          const std::vector<const void*> in = pointers<const void>(src);
          const std::vector<void*> out = pointers(heads);
          ops::convert_rows(at, {.src = in,
                                 .src_dtype = from,
                                 .head_dim = d,
                                 .rows = listed ? rows.view() : Tensor(),
                                 .n = n,
                                 .dst_dtype = to,
                                 .dst = out});
          return heads;
        },
        Bound::same_bits());
  };
  for (const DType from : kCacheTypes) {
    for (const DType to : kCacheTypes) {
      for (const bool listed : {false, true}) {
        for (const int64_t d : {7, 32, 96}) {
          if (d % block_size(from) != 0 || d % block_size(to) != 0) continue;
          add(from, to, d, {0, 5, 18}, 20, listed);
        }
        add(from, to, 96, {700, 3}, 900, listed)->only_fast();
      }
    }
  }
  return cases;
}

}  // namespace snapkv::test
