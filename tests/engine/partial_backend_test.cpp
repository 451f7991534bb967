// SPDX-License-Identifier: MIT
// A backend with one op runs whole models: the reference computes the rest through copies, and a
// warning names each op that is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "snapkv/engine.h"
#include "snapkv/log.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"
#include "tests/support/toy_backend.h"

namespace snapkv::test {
namespace partial_backend_tests {

ToyBackend* toy = nullptr;
// before main(), since option tables list the names of devices
const bool registered = [] {
  register_toy(&toy);
  return true;
}();

SessionOptions options_of(const std::string& policy) {
  SessionOptions options;
  options.n_ctx = 256;
  options.chunk = 40;
  options.kv.name = policy;
  options.kv.budget = 48;
  return options;
}

/// The ids of a greedy answer, and the logits of its last token.
struct Answer {
  std::vector<int32_t> ids;
  std::vector<float> logits;
};

Answer answer(const std::shared_ptr<const Model>& model, const SessionOptions& options) {
  Session session(model, options);
  session.prefill(generated_ids(100, model->info().n_vocab, 7));
  Answer answer;
  for (int i = 0; i < 8; ++i) {
    const auto logits = session.logits();
    answer.logits.assign(logits.begin(), logits.end());
    const auto best = std::max_element(answer.logits.begin(), answer.logits.end());
    answer.ids.push_back(static_cast<int32_t>(best - answer.logits.begin()));
    session.decode(answer.ids.back());
  }
  return answer;
}

class PartialBackend : public testing::Test {
 protected:
  ~PartialBackend() override { set_log_sink({}); }

  /// How many warnings name the op.
  int64_t n_warnings(const std::string& op) const {
    return std::count(
        warnings_.begin(), warnings_.end(),
        "toy has no " + op + ": the reference computes it in host memory, which is slow");
  }
  void collect_warnings() {
    set_log_sink([this](LogLevel level, std::string_view message) {
      if (level == LogLevel::kWarn) warnings_.emplace_back(message);
    });
  }

  std::vector<std::string> warnings_;
};

TEST_F(PartialBackend, AnswersAsTheReference) {
  for (const char* name : {"tiny-f32", "tiny-q4_0"}) {
    const auto on_toy = load_model(name, Compute::f32, 1, "toy");
    const auto on_reference = load_model(name, Compute::f32, 1, "reference");
    EXPECT_TRUE(on_toy->on_device());
    for (const char* policy : {"full", "snapkv", "snapkv-max", "h2o", "lagkv"}) {
      SCOPED_TRACE(std::string(name) + ", " + policy);
      const Answer expected = answer(on_reference, options_of(policy));
      const Answer actual = answer(on_toy, options_of(policy));
      EXPECT_EQ(actual.ids, expected.ids);
      EXPECT_EQ(actual.logits, expected.logits);  // the toy's own op is the reference's, too
    }
  }
}

TEST_F(PartialBackend, WarnsOnceOfEachMissingOp) {
  collect_warnings();
  const auto model =
      Model::load({.path = model_path("tiny-f32"), .device = "toy", .compute = Compute::f32});
  for (int i = 0; i < 2; ++i) answer(model, options_of("snapkv"));
  EXPECT_GT(toy->kernels().n_norms(), 0);
  EXPECT_EQ(n_warnings("rms_norm"), 0);
  for (const char* op : {"embed", "rope", "project", "attention_prefill", "attention_decode",
                         "store_rows", "window_votes", "top_k", "gather_rows"}) {
    EXPECT_EQ(n_warnings(op), 1) << op;
  }
  EXPECT_EQ(n_warnings("pack"), 0);  // project() reads prompts unless the backend says otherwise
}

TEST_F(PartialBackend, IsAChoiceOfTheOptions) {
  expect_error(ErrorCode::kUsage, {"device is toys; it must be auto, cpu, cuda, reference or toy"},
               [] { Model::load({.path = model_path("tiny-f32"), .device = "toys"}); });
}

}  // namespace partial_backend_tests
}  // namespace snapkv::test
