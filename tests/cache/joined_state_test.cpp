// SPDX-License-Identifier: MIT
// JoinedState: rows and a recurrent state of one layer, which are undone, saved and loaded
// together.
#include <gtest/gtest.h>

#include <cstring>

#include "base/buffer.h"
#include "cache/layer_state.h"
#include "cache/recurrent_state.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace joined_state_tests {

constexpr StateShape kJoined = {
    .n_head = 1, .head_dim_k = 4, .head_dim_v = 4, .window = 0, .n_recurrent = 5};

class JoinedStateTest : public testing::TestWithParam<int64_t> {
 protected:
  std::unique_ptr<Backend> backend_ = Backend::make({.device = "reference"});
  KvMeter meter_;

  StateShape shape() const {
    StateShape shape = kJoined;
    shape.window = GetParam();
    return shape;
  }
  std::unique_ptr<LayerState> make() { return make_state(shape(), meter_, DType::f32); }

  /// Appends a token: a row, and 1 to every value of the recurrent state.
  void see(LayerState& state, int32_t token) {
    state.reserve(*backend_, 1, 1);
    std::vector<float> values(4, static_cast<float>(token));
    const Tensor row(values.data(), DType::f32, {1, 1, 4});
    state.rows().append(*backend_, row, row, {&token, 1});
    RecurrentState& recurrent = *state.as_recurrent();
    for (int64_t i = 0; i < recurrent.n_values(); ++i) {
      static_cast<float*>(recurrent.next())[i] =
          static_cast<const float*>(recurrent.now())[i] + 1.0f;
    }
    recurrent.advance(1);
  }
  std::unique_ptr<LayerState> after(int32_t n) {
    auto state = make();
    for (int32_t token = 0; token < n; ++token) see(*state, token);
    return state;
  }
  void expect_seen(const LayerState& state, int32_t n) {
    const int64_t n_rows = GetParam() > 0 ? std::min<int64_t>(n, GetParam()) : n;
    ASSERT_EQ(state.rows().n_rows(), std::vector<int32_t>{static_cast<int32_t>(n_rows)});
    EXPECT_EQ(state.rows().positions(*backend_, 0).back(), n - 1);
    const RecurrentState& recurrent = *state.as_recurrent();
    EXPECT_EQ(recurrent.n_tokens(), n);
    EXPECT_EQ(static_cast<const float*>(recurrent.now())[4], static_cast<float>(n));
    EXPECT_EQ(state.bytes_used(), shape().bytes(DType::f32, n_rows));
  }
  std::vector<std::byte> saved(const LayerState& state) {
    std::vector<std::byte> bytes;
    state.save(*backend_, [&](std::span<const std::byte> part) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    });
    return bytes;
  }
};

TEST_P(JoinedStateTest, BothPartsSeeEachToken) {
  const auto state = after(9);
  expect_seen(*state, 9);
  EXPECT_EQ(state->kind(), "joined");
  EXPECT_EQ(meter_.now, state->bytes());
  EXPECT_EQ(shape().bytes_per_token(DType::f32), 4u * 4 + 4 * 4 + 4);
}

TEST_P(JoinedStateTest, BothPartsAreRolledBack) {
  const auto state = after(6);
  state->reserve(*backend_, 1, 1);
  state->snapshot();
  see(*state, 6);
  EXPECT_FALSE(state->keep_first(0)) << "the recurrent part cannot";
  expect_seen(*state, 7);
  state->roll_back();
  expect_seen(*state, 6);
}

TEST_P(JoinedStateTest, IsCutWhereBothPartsCan) {
  const auto state = after(6);
  EXPECT_EQ(state->last_cut(6), 6);
  EXPECT_EQ(state->last_cut(5), 0);
}

TEST_P(JoinedStateTest, RowsAreTakenAndTheRecurrentPartStays) {
  const auto state = after(6);
  auto whole = make_full_state(shape(), meter_, DType::f32);
  whole->reserve(*backend_, 3, 3);
  std::vector<float> values(12);
  const Tensor rows(values.data(), DType::f32, {3, 1, 4});
  whole->append(*backend_, rows, rows, std::vector<int32_t>{0, 1, 2});
  state->rows().clear();
  EXPECT_EQ(state->bytes(), 2u * 5 * sizeof(float));
  ASSERT_TRUE(state->rows().take(*whole, kMostRows));
  EXPECT_EQ(state->rows().n_rows(), std::vector<int32_t>{3});
  EXPECT_EQ(state->as_recurrent()->n_tokens(), 6);
  const auto other = make();
  other->as_recurrent()->take(*state->as_recurrent());
  EXPECT_EQ(other->as_recurrent()->n_tokens(), 6);
  EXPECT_EQ(state->as_recurrent()->bytes(), 0u);
}

TEST_P(JoinedStateTest, ComesBackFromAFile) {
  const auto state = after(7);
  const std::vector<std::byte> bytes = saved(*state);
  EXPECT_EQ(bytes.size(), state->saved_bytes());
  EXPECT_LE(bytes.size(), state->most_saved_bytes(7));
  const auto loaded = make();
  loaded->load(*backend_, {bytes, 7, "layer 3"}, 5);
  expect_seen(*loaded, 7);
  see(*loaded, 7);
  expect_seen(*loaded, 8);
  const Buffer aligned = Buffer::host(bytes.size(), "a saved state");
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const auto borrowed = make();
  borrowed->borrow({{static_cast<const std::byte*>(aligned.data()), bytes.size()}, 7, "layer 3"});
  EXPECT_EQ(borrowed->last_cut(100), 7);
  EXPECT_EQ(borrowed->rows().positions(*backend_, 0).back(), 6);

  const auto refused = [&](const std::vector<std::byte>& other, std::string_view why) {
    const auto fresh = make();
    expect_error(ErrorCode::kBadModel, {"layer 3", why}, [&] {
      fresh->load(*backend_, {other, 7, "layer 3"}, 5);
    });
  };
  refused({bytes.begin(), bytes.begin() + 10}, "10 bytes");
  refused({bytes.begin(), bytes.end() - 1}, "bytes, expected");
  std::vector<std::byte> other = bytes;
  for (const int64_t n : {int64_t{-1}, std::ssize(bytes), INT64_MAX, int64_t{8}}) {
    std::memcpy(other.data(), &n, sizeof n);
    refused(other, "bytes");
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, JoinedStateTest, testing::Values(0, 4));

}  // namespace joined_state_tests
}  // namespace snapkv::test
