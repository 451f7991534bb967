// SPDX-License-Identifier: MIT
// Sparse attention in prefill: what is chosen is the op's (op_cases_prefill.cpp); here that a
// session asks for it where its options do and nowhere else.
#include <gtest/gtest.h>

#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace sparse_attention_tests {

constexpr int64_t kPrompt = 3000;

SessionOptions sparse(SessionOptions options, double share = 0.5) {
  options.prefill_attention = PromptAttention::sparse;
  options.attention_share = share;
  options.n_ctx = 4096;
  return options;
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model, SessionOptions options,
                             int64_t n_tokens) {
  options.n_ctx = 4096;
  Session session(model, options);
  session.prefill(generated_ids(n_tokens, kFamilyVocab, 5));
  return copy(session.logits());
}

/// Layers that see all rows, windows, rows of other layers, latent rows, no rows, sinks, chunks.
class SparseAttentionTest : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Model> model_ = load_model(GetParam());
};

TEST_P(SparseAttentionTest, AllBlocksAreDenseAttention) {
  EXPECT_EQ(logits_of(model_, sparse(snapkv_options(64), 1.0), kPrompt),
            logits_of(model_, snapkv_options(64), kPrompt));
}

TEST_P(SparseAttentionTest, SomeBlocksAreNot) {
  // of a token before the last ones, which see all rows
  const auto earlier = [&](SessionOptions options) {
    options.n_ctx = 4096;
    Session session(model_, options);
    session.prefill(generated_ids(kPrompt, kFamilyVocab, 5), {.n_logits = 400});
    return copy(session.prefill_logits(0));
  };
  const double difference =
      max_difference(earlier(sparse(full_options(), 0.1)), earlier(full_options()));
  EXPECT_GT(difference, 1e-5);
  EXPECT_LT(difference, 50);
  // short prompts are read as ever
  EXPECT_EQ(logits_of(model_, sparse(full_options(), 0.1), 1500),
            logits_of(model_, full_options(), 1500));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SparseAttentionTest,
                         testing::Values("llama-linear", "gemma3", "gemma4-e", "deepseek2",
                                         "qwen35", "gpt-oss", "llama4-chunks"));

TEST(SparseAttention, MemoryIsAsPlanned) {
  const auto model = load_model("tiny-f32");
  const SessionOptions options = sparse(snapkv_options(64));
  Session session(model, options);
  session.prefill(generated_ids(kPrompt, kVocab, 5));
  const MemoryPlan plan = model->plan(options, kPrompt);
  EXPECT_EQ(session.stats().planned_bytes, plan.total() - plan.weights);
  // the choice takes little
  EXPECT_LT(plan.total(), model->plan(snapkv_options(64), kPrompt).total() + (4U << 20));
}

TEST(SparseAttention, WhatDiffersIsRefused) {
  const auto model = load_model("tiny-f32");
  expect_error(ErrorCode::kUsage, {"attention_share", "0.05", "0.1"},
               [&] { Session session(model, sparse(full_options(), 0.05)); });
  Session one(model, sparse(full_options())), other(model, full_options());
  Session* const both[] = {&one, &other};
  expect_error(ErrorCode::kUsage, {"prefill_many", "session 1"},
               [&] { prefill_many(both, generated_ids(20, kVocab, 5)); });
}

}  // namespace sparse_attention_tests
}  // namespace snapkv::test
