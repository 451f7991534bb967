// SPDX-License-Identifier: MIT
// The overlap task: its measures compared with values computed by hand, and its limits.
#include "eval/overlap/overlap.h"

#include <gtest/gtest.h>

#include "eval/overlap/prompt.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

TEST(OverlapCover, ByHand) {
  // 10 columns and p = 0.3: three are selected.
  const Attention voting = {{0.5f, 0, 0.4f, 0, 0.3f, 0, 0, 0, 0, 0.1f}};            // 0, 2, 4
  const Attention current = {{0.02f, 0.3f, 0.2f, 0, 0.1f, 0, 0, 0.01f, 0, 0.05f}};  // 1, 2, 4
  const Coverage c = cover(voting, current, 0.3, 0.015);  // used: 0, 1, 2, 4, 9
  EXPECT_DOUBLE_EQ(c.overlap, 2.0 / 3);
  EXPECT_EQ(c.n_used, 5);
  EXPECT_DOUBLE_EQ(c.hit.value(), 3.0 / 5);
  EXPECT_FALSE(cover(voting, current, 0.3, 0.5).hit.has_value());
  EXPECT_DOUBLE_EQ(cover(current, current, 0.01, 0.25).hit.value(), 1);  // at least one column
  // With several heads, the overlap is the mean over the heads, and the hit rate counts the columns
  // of all.
  const Coverage two = cover({voting[0], voting[0]}, {current[0], voting[0]}, 0.3, 0.015);
  EXPECT_DOUBLE_EQ(two.overlap, (2.0 / 3 + 1) / 2);
  EXPECT_DOUBLE_EQ(two.hit.value(), (3.0 + 3) / (5 + 4));
}

TEST(OverlapCover, TiesGoToTheLowerColumn) {
  const Attention flat = {std::vector<float>(10, 0.1f)};
  const Attention rising = {{0, 0, 0, 0, 0, 0, 0, 0, 0.5f, 0.5f}};
  EXPECT_EQ(cover(flat, rising, 0.2, 0.1).overlap, 0);
  EXPECT_EQ(cover(flat, flat, 0.2, 0.1).overlap, 1);
}

TEST(OverlapOptions, MustFit) {
  OverlapOptions o;
  o.length = 2687;  // 21 * 128 - 1
  test::expect_error(ErrorCode::kUsage, {"--length", "2688"}, [&] { validate(o); });
  o.length = 2688;
  EXPECT_NO_THROW(validate(o));
  o.question_window = 673;
  test::expect_error(ErrorCode::kUsage, {"--question-window"}, [&] { validate(o); });
}

RunOptions needle_run() {
  RunOptions run;
  run.model = test::load_model("needle");
  SessionOptions full;
  full.kv.name = "full";
  run.configurations = {full};
  return run;
}

TEST(OverlapPrompts, AskAboutTheirFacts) {
  const RunOptions run = needle_run();
  const OverlapOptions options;
  const OverlapDocument d = make_document(*run.model, options, 500, 3);
  for (const auto& q : d.questions) {
    EXPECT_LE(d.document.size() + q.question.size() + q.lead.size(), 500u);
    const std::string statement = run.model->detokenize(q.lead).substr(8);  // "Answer: "
    EXPECT_NE(d.text.find(statement + " " + q.reference + "."), std::string::npos) << statement;
  }
  EXPECT_NE(d.questions[0].text, d.questions[1].text);
  EXPECT_NE(make_document(*run.model, options, 500, 4).text, d.text);
}

TEST(OverlapPrompts, ContinueInBothWays) {
  const RunOptions run = needle_run();
  OverlapOptions options;
  options.length = 300;
  options.window_length = 10;
  options.n_gen_windows = 3;
  const OverlapPassage greedy = make_passage(run, options, 0);
  EXPECT_LE(greedy.n_prompt, 300);
  ASSERT_EQ(std::ssize(greedy.tokens), greedy.n_prompt + 30);
  const auto answer = std::span(greedy.tokens).subspan(static_cast<size_t>(greedy.n_prompt));
  EXPECT_EQ(run.model->detokenize(answer).find('\n'), std::string::npos);
  options.continue_text = true;
  const OverlapPassage text = make_passage(run, options, 0);
  EXPECT_EQ(std::ssize(text.tokens), text.n_prompt + 30);
  options.random_tokens = true;
  EXPECT_EQ(make_passage(run, options, 0).n_prompt, 300);
}

}  // namespace
}  // namespace snapkv::eval
