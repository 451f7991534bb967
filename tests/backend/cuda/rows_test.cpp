// SPDX-License-Identifier: MIT
// Rows of the KV cache on a CUDA device: every bit as ref/ has it.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

constexpr std::array kCacheTypes = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

bool same_bytes(const TestTensor& a, const TestTensor& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0;
}

/// Values of every kind, among them what rounds to 0, to infinity, and what is not finite.
TestTensor awkward_tensor(const std::vector<int64_t>& shape, uint64_t seed) {
  TestTensor x = random_tensor(shape, seed);
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = HUGE_VALF;
  const std::array values = {1e-8f, -1e-8f,  3e-41f,  70000.0f, -1e38f, 6.1e-5f, 0.0f,
                             -0.0f, 65519.f, 65520.f, nan,      -nan,   inf,     -inf};
  const int64_t n = x.numel();
  for (int64_t i = 0; i < n / 96; ++i) {  // a third of all blocks has one
    x.as()[96 * i + i % 32] = values[static_cast<size_t>(i) % values.size()];
  }
  for (int64_t i = 0; i < std::min<int64_t>(n, 32); ++i)
    x.as()[n - 1 - i] *= 1e-7f;  // d rounds to 0
  return x;
}

/// A row of each head at `offset` bytes in memory of its own.
template <typename T = void>
std::vector<T*> pointers(const std::vector<DeviceTensor>& heads, int64_t offset = 0) {
  std::vector<T*> p;
  for (const DeviceTensor& head : heads) {
    p.push_back(reinterpret_cast<T*>(static_cast<char*>(head.data()) + offset));
  }
  return p;
}
std::vector<void*> host_pointers(const std::vector<TestTensor>& heads) {
  std::vector<void*> p;
  for (const TestTensor& head : heads) p.push_back(head.data());
  return p;
}

class CudaRows : public CudaTest {
 protected:
  std::vector<DeviceTensor> on_device(const std::vector<TestTensor>& heads) {
    std::vector<DeviceTensor> d;
    for (const TestTensor& head : heads) d.push_back(device(head));
    return d;
  }
};

TEST_F(CudaRows, StoreRows) {
  for (const DType dtype : kCacheTypes) {
    for (const int64_t d : {32, 64, 128, 5, 66}) {
      if (d % block_size(dtype) != 0) continue;
      for (const int64_t n : {1, 2, 37}) {
        const TestTensor src = awkward_tensor({n, 3, d}, 1);
        std::vector<TestTensor> expected(3, TestTensor({n, d}, dtype));
        ops::store_rows(reference(), src, dtype, host_pointers(expected));
        both_orders([&] {
          const auto heads = on_device(std::vector<TestTensor>(3, TestTensor({n, d}, dtype)));
          ops::store_rows(cuda(), device(src), dtype, pointers(heads));
          for (size_t h = 0; h < 3; ++h) {
            EXPECT_TRUE(same_bytes(heads[h].host(), expected[h]))
                << name(dtype) << " d " << d << " n " << n << " head " << h;
          }
        });
      }
    }
  }
}

// As when a cache has rows already: not aligned to what 4 values take.
TEST_F(CudaRows, StoreRowsBetweenOthers) {
  for (const DType dtype : kCacheTypes) {
    const int64_t d = dtype == DType::q8_0 ? 32 : 6;
    const TestTensor src = awkward_tensor({1, 2, d}, 2);
    std::vector<TestTensor> expected(2, TestTensor({3, d}, dtype));
    std::vector<void*> middle = host_pointers(expected);
    for (void*& p : middle) p = static_cast<char*>(p) + row_bytes(dtype, d);
    ops::store_rows(reference(), src, dtype, middle);
    const auto heads = on_device(std::vector<TestTensor>(2, TestTensor({3, d}, dtype)));
    ops::store_rows(cuda(), device(src), dtype, pointers(heads, row_bytes(dtype, d)));
    for (size_t h = 0; h < 2; ++h) {
      EXPECT_TRUE(same_bytes(heads[h].host(), expected[h])) << name(dtype);
    }
  }
}

// A decode step stores a row further on than the one before.
TEST_F(CudaRows, StoresInSteps) {
  for (const DType dtype : kCacheTypes) {
    const int64_t d = 64;
    std::vector<TestTensor> expected(2, TestTensor({4, d}, dtype));
    TestTensor pos({4}, DType::i32);
    const auto heads = on_device(expected);
    const DeviceTensor device_pos = device(pos), src = device(TestTensor({1, 2, d}));
    for (int32_t i = 0; i < 4; ++i) {
      const TestTensor row = awkward_tensor({1, 2, d}, static_cast<uint64_t>(i));
      std::vector<void*> at = host_pointers(expected);
      for (void*& p : at) p = static_cast<char*>(p) + i * row_bytes(dtype, d);
      ops::store_rows(reference(), row, dtype, at);
      cuda().upload(src.data(), row.data(), static_cast<size_t>(row.bytes()));
      cuda().begin_step(static_cast<uint64_t>(dtype));
      ops::store_rows(cuda(), src, dtype, pointers(heads, i * row_bytes(dtype, d)));
      ops::store_positions(cuda(), std::array{1000 + i},
                           std::array{static_cast<int32_t*>(device_pos.data()) + i});
      cuda().end_step();
    }
    for (size_t h = 0; h < 2; ++h) {
      EXPECT_TRUE(same_bytes(heads[h].host(), expected[h])) << name(dtype);
    }
    for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(device_pos.host().as<int32_t>()[i], 1000 + i);
  }
}

TEST_F(CudaRows, StorePositions) {
  for (const int64_t n : {1, 3, 1000}) {
    std::vector<int32_t> pos;
    for (int64_t i = 0; i < n; ++i) pos.push_back(static_cast<int32_t>(7 * i + 1'000'000));
    const auto heads = on_device(std::vector<TestTensor>(3, TestTensor({n}, DType::i32)));
    ops::store_positions(cuda(), pos, pointers<int32_t>(heads));
    for (const DeviceTensor& head : heads) {
      EXPECT_EQ(std::memcmp(head.host().data(), pos.data(), pos.size() * 4), 0) << n;
    }
  }
}

// More than one launch takes.
TEST_F(CudaRows, StoreManyPositions) {
  const int64_t n = (1 << 18) + 5;
  std::vector<int32_t> pos;
  for (int64_t i = 0; i < n; ++i) pos.push_back(static_cast<int32_t>(i));
  const auto heads = on_device({TestTensor({n}, DType::i32)});
  ops::store_positions(cuda(), pos, pointers<int32_t>(heads));
  EXPECT_EQ(std::memcmp(heads[0].host().data(), pos.data(), pos.size() * 4), 0);
}

TestTensor random_rows(const std::vector<int32_t>& n, int64_t n_columns, int32_t n_rows) {
  TestTensor rows({static_cast<int64_t>(n.size()), n_columns}, DType::i32);
  for (int64_t i = 0; i < rows.numel(); ++i) {
    rows.as<int32_t>()[i] = static_cast<int32_t>((i * 7919 + 13) % n_rows);
  }
  return rows;
}

TEST_F(CudaRows, GatherRows) {
  const std::vector<int32_t> n = {3, 0, 41};
  const TestTensor rows = random_rows(n, 45, 50);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32}) {
    for (const int64_t d : {1, 3, 4, 10, 64, 128}) {
      const TestTensor src = awkward_tensor({3, 50, d}, 3).to(dtype);
      std::vector<TestTensor> expected(3, TestTensor({45, d}, dtype));
      ops::gather_rows(reference(), src, rows, n, host_pointers(expected));
      const auto heads = on_device(std::vector<TestTensor>(3, TestTensor({45, d}, dtype)));
      ops::gather_rows(cuda(), device(src), device(rows), n, pointers(heads));
      for (size_t h = 0; h < 3; ++h) {
        EXPECT_TRUE(same_bytes(heads[h].host(), expected[h])) << name(dtype) << " d " << d;
      }
    }
  }
}

// Memory laid out [n_tokens, n_head_kv, d], of which some values of each head are taken.
TEST_F(CudaRows, GatherRowsAtAnyDistance) {
  const std::vector<int32_t> n = {9, 20};
  const TestTensor rows = random_rows(n, 20, 30);
  for (const int64_t d : {64, 62, 63}) {
    const TestTensor memory = random_tensor({30, 2, 64}, 4, DType::bf16);
    const auto view = [&](Tensor t) {
      t.shape = {2, 30, d};
      std::swap(t.stride[0], t.stride[1]);
      return t;
    };
    std::vector<TestTensor> expected(2, TestTensor({20, d}, DType::bf16));
    ops::gather_rows(reference(), view(memory), rows, n, host_pointers(expected));
    const auto heads = on_device(std::vector<TestTensor>(2, TestTensor({20, d}, DType::bf16)));
    const DeviceTensor src = device(memory);
    ops::gather_rows(cuda(), view(src), device(rows), n, pointers(heads));
    for (size_t h = 0; h < 2; ++h) EXPECT_TRUE(same_bytes(heads[h].host(), expected[h])) << d;
  }
}

TEST_F(CudaRows, ConvertRows) {
  const std::vector<int32_t> n = {0, 5, 18};
  const TestTensor rows = random_rows(n, 18, 20);
  for (const DType from : kCacheTypes) {
    for (const DType to : kCacheTypes) {
      for (const int64_t d : {32, 96, 7}) {
        if (d % block_size(from) != 0 || d % block_size(to) != 0) continue;
        std::vector<TestTensor> src;
        for (uint64_t h = 0; h < 3; ++h) {
          // What q8_0 makes of values that are not finite is one thing, NaN, in every type.
          src.push_back(from == DType::q8_0 ? random_tensor({20, d}, h, from)
                                            : awkward_tensor({20, d}, h).to(from));
        }
        const auto device_src = on_device(src);
        const DeviceTensor device_rows = device(rows);
        for (const bool all : {false, true}) {
          std::vector<TestTensor> expected(3, TestTensor({18, d}, to));
          const auto heads = on_device(expected);
          const std::vector<void*> host_src = host_pointers(src), src_at = pointers(device_src);
          const std::vector<void*> host_dst = host_pointers(expected), dst_at = pointers(heads);
          RowConversion c{.src = std::span(const_cast<const void* const*>(host_src.data()), 3),
                          .src_dtype = from,
                          .head_dim = d,
                          .rows = all ? Tensor() : rows.view(),
                          .n = n,
                          .dst_dtype = to,
                          .dst = host_dst};
          ops::convert_rows(reference(), c);
          c.src = std::span(const_cast<const void* const*>(src_at.data()), 3);
          c.rows = all ? Tensor() : device_rows.view();
          c.dst = dst_at;
          ops::convert_rows(cuda(), c);
          for (size_t h = 0; h < 3; ++h) {
            EXPECT_TRUE(same_bytes(heads[h].host(), expected[h]))
                << name(from) << " to " << name(to) << " d " << d << " all " << all;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace snapkv::test
