// SPDX-License-Identifier: MIT
// KvLayer: rows of heads of different lengths are appended, gathered, grown and cut without mixing.
#include "cache/kv_layer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/backend/op_test_util.h"

namespace snapkv::test {
namespace {

constexpr int64_t kHeadDim = 4;
constexpr StateShape kShape = {.n_head = 2, .head_dim_k = kHeadDim, .head_dim_v = kHeadDim};
constexpr int64_t kBlockDim = 64;  // for layers of a type with blocks of 32 values
constexpr StateShape kBlockShape = {.n_head = 2, .head_dim_k = kBlockDim, .head_dim_v = kBlockDim};

/// Row `slot` of head `head`, with values that tell where they came from.
float value(int32_t pos, int head, int64_t d, bool is_value) {
  return static_cast<float>(pos * 100 + head * 10 + d) + (is_value ? 0.5f : 0.0f);
}

class KvLayerTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = Backend::make({.device = "reference"});
  KvMeter meter_;

  /// Appends tokens with positions first ... first + n - 1.
  void append(KvLayer& layer, int32_t first, int32_t n) {
    const int64_t heads = layer.n_head_kv();
    std::vector<float> k, v;
    std::vector<int32_t> pos;
    for (int32_t t = first; t < first + n; ++t) {
      pos.push_back(t);
      for (int h = 0; h < heads; ++h) {
        for (int64_t d = 0; d < kHeadDim; ++d) {
          k.push_back(value(t, h, d, false));
          v.push_back(value(t, h, d, true));
        }
      }
    }
    layer.append(*backend_, Tensor(k.data(), DType::f32, {n, heads, kHeadDim}),
                 Tensor(v.data(), DType::f32, {n, heads, kHeadDim}), pos);
  }

  void expect_rows(const KvLayer& layer, int head, const std::vector<int32_t>& positions) {
    ASSERT_EQ(layer.n_kv(head), static_cast<int32_t>(positions.size()));
    for (size_t i = 0; i < positions.size(); ++i) {
      const int32_t slot = static_cast<int32_t>(i);
      EXPECT_EQ(*layer.pos(head, slot), positions[i]);
      for (int64_t d = 0; d < kHeadDim; ++d) {
        EXPECT_EQ(static_cast<float*>(layer.k(head, slot))[d], value(positions[i], head, d, false));
        EXPECT_EQ(static_cast<float*>(layer.v(head, slot))[d], value(positions[i], head, d, true));
      }
    }
  }

  KvLayer make(std::vector<int32_t> capacity) {
    return KvLayer(*backend_, meter_, kShape, DType::f32, capacity);
  }
  KvLayer keep(const KvLayer& all, const Selection& selection, int32_t reserve, DType type) {
    KvLayer kept(meter_, kShape, type);
    kept.keep(*backend_, all, selection, reserve);
    return kept;
  }
};

TEST_F(KvLayerTest, AppendsToEveryHead) {
  KvLayer layer = make({6, 6});
  append(layer, 0, 3);
  append(layer, 3, 2);
  expect_rows(layer, 0, {0, 1, 2, 3, 4});
  expect_rows(layer, 1, {0, 1, 2, 3, 4});
  EXPECT_EQ(layer.rows(1).n_kv, 5);
}

TEST_F(KvLayerTest, SlidesOverALongText) {
  KvLayer layer = make({5, 5});
  for (int32_t t = 0; t < 40; ++t) {
    layer.reserve(*backend_, 1, 3);
    append(layer, t, 1);
    layer.keep_last(4);
    std::vector<int32_t> last;
    for (int32_t i = std::max(0, t - 3); i <= t; ++i) last.push_back(i);
    expect_rows(layer, 0, last);
    expect_rows(layer, 1, last);
    EXPECT_EQ(layer.bytes_used(), 2 * last.size() * KvLayer::row_bytes(DType::f32, kShape));
  }
  EXPECT_LE(layer.bytes(), 2 * (4 + 3) * KvLayer::row_bytes(DType::f32, kShape));
  KvLayer copy = make({9, 9});  // a further turn
  copy.append(*backend_, layer);
  append(copy, 40, 2);
  expect_rows(copy, 1, {36, 37, 38, 39, 40, 41});
}

TEST_F(KvLayerTest, GathersDifferentCountsPerHeadAndGrows) {
  KvLayer scratch = make({8, 8});
  append(scratch, 0, 8);
  Selection selection;
  selection.n_kept = {2, 4};
  std::vector<int32_t> rows = {1, 7, 0, 0, /* head 1 */ 0, 2, 5, 6};
  selection.rows = Tensor(rows.data(), DType::i32, {2, 4});
  KvLayer kept = keep(scratch, selection, 1, DType::f32);
  expect_rows(kept, 0, {1, 7});
  expect_rows(kept, 1, {0, 2, 5, 6});
  append(kept, 8, 1);
  kept.reserve(*backend_, 1, 2);  // both heads are full
  EXPECT_EQ(kept.capacity(0), 5);
  EXPECT_EQ(kept.capacity(1), 7);
  append(kept, 9, 1);
  expect_rows(kept, 0, {1, 7, 8, 9});
  expect_rows(kept, 1, {0, 2, 5, 6, 8, 9});
  KvLayer again = make({8, 8});
  again.append(*backend_, kept);
  expect_rows(again, 1, {0, 2, 5, 6, 8, 9});
  again.roll_back();  // there was no snapshot
  expect_rows(again, 0, {});
}

TEST_F(KvLayerTest, KeepsAllOnRequest) {
  KvLayer scratch = make({3, 3});
  append(scratch, 0, 3);
  Selection all;
  all.keep_all = true;
  const KvLayer kept = keep(scratch, all, 2, DType::f32);
  expect_rows(kept, 0, {0, 1, 2});
  EXPECT_EQ(kept.capacity(1), 5);
}

TEST_F(KvLayerTest, CountsBytesExactlyOnce) {
  const size_t row = 2 * kHeadDim * sizeof(float) + sizeof(int32_t);
  {
    KvLayer a = make({10, 5});
    EXPECT_EQ(a.bytes(), 15 * row);
    EXPECT_EQ(meter_.now, 15 * row);
    KvLayer b = std::move(a);
    KvLayer c = make({1, 1});
    EXPECT_EQ(meter_.now, 17 * row);
    c = std::move(b);
    EXPECT_EQ(meter_.now, 15 * row);
    append(c, 0, 2);
    EXPECT_EQ(c.bytes_used(), 4 * row);
  }
  EXPECT_EQ(meter_.now, 0u);
  EXPECT_EQ(meter_.peak, 17 * row);
}

class KvLayerQ8Test : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = Backend::make({.device = "cpu", .n_threads = 2});
  KvMeter meter_;

  KvLayer make(DType dtype, std::vector<int32_t> capacity) {
    return KvLayer(*backend_, meter_, kBlockShape, dtype, capacity);
  }
  KvLayer keep(const KvLayer& all, const Selection& selection, int32_t reserve, DType type) {
    KvLayer kept(meter_, kBlockShape, type);
    kept.keep(*backend_, all, selection, reserve);
    return kept;
  }

  /// Appends tokens with positions first ... first + n - 1 whose values differ everywhere.
  void append(KvLayer& layer, int32_t first, int32_t n) {
    const int64_t heads = layer.n_head_kv();
    const std::vector<float> k = test::random_values(n * heads * kBlockDim, 10u + first);
    const std::vector<float> v = test::random_values(n * heads * kBlockDim, 20u + first);
    std::vector<int32_t> pos;
    for (int32_t t = first; t < first + n; ++t) pos.push_back(t);
    const auto tensor = [&](const std::vector<float>& x) {
      return Tensor(const_cast<float*>(x.data()), DType::f32, {n, heads, kBlockDim});
    };
    layer.append(*backend_, tensor(k), tensor(v), pos);
  }

  /// Expects row `slot` of `actual` to be row `from` of `expected` up to rounding to 8 bits: half a
  /// level, which is 1/127 of the block's largest value (below 6 here), and f16's rounding of the
  /// level.
  void expect_row(const KvLayer& actual, const KvLayer& expected, int head, int32_t slot,
                  int32_t from) {
    EXPECT_EQ(*actual.pos(head, slot), *expected.pos(head, from));
    const auto values = [&](const KvLayer& layer, const void* row) {
      return test::to_f32_values(row, layer.dtype(), kBlockDim);
    };
    const test::Tolerance tolerance{0.5 * 6 / 127, 2e-3};
    EXPECT_TRUE(test::all_close(values(actual, actual.k(head, slot)),
                                values(expected, expected.k(head, from)), tolerance));
    EXPECT_TRUE(test::all_close(values(actual, actual.v(head, slot)),
                                values(expected, expected.v(head, from)), tolerance));
  }
};

TEST_F(KvLayerQ8Test, GathersIntoBlocksAndGrows) {
  KvLayer scratch = make(DType::f16, {9, 9});
  append(scratch, 0, 8);
  Selection selection;
  selection.n_kept = {2, 4};
  std::vector<int32_t> rows = {1, 7, 0, 0, /* head 1 */ 0, 2, 5, 6};
  selection.rows = Tensor(rows.data(), DType::i32, {2, 4});
  KvLayer kept = keep(scratch, selection, 1, DType::q8_0);
  EXPECT_EQ(kept.dtype(), DType::q8_0);
  EXPECT_EQ(kept.bytes_used(), 6u * (2 * 2 * 34 + 4));  // K and V of 2 blocks, and the position
  append(kept, 8, 1);
  append(scratch, 8, 1);  // the same token
  kept.reserve(*backend_, 1, 2);
  EXPECT_EQ(kept.n_rows(), (std::vector<int32_t>{3, 5}));
  const std::vector<std::vector<int32_t>> expected = {{1, 7, 8}, {0, 2, 5, 6, 8}};
  for (int h = 0; h < 2; ++h) {
    const auto& from = expected[static_cast<size_t>(h)];
    for (size_t i = 0; i < from.size(); ++i) {
      expect_row(kept, scratch, h, static_cast<int32_t>(i), from[i]);
    }
  }
}

TEST_F(KvLayerQ8Test, KeepsAllAndReturnsToAScratchLayer) {
  KvLayer scratch = make(DType::f16, {5, 5});
  append(scratch, 0, 5);
  Selection all;
  all.keep_all = true;
  const KvLayer kept = keep(scratch, all, 3, DType::q8_0);
  EXPECT_EQ(kept.capacity(0), 8);
  KvLayer again = make(DType::f16, {7, 7});
  append(again, 100, 1);
  again.append(*backend_, kept);  // after the existing row
  EXPECT_EQ(again.n_kv(1), 6);
  for (int h = 0; h < 2; ++h) {
    for (int32_t i = 0; i < 5; ++i) {
      expect_row(kept, scratch, h, i, i);
      expect_row(again, scratch, h, i + 1, i);
    }
  }
  // Levels survive the conversion through f16: only the scale may be rounded once more.
  again.roll_back();
  again.append(*backend_, kept);
  const KvLayer twice = keep(again, all, 0, DType::q8_0);
  for (int32_t i = 0; i < 5; ++i) {
    const auto* a = static_cast<const BlockQ8_0*>(kept.k(1, i));
    const auto* b = static_cast<const BlockQ8_0*>(twice.k(1, i));
    for (int block = 0; block < 2; ++block) {
      EXPECT_EQ(0, std::memcmp(a[block].qs, b[block].qs, sizeof(a[block].qs)));
      EXPECT_NEAR(to_f32(b[block].d), to_f32(a[block].d), to_f32(a[block].d) * 1e-3);
    }
  }
}

TEST_F(KvLayerQ8Test, GathersBlocksAsTheyAre) {
  KvLayer from = make(DType::q8_0, {9, 6});  // heads of their own
  append(from, 0, 6);
  Selection selection;
  selection.n_kept = {2, 3};
  std::vector<int32_t> rows = {1, 5, 0, /* head 1 */ 0, 2, 3};
  selection.rows = Tensor(rows.data(), DType::i32, {2, 3});
  const KvLayer kept = keep(from, selection, 4, DType::q8_0);
  const size_t bytes = 2 * sizeof(BlockQ8_0);
  for (int h = 0; h < 2; ++h) {
    ASSERT_EQ(kept.n_kv(h), selection.n_kept[static_cast<size_t>(h)]);
    for (int32_t i = 0; i < kept.n_kv(h); ++i) {
      const int32_t row = rows[static_cast<size_t>(3 * h + i)];
      EXPECT_EQ(*kept.pos(h, i), row);
      EXPECT_EQ(0, std::memcmp(kept.k(h, i), from.k(h, row), bytes));
      EXPECT_EQ(0, std::memcmp(kept.v(h, i), from.v(h, row), bytes));
    }
  }
  EXPECT_FALSE(from.has_views());
  EXPECT_TRUE(make(DType::f16, {3, 3}).has_views());
  EXPECT_FALSE(make(DType::f16, {3, 4}).has_views());
}

}  // namespace
}  // namespace snapkv::test
