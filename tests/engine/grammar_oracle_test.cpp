// SPDX-License-Identifier: MIT
// Greedy answers constrained by grammars and JSON schemas equal llama.cpp's, token by token. The
// golden files were recorded from its server by tools/grammar_oracle.py. Each token there must be
// the best one that the grammar allows here.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "snapkv/engine.h"
#include "snapkv/grammar.h"

namespace snapkv::test {
namespace grammar_oracle_tests {

using Json = nlohmann::ordered_json;

// The model's file is f16, and llama.cpp rounds activations to f16 (docs/verification.md): if its
// token and the best one differ by less than this, both are right.
constexpr float kTie = 1e-2f;

Json golden() {
  std::ifstream in(SNAPKV_SOURCE_DIR "/tests/engine/grammar_oracle.json");
  return Json::parse(in);
}

TEST(GrammarOracle, AnswersAreLlamaCpps) {
  const auto model = Model::load(
      {.path = SNAPKV_SOURCE_DIR "/models/needle.gguf", .device = "cpu", .compute = Compute::f32});
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(model->tokenizer());
  const Json document = golden();
  const int64_t n_predict = document.at("n_predict");
  int n_cases = 0, n_ended = 0, n_ties = 0;
  size_t n_tokens = 0;
  for (const Json& c : document.at("cases")) {
    const std::string name = c.at("name");
    SCOPED_TRACE(name);
    const Grammar grammar = c.contains("grammar")
                                ? Grammar::parse(c.at("grammar").get<std::string>(), name)
                                : Grammar::from_json_schema(c.at("schema").dump(), name);
    Session session(model, {.n_ctx = 1024, .kv = {.name = "full"}, .kv_type = DType::f32});
    session.prefill(c.at("prompt").get<std::vector<int32_t>>());
    GrammarMatcher matcher(grammar, vocabulary);
    const auto tokens = c.at("tokens").get<std::vector<int32_t>>();
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int32_t expected = tokens[i];
      std::vector<float> logits(session.logits().begin(), session.logits().end());
      matcher.apply(logits);
      const auto best = std::max_element(logits.begin(), logits.end());
      const auto id = static_cast<int32_t>(best - logits.begin());
      const float margin = *best - logits[static_cast<size_t>(expected)];
      EXPECT_LT(margin, kTie) << "token " << i << ": " << model->piece(id)
                              << "\nllama.cpp: " << model->piece(expected) << ", of "
                              << c.at("text");
      n_ties += id == expected ? 0 : 1;
      matcher.accept(expected);
      if (!model->is_end_of_generation(expected)) session.decode(expected);
    }
    const bool ended = model->is_end_of_generation(tokens.back());
    EXPECT_EQ(ended, c.at("ended").get<bool>());
    EXPECT_TRUE(ended || std::ssize(tokens) == n_predict);
    n_tokens += tokens.size();
    ++n_cases;
    n_ended += ended ? 1 : 0;
  }
  EXPECT_GE(n_cases, 20);
  EXPECT_GE(n_ended, 10);
  EXPECT_GE(n_tokens, 800u);
  EXPECT_LE(n_ties, 2);
}

}  // namespace grammar_oracle_tests
}  // namespace snapkv::test
