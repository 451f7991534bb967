// SPDX-License-Identifier: MIT
// The scores of "kvzip" compared with their definition in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace kvzip_tests {

constexpr int64_t kHead = 4, kHeadKv = 2, kDim = 32, kPrompt = 700;
constexpr int kWindow = 8, kSinks = 3;
constexpr float kScale = 0.5f;

/// A piece of the prompt that is repeated: the queries and keys of the replay's tokens.
struct Piece {
  int32_t begin, end;
  int64_t n_own;
  std::vector<float> q, k;  // [n_own, kHead, kDim], [kHeadKv, n_own, kDim]
};

Piece random_piece(int32_t begin, int32_t end, uint64_t seed) {
  const int64_t n = end - begin + 11;
  return {begin, end, n, random_values(n * kHead * kDim, seed),
          random_tensor({kHeadKv, n, kDim}, seed + 1, DType::f16).values()};
}

/// Keys of the prompt and then of the replay, [kHeadKv, kPrompt + n_own, kDim].
std::vector<float> joined(const std::vector<float>& prompt, const Piece& piece) {
  std::vector<float> all;
  for (int64_t h = 0; h < kHeadKv; ++h) {
    const auto of_prompt = prompt.begin() + h * kPrompt * kDim;
    all.insert(all.end(), of_prompt, of_prompt + kPrompt * kDim);
    const auto own = piece.k.begin() + h * piece.n_own * kDim;
    all.insert(all.end(), own, own + piece.n_own * kDim);
  }
  return all;
}

/// Raises `best` [kPrompt] to what head h's queries of the piece give the rows of KV head g.
void take_attention(const std::vector<float>& k, const Piece& piece, int64_t h, Scores& best) {
  const int64_t g = h / (kHead / kHeadKv), n_rows = kPrompt + piece.n_own;
  std::vector<int64_t> rows;
  for (int64_t j = 0; j < std::min<int64_t>(kSinks, piece.begin); ++j) rows.push_back(j);
  for (int64_t j = piece.begin; j < piece.end; ++j) rows.push_back(j);
  const size_t n_prompt = rows.size();
  for (int64_t i = 0; i < piece.n_own; ++i) {
    rows.push_back(kPrompt + i);
    Scores p;
    double sum = 0;
    for (const int64_t j : rows) {
      const float* query = piece.q.data() + (i * kHead + h) * kDim;
      p.push_back(std::exp(kScale * oracle_dot(query, k.data() + (g * n_rows + j) * kDim, kDim)));
      sum += p.back();
    }
    for (size_t r = 0; r < n_prompt; ++r) best[rows[r]] = std::max(best[rows[r]], p[r] / sum);
  }
}

class Kvzip : public testing::TestWithParam<Target> {
 protected:
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
};
INSTANTIATE_TEST_SUITE_P(, Kvzip, testing::Values(Target::ref, Target::cpu),
                         [](const auto& p) { return target_name(p.param); });

TEST_P(Kvzip, ScoresRowsByTheStrongestAttentionOfAReplay) {
  const auto policy =
      Policy::make({.name = "kvzip", .budget = 100, .window_size = kWindow, .sinks = kSinks});
  const auto selector = policy->make_selector(*backend_);
  const std::vector<float> prompt = random_tensor({kHeadKv, kPrompt, kDim}, 1, DType::f16).values();
  std::vector<Scores> best(kHeadKv, Scores(kPrompt, 0.0));
  for (const Piece& piece : {random_piece(0, 400, 10), random_piece(400, kPrompt, 20)}) {
    const std::vector<float> keys = joined(prompt, piece);
    const TestTensor k({kHeadKv, kPrompt + piece.n_own, kDim}, keys, DType::f16);
    const TestTensor q({piece.n_own, kHead, kDim}, piece.q);
    for (int64_t begin = 0; begin < piece.n_own; begin += 300) {  // more than one op's queries
      const int64_t end = std::min<int64_t>(begin + 300, piece.n_own);
      const std::vector<int32_t> pos(end - begin, 0);
      const std::vector<int32_t> n_rows(kHeadKv, static_cast<int32_t>(kPrompt + end));
      QueryChunk chunk{};
      chunk.q = q.view().slice(begin, end);
      chunk.pos = pos;
      chunk.k = k;
      chunk.n_rows = n_rows;
      chunk.scale = kScale;
      selector->observe(chunk);  // the prompt's own queries don't count
      chunk.replay = {.begin = piece.begin, .end = piece.end, .n_own = static_cast<int32_t>(end)};
      selector->observe(chunk);
    }
    for (int64_t h = 0; h < kHead; ++h) take_attention(keys, piece, h, best[h / 2]);
  }
  const std::vector<int32_t> n_rows(kHeadKv, kPrompt);
  PolicyInput input;
  input.n_rows = n_rows;
  const RowScores scores = selector->score_rows(input);
  EXPECT_EQ(scores.n_rows, n_rows);
  for (int64_t g = 0; g < kHeadKv; ++g) {
    for (int64_t j = 0; j < kPrompt; ++j) {
      const float score = *scores.view.at<const float>(g, j);
      if (j < kSinks || j >= kPrompt - kWindow) {
        EXPECT_EQ(score, std::numeric_limits<float>::infinity()) << g << " " << j;
      } else {
        EXPECT_NEAR(score, best[g][j], 2e-5) << g << " " << j;
      }
    }
  }
}

TEST_P(Kvzip, RejectsAttentionThatIsNotFinite) {
  const auto policy = Policy::make({.name = "kvzip", .budget = 100});
  const auto selector = policy->make_selector(*backend_);
  Piece piece = random_piece(0, 60, 5);
  piece.q[20 * kHead * kDim] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> prompt = random_tensor({kHeadKv, kPrompt, kDim}, 1, DType::f16).values();
  const TestTensor k({kHeadKv, kPrompt + piece.n_own, kDim}, joined(prompt, piece), DType::f16);
  const TestTensor q({piece.n_own, kHead, kDim}, piece.q);
  const std::vector<int32_t> pos(piece.n_own, 0);
  const std::vector<int32_t> n_rows(kHeadKv, static_cast<int32_t>(kPrompt + piece.n_own));
  QueryChunk chunk{};
  chunk.q = q;
  chunk.pos = pos;
  chunk.k = k;
  chunk.n_rows = n_rows;
  chunk.replay = {.begin = 0, .end = 60, .n_own = static_cast<int32_t>(piece.n_own)};
  selector->observe(chunk);
  const std::vector<int32_t> n_prompt(kHeadKv, kPrompt);
  PolicyInput input;
  input.il = 3;
  input.n_rows = n_prompt;
  expect_error(ErrorCode::kRuntime, {"layer 3", "not finite"},
               [&] { selector->score_rows(input); });
}

}  // namespace kvzip_tests
}  // namespace snapkv::test
