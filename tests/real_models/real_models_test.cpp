// SPDX-License-Identifier: MIT
// Real models compared with Hugging Face's transformers, and the rows that SnapKV keeps of their
// caches with NVIDIA's kvpress. tools/record_real_references.py recorded both in f32 on the same
// files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::test {
namespace {

using Json = nlohmann::json;

/// For a logit. Both sides compute in f32 but add in different orders, through 18 or 30 layers;
/// logits are up to 32, for which f32's last bit is 2e-6. The weights are the same, since both
/// decode the file's blocks. Differences of 5e-5 were seen; other processors may add in other
/// orders.
constexpr double kLogitTolerance = 2e-3;

/// For a score, relative to the cut: rows this close to it may be exchanged.
constexpr double kScoreTolerance = 1e-4;

class RealModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string path =
        std::string(SNAPKV_SOURCE_DIR) + "/tests/real_models/" + GetParam() + ".json";
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    reference_ = Json::parse(in);
    model_ = Model::load(
        {.path = std::string(SNAPKV_REAL_MODELS) + "/" + reference_.at("file").get<std::string>(),
         .compute = Compute::f32});
  }

  Session session(const PolicyConfig& kv) const {
    SessionOptions options;
    options.kv = kv;
    options.kv_type = DType::f32;
    return Session(model_, options);
  }

  Json reference_;
  std::shared_ptr<const Model> model_;
};

INSTANTIATE_TEST_SUITE_P(, RealModel, testing::Values("smollm2", "gemma3"),
                         [](const auto& test) { return test.param; });

/// The ids of the n highest logits, the highest first.
std::vector<int32_t> top_ids(std::span<const float> logits, size_t n) {
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n), ids.end(),
                    [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  ids.resize(n);
  return ids;
}

/// Compares the highest logits. Ids may be exchanged if their recorded logits differ by no more
/// than twice the tolerance.
void expect_top(std::span<const float> logits, const Json& prompt) {
  const std::vector<int32_t> expected = prompt.at("top_ids");
  const std::vector<double> values = prompt.at("top_logits");
  const std::vector<int32_t> found = top_ids(logits, expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits[expected[i]], values[i], kLogitTolerance) << "token " << expected[i];
    if (found[i] != expected[i]) {
      EXPECT_NEAR(logits[found[i]], values[i], 2 * kLogitTolerance)
          << "place " << i << " is of token " << found[i] << ", not " << expected[i];
    }
  }
}

TEST_P(RealModel, AnswersAsTransformersDoes) {
  ASSERT_EQ(reference_.at("prompts").size(), 10u);
  for (const Json& prompt : reference_.at("prompts")) {
    SCOPED_TRACE(prompt.at("text"));
    const std::vector<int32_t> ids = prompt.at("ids");
    EXPECT_EQ(model_->tokenize(prompt.at("text").get<std::string>()), ids);
    Session s = session({.name = "full"});
    s.prefill(ids);
    expect_top(s.logits(), prompt);
    std::vector<int32_t> answer;
    for (size_t i = 0; i < prompt.at("answer").size(); ++i) {
      answer.push_back(top_ids(s.logits(), 1).front());
      s.decode(answer.back());
    }
    EXPECT_EQ(answer, prompt.at("answer").get<std::vector<int32_t>>());
  }
}

/// Expects `found` to be the rows that kvpress kept, except rows whose scores tie with the cut.
void expect_rows(const std::vector<int32_t>& found, const Json& head) {
  const std::vector<int32_t> expected = head.at("rows");
  ASSERT_EQ(found.size(), expected.size());
  const double cut = head.at("cut");
  std::map<int32_t, double> near;
  for (const Json& row : head.at("near")) near[row.at(0)] = row.at(1);
  std::vector<int32_t> differ;
  std::set_symmetric_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                                std::back_inserter(differ));
  for (const int32_t row : differ) {
    ASSERT_TRUE(near.contains(row)) << "row " << row << " is far from the cut";
    EXPECT_LE(std::abs(near.at(row) - cut), kScoreTolerance * cut) << "row " << row;
  }
}

TEST_P(RealModel, KeepsTheRowsThatKvpressKeeps) {
  const Json& kept = reference_.at("kept");
  const std::vector<int32_t> ids = kept.at("ids");
  const int64_t budget = kept.at("budget");
  const int window = kept.at("window_size");
  Session s = session(
      {.budget = budget,
       .window_size = window,
       .params = {{"kernel_size", kept.at("kernel_size").get<int64_t>()}, {"pooling", "avg"}}});
  s.prefill(ids);
  ASSERT_FALSE(kept.at("layers").empty());
  for (const Json& layer : kept.at("layers")) {
    for (size_t head = 0; head < layer.at("heads").size(); ++head) {
      const int il = layer.at("il");
      SCOPED_TRACE("layer " + std::to_string(il) + ", head " + std::to_string(head));
      std::vector<int32_t> rows = s.cached_positions(il, static_cast<int>(head));
      ASSERT_EQ(std::ssize(rows), budget);
      for (int i = 0; i < window; ++i) {  // both always keep these
        EXPECT_EQ(rows.back(), std::ssize(ids) - 1 - i);
        rows.pop_back();
      }
      expect_rows(rows, layer.at("heads")[head]);
    }
  }
}

TEST_P(RealModel, WritesChatsAsTransformersDoes) {
  const ModelChat chat = model_->chat();
  const Json& chats = reference_.at("chats");
  EXPECT_EQ(chats.empty(), chat.templates.empty());
  for (const Json& c : chats) {
    const auto tmpl = ChatTemplate::parse(chat.templates.at("default"), "default");
    const Json variables = {{"messages", c.at("messages")},
                            {"add_generation_prompt", true},
                            {"bos_token", chat.bos_token},
                            {"eos_token", chat.eos_token}};
    const RenderedChat rendered = tmpl.render(variables.dump());
    EXPECT_EQ(rendered.text, c.at("text").get<std::string>());
    EXPECT_EQ(model_->tokenize(rendered), c.at("ids").get<std::vector<int32_t>>());
  }
}

}  // namespace
}  // namespace snapkv::test
