// SPDX-License-Identifier: MIT
// LayerState: every kind of state keeps, forgets, undoes, saves and loads what it should, seen
// through the interface alone.
#include "cache/layer_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/buffer.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

constexpr int64_t kHeads = 2, kHeadDim = 4;
constexpr int32_t kWindow = 4;
constexpr StateShape kFull = {.n_head = kHeads, .head_dim_k = kHeadDim, .head_dim_v = kHeadDim};
constexpr StateShape kWideValues = {
    .n_head = kHeads, .head_dim_k = kHeadDim, .head_dim_v = 3 * kHeadDim};
constexpr StateShape kWindowed = {
    .n_head = kHeads, .head_dim_k = kHeadDim, .head_dim_v = kHeadDim, .window = kWindow};

constexpr StateShape kChunked = {
    .n_head = kHeads, .head_dim_k = kHeadDim, .head_dim_v = kHeadDim, .chunk = kWindow};

constexpr StateShape kValuesInKeys = {
    .n_head = kHeads, .head_dim_k = kHeadDim + 2, .head_dim_v = kHeadDim, .v_in_k = true};

std::vector<int32_t> range(int32_t begin, int32_t end) {
  std::vector<int32_t> all(end - begin);
  std::iota(all.begin(), all.end(), begin);
  return all;
}

class LayerStateTest : public testing::TestWithParam<StateShape> {
 protected:
  std::unique_ptr<Backend> backend_ = Backend::make({.device = "reference"});
  KvMeter meter_;

  /// Whether it keeps the last tokens, among which no policy chooses.
  bool keeps_last() const { return GetParam().window > 0 || GetParam().chunk > 0; }
  std::unique_ptr<RowState> make(DType type = DType::f32) {
    return std::unique_ptr<RowState>(&make_state(GetParam(), meter_, type).release()->rows());
  }
  /// Positions of what the layer sees after tokens [0, end).
  std::vector<int32_t> seen(int32_t end) const {
    if (GetParam().chunk > 0) return range((end - 1) / kWindow * kWindow, end);
    return range(keeps_last() ? std::max(0, end - kWindow) : 0, end);
  }

  /// Appends tokens [begin, end), whose keys are their positions.
  void append(RowState& state, int32_t begin, int32_t end) {
    const std::vector<int32_t> pos = range(begin, end);
    std::vector<float> values;
    for (const int32_t p : pos) {
      values.insert(values.end(), kHeads * GetParam().head_dim_v, static_cast<float>(p));
    }
    std::vector<float> keys;
    for (const int32_t p : pos) {
      keys.insert(keys.end(), kHeads * GetParam().head_dim_k, static_cast<float>(p));
    }
    const int64_t n = end - begin;
    const Tensor k(keys.data(), DType::f32, {n, kHeads, GetParam().head_dim_k});
    const Tensor v(values.data(), DType::f32, {n, kHeads, GetParam().head_dim_v});
    state.reserve(*backend_, end - begin, 3);
    state.append(*backend_, k, v, pos);
  }

  void expect_rows(const RowState& state, const std::vector<int32_t>& positions) {
    std::vector<HeadRows> heads;
    state.visible_rows(heads);
    ASSERT_EQ(std::ssize(heads), kHeads);
    for (int h = 0; h < kHeads; ++h) {
      EXPECT_EQ(state.positions(*backend_, h), positions);
      ASSERT_EQ(heads[h].n_kv, std::ssize(positions));
      for (size_t i = 0; i < positions.size(); ++i) {
        const StateShape& shape = GetParam();
        const int64_t v_step = shape.v_in_k ? shape.head_dim_k : shape.head_dim_v;
        EXPECT_EQ(static_cast<const float*>(heads[h].k)[i * shape.head_dim_k], positions[i]);
        EXPECT_EQ(static_cast<const float*>(heads[h].v)[i * v_step + 3], positions[i]);
      }
    }
    EXPECT_EQ(state.bytes_used(), GetParam().bytes(DType::f32, std::ssize(positions)));
  }

  std::vector<std::byte> saved(const LayerState& state) {
    std::vector<std::byte> bytes;
    state.save(*backend_, [&](std::span<const std::byte> part) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    });
    return bytes;
  }
};

TEST_P(LayerStateTest, SeesWhatItsKindSees) {
  const auto state = make();
  for (int32_t t = 0; t < 20; ++t) {
    append(*state, t, t + 1);
    expect_rows(*state, seen(t + 1));
  }
  EXPECT_EQ(meter_.now, state->bytes());
}

TEST_P(LayerStateTest, KeepsWhatIsSelectedOrItsWindow) {
  const auto whole = make_full_state(GetParam(), meter_, DType::f32);
  append(*whole, 0, 9);
  expect_rows(*whole, range(0, 9));
  std::vector<int32_t> rows = {1, 5, 8, /* head 1 */ 1, 5, 8};
  Selection selection;
  selection.n_kept = {3, 3};
  selection.rows = Tensor(rows.data(), DType::i32, {kHeads, 3});
  const auto kept = make();
  kept->keep(*backend_, *whole, selection, 2);
  expect_rows(*kept, keeps_last() ? seen(9) : std::vector<int32_t>{1, 5, 8});
  append(*kept, 9, 11);
  if (keeps_last()) expect_rows(*kept, seen(11));
}

TEST_P(LayerStateTest, TakesTheMemoryOfAllRows) {
  auto whole = make_full_state(GetParam(), meter_, DType::f32);
  append(*whole, 0, 2);
  whole->snapshot();
  append(*whole, 2, 4);
  const std::byte* const memory = whole->memory().data();
  const size_t bytes = whole->bytes();
  EXPECT_FALSE(make(DType::f16)->take(*whole, 100));
  EXPECT_FALSE(make()->take(*whole, 3)) << "it has room for more";
  const auto state = make();
  ASSERT_TRUE(state->take(*whole, 100));
  EXPECT_EQ(state->memory().data(), memory);
  EXPECT_EQ(meter_.now, bytes);
  EXPECT_FALSE(whole->reuse(GetParam(), 1));
  expect_rows(*state, range(0, 4));
  state->roll_back();
  expect_rows(*state, range(0, 2));
}

TEST_P(LayerStateTest, RollsBackToTheSnapshot) {
  const auto state = make();
  append(*state, 0, 6);
  for (int i = 0; i < 3; ++i) {
    state->reserve(*backend_, 1, 1);
    state->snapshot();
    append(*state, 6, 7);
    state->roll_back();
    expect_rows(*state, seen(6));
  }
  append(*state, 6, 7);
  expect_rows(*state, seen(7));
}

// A step of several tokens, each of which sees what it would have seen alone.
TEST_P(LayerStateTest, ShowsEachTokenOfAStepItsRows) {
  for (int32_t before = 1; before < 10; ++before) {
    for (int32_t n = 1; n <= 6; ++n) {
      const auto state = make();
      append(*state, 0, before);
      state->reserve(*backend_, n, n);
      state->snapshot();
      append(*state, before, before + n);
      for (int32_t later = 0; later < n; ++later) {
        const std::vector<int32_t> positions = seen(before + n - later);
        std::vector<HeadRows> heads;
        state->visible_rows(heads, later);
        ASSERT_EQ(heads[1].n_kv, std::ssize(positions)) << before << " " << n << " " << later;
        EXPECT_EQ(*static_cast<const float*>(heads[1].k), positions[0]);
      }
      for (int32_t kept = 0; kept <= n; kept += 2) {
        ASSERT_TRUE(state->keep_first(kept));
        expect_rows(*state, seen(before + kept));
        state->roll_back();
        append(*state, before, before + n);
      }
    }
  }
}

// A state that had no room for more rows has moved when it is rolled back.
TEST_P(LayerStateTest, RollsBackFullStatesThatHaveGrown) {
  const auto whole = make_full_state(GetParam(), meter_, DType::f32);
  append(*whole, 0, 5);
  whole->snapshot();
  append(*whole, 5, 50);
  whole->roll_back();
  expect_rows(*whole, range(0, 5));
}

TEST_P(LayerStateTest, ComesBackFromAFile) {
  const auto state = make();
  append(*state, 0, 7);
  const std::vector<std::byte> bytes = saved(*state);
  EXPECT_EQ(bytes.size(), state->saved_bytes());
  EXPECT_LE(bytes.size(), state->most_saved_bytes(7));
  const auto loaded = make();
  loaded->load(*backend_, {bytes, 7, "layer 3"}, 5);
  expect_rows(*loaded, seen(7));
  append(*loaded, 7, 8);
  expect_rows(*loaded, seen(8));
  const Buffer aligned = Buffer::host(bytes.size(), "a saved state");
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto borrowed = make();
  borrowed->borrow({{static_cast<const std::byte*>(aligned.data()), bytes.size()}, 7, "layer 3"});
  expect_rows(*borrowed, seen(7));

  const auto refused = [&](std::span<const std::byte> other, int64_t n, DType type,
                           std::string_view why) {
    const auto fresh = make(type);
    expect_error(ErrorCode::kBadModel, {"layer 3", why}, [&] {
      fresh->load(*backend_, {other, n, "layer 3"}, 5);
    });
    EXPECT_EQ(fresh->bytes(), 0u);
  };
  refused(bytes, 7, DType::f16, "type or sizes");
  refused(bytes, 8, DType::f32, "last position is 6, expected 7");
  refused(bytes, 2, DType::f32, "rows, expected 1 to 2");
  refused(std::span(bytes).first(10), 7, DType::f32, "10 bytes");
  refused(std::span(bytes).first(bytes.size() - 1), 7, DType::f32, "bytes, expected");
  std::vector<std::byte> other = bytes;
  std::memset(other.data() + other.size() - 8, 0, 4);  // the position before the last
  refused(other, 7, DType::f32, "position 0 comes after");
}

INSTANTIATE_TEST_SUITE_P(Kinds, LayerStateTest,
                         testing::Values(kFull, kWideValues, kWindowed, kChunked, kValuesInKeys),
                         [](const auto& kind) {
                           if (kind.param.window > 0) return "Window";
                           if (kind.param.chunk > 0) return "Chunk";
                           if (kind.param.v_in_k) return "ValuesInKeys";
                           return kind.param == kFull ? "Rows" : "WideValues";
                         });

}  // namespace
}  // namespace snapkv::test
