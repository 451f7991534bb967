// SPDX-License-Identifier: MIT
// RecurrentState: steps and their undoing, marks, and files.
#include "cache/recurrent_state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/buffer.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

constexpr StateShape kConv = {.n_recurrent = 12};

class RecurrentStateTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = Backend::make({.device = "reference"});
  KvMeter meter_;

  /// A state that has seen n tokens, one after another, with marks after some of them.
  std::unique_ptr<RecurrentState> make(int64_t n, const std::vector<int64_t>& marks = {}) {
    auto state = std::make_unique<RecurrentState>(meter_, kConv);
    state->reserve(*backend_, 1, 1);
    while (state->n_tokens() < n) {
      see(*state);
      for (const int64_t mark : marks) {
        if (mark == state->n_tokens()) {
          std::memcpy(state->add_mark(*backend_, mark), state->now(), state->mark_bytes());
        }
      }
    }
    return state;
  }
  /// A token adds 1 to every value, so these tell how many were seen.
  static void see(RecurrentState& state) {
    for (int64_t i = 0; i < state.n_values(); ++i) {
      static_cast<float*>(state.next())[i] = static_cast<const float*>(state.now())[i] + 1.0f;
    }
    state.advance(1);
  }
  static void expect_seen(const RecurrentState& state, int64_t n) {
    EXPECT_EQ(state.n_tokens(), n);
    for (int64_t i = 0; i < state.n_values(); ++i) {
      EXPECT_EQ(static_cast<const float*>(state.now())[i], static_cast<float>(n));
    }
  }
  std::vector<std::byte> saved(const RecurrentState& state) {
    std::vector<std::byte> bytes;
    state.save(*backend_, [&](std::span<const std::byte> part) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    });
    return bytes;
  }
};

TEST_F(RecurrentStateTest, HasTheSameSizeAfterAnyNumberOfTokens) {
  const auto state = make_state(kConv, meter_, DType::f16);
  ASSERT_NE(state->as_recurrent(), nullptr);
  EXPECT_EQ(state->as_rows(), nullptr);
  state->reserve(*backend_, 1000, 1000);
  EXPECT_EQ(state->bytes(), kConv.bytes(DType::f16, 1000));
  EXPECT_EQ(state->bytes(), meter_.now);
  EXPECT_EQ(kConv.bytes_per_token(DType::f16), 0u);
  expect_seen(*state->as_recurrent(), 0);
}

TEST_F(RecurrentStateTest, UndoesAStep) {
  const auto state = make(5);
  for (int i = 0; i < 3; ++i) {
    state->snapshot();
    see(*state);
    expect_seen(*state, 6);
    state->roll_back();
    expect_seen(*state, 5);
  }
}

TEST_F(RecurrentStateTest, CanBeCutAtMarksOnly) {
  const auto state = make(9, {2, 6});
  EXPECT_EQ(state->last_cut(1), 0);
  EXPECT_EQ(state->last_cut(2), 2);
  EXPECT_EQ(state->last_cut(5), 2);
  EXPECT_EQ(state->last_cut(8), 6);
  EXPECT_EQ(state->last_cut(100), 9);
  for (const int64_t n : {0, 2, 6, 9}) {
    RecurrentState other(meter_, kConv);
    other.restore(*backend_, *state, n);
    expect_seen(other, n);
    see(other);
    expect_seen(other, n + 1);
  }
}

TEST_F(RecurrentStateTest, SharesMarks) {
  auto state = make(9, {2, 6});
  RecurrentState some(meter_, kConv);
  some.share_mark(*backend_, *state, 6);
  EXPECT_EQ(some.marks(), std::vector<int64_t>{6});
  EXPECT_EQ(some.bytes(), 0u);
  EXPECT_EQ(some.mark_memory()[0], state->mark_memory()[1]);
  state.reset();
  RecurrentState other(meter_, kConv);
  other.restore(*backend_, some, 6);
  expect_seen(other, 6);
}

TEST_F(RecurrentStateTest, CountsTheBytesOfMarks) {
  {
    const auto state = make(4, {3});
    EXPECT_EQ(meter_.now, state->bytes() + state->mark_bytes());
  }
  EXPECT_EQ(meter_.now, 0u);
}

TEST_F(RecurrentStateTest, ComesBackFromAFile) {
  const auto state = make(9, {2, 6});
  const std::vector<std::byte> bytes = saved(*state);
  EXPECT_EQ(bytes.size(), state->saved_bytes());
  EXPECT_LE(bytes.size(), state->most_saved_bytes(9));
  RecurrentState loaded(meter_, kConv);
  loaded.load(*backend_, {bytes, 9, "layer 3"}, 5);
  expect_seen(loaded, 9);
  const Buffer aligned = Buffer::host(bytes.size(), "a saved state");
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  RecurrentState borrowed(meter_, kConv);
  borrowed.borrow({{static_cast<const std::byte*>(aligned.data()), bytes.size()}, 9, "layer 3"});
  EXPECT_EQ(borrowed.marks(), (std::vector<int64_t>{2, 6, 9}));
  RecurrentState again(meter_, kConv);
  again.restore(*backend_, borrowed, 6);
  expect_seen(again, 6);

  const auto refused = [&](std::span<const std::byte> other, int64_t n, std::string_view why) {
    RecurrentState fresh(meter_, kConv);
    expect_error(ErrorCode::kBadModel, {"layer 3", why}, [&] {
      fresh.load(*backend_, {other, n, "layer 3"}, 5);
    });
    EXPECT_EQ(fresh.bytes(), 0u);
  };
  refused(bytes, 8, "after 9 tokens of 8");
  refused(bytes, 10, "after 9 tokens, expected 10");
  refused(std::span(bytes).first(10), 9, "10 bytes");
  refused(std::span(bytes).first(bytes.size() - 4), 9, "bytes, expected");
  const auto with_number = [&](size_t i, int64_t n) {
    std::vector<std::byte> other = bytes;
    std::memcpy(other.data() + i * sizeof(n), &n, sizeof(n));
    return other;
  };
  refused(with_number(0, 13), 9, "sizes");       // values
  refused(with_number(1, 1 << 30), 9, "sizes");  // marks
  refused(with_number(1, -1), 9, "sizes");
  refused(with_number(3, 1), 9, "state 1 is that after 1 tokens");
}

}  // namespace
}  // namespace snapkv::test
