// SPDX-License-Identifier: MIT
// The C API's second part: options, models, documents, sessions and answers equal those of C++, and
// errors are codes with messages.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "snapkv/generator.h"
#include "snapkv/options.h"
#include "snapkv/snapkv.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace c_api_engine_tests {

using Json = nlohmann::json;

class CApiEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    set("model", model_path("needle"));
    set("n_threads", "2");
    set("compute", "f32");
    set("temperature", "0");
    set("max_tokens", "8");
    model_ = snapkv_model_load(options_, nullptr, nullptr, error_, sizeof error_);
    ASSERT_NE(model_, nullptr) << error_;
  }
  void TearDown() override {
    snapkv_model_free(model_);
    snapkv_options_free(options_);
  }
  void set(const char* name, const std::string& value) {
    ASSERT_EQ(snapkv_options_set(options_, name, value.c_str(), error_, sizeof error_), SNAPKV_OK)
        << error_;
  }
  /// Takes the text and frees it.
  static std::string take(snapkv_text* text) {
    EXPECT_NE(text, nullptr);
    if (text == nullptr) return {};
    std::string result(text->data, text->n);
    snapkv_text_free(text);
    return result;
  }
  std::vector<int32_t> tokenize(const std::string& text) {
    snapkv_tokens* tokens =
        snapkv_tokenize(model_, text.data(), text.size(), 1, 1, error_, sizeof error_);
    std::vector<int32_t> ids(tokens->ids, tokens->ids + tokens->n);
    snapkv_tokens_free(tokens);
    return ids;
  }
  std::string answer(snapkv_session* session) {
    snapkv_generator* g =
        snapkv_generator_new(session, options_, nullptr, nullptr, 0, error_, sizeof error_);
    EXPECT_NE(g, nullptr) << error_;
    std::string text;
    snapkv_token token = {};
    while (!token.is_last) {
      EXPECT_EQ(snapkv_generator_step(g, &token, error_, sizeof error_), SNAPKV_OK) << error_;
      text.append(token.text, token.n_text);
    }
    EXPECT_NE(snapkv_generator_stop_reason(g), nullptr);
    snapkv_generator_free(g);
    return text;
  }
  static std::string document() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "The grass is green and the sky is blue. ";
    return text + "The special number of Paris is 48213. " + text;
  }

  snapkv_options* options_ = snapkv_options_new();
  snapkv_model* model_ = nullptr;
  char error_[400] = "";
};

TEST_F(CApiEngine, ErrorsCallOptionsByTheNamesThatSetThem) {
  set("kv_budget", "3");
  EXPECT_EQ(snapkv_session_new(model_, options_, error_, sizeof error_), nullptr);
  const std::string message = error_;
  EXPECT_TRUE(message.starts_with("kv_budget is 3")) << message;
  EXPECT_NE(message.find("kv_window_size + kv_sinks"), std::string::npos) << message;
}

TEST_F(CApiEngine, AnswersAsTheCppApiDoes) {
  set("kv_budget", "128");
  const std::string text = document() + "\nThe special number of Paris is";
  const std::vector<int32_t> ids = tokenize(text);
  snapkv_session* session = snapkv_session_new(model_, options_, error_, sizeof error_);
  ASSERT_NE(session, nullptr) << error_;
  ASSERT_EQ(
      snapkv_prefill(session, ids.data(), ids.size(), nullptr, nullptr, error_, sizeof error_),
      SNAPKV_OK)
      << error_;
  EXPECT_EQ(snapkv_n_past(session), std::ssize(ids));

  EngineOptions options;
  set_option(options, "model", model_path("needle"));
  set_option(options, "n_threads", "2");
  set_option(options, "compute", "f32");
  set_option(options, "kv_budget", "128");
  set_option(options, "temperature", "0");
  set_option(options, "max_tokens", "8");
  Session same(Model::load(options.model), options.session);
  same.prefill(ids);
  size_t n = 0;
  const float* logits = snapkv_logits(session, &n);
  ASSERT_EQ(n, same.logits().size());
  EXPECT_TRUE(std::equal(logits, logits + n, same.logits().begin()));
  snapkv_tokens* rows = snapkv_positions(session, 0, 0, error_, sizeof error_);
  ASSERT_NE(rows, nullptr);
  const std::vector<int32_t> expected = same.cached_positions(0, 0);
  EXPECT_EQ(std::vector<int32_t>(rows->ids, rows->ids + rows->n), expected);
  snapkv_tokens_free(rows);

  Sampler sampler(options.sampler);
  Generator generator(same, sampler, options.answer);
  std::string answer_of_cpp;
  while (generator.step()) answer_of_cpp += generator.token().text;
  answer_of_cpp += generator.rest();
  EXPECT_EQ(answer(session), answer_of_cpp);
  const Json stats = Json::parse(take(snapkv_stats(session, error_, sizeof error_)));
  EXPECT_EQ(stats.at("n_prompt"), std::ssize(ids));
  EXPECT_GT(stats.at("compression").get<double>(), 1.0);
  snapkv_session_free(session);
}

TEST_F(CApiEngine, AsksSeveralQuestionsOfOneDocument) {
  set("kv_budget", "128");
  const std::vector<int32_t> ids = tokenize(document());
  int calls = 0;
  const auto count = [](void* user, const char* phase, double fraction) {
    EXPECT_STREQ(phase, "prefill");
    EXPECT_LE(fraction, 1.0);
    ++*static_cast<int*>(user);
    return 0;
  };
  snapkv_prefix* prefix = snapkv_prefix_read(model_, options_, ids.data(), ids.size(), count,
                                             &calls, error_, sizeof error_);
  ASSERT_NE(prefix, nullptr) << error_;
  EXPECT_GT(calls, 0);
  EXPECT_EQ(snapkv_prefix_tokens(prefix), ids.size());
  const std::string path = ::testing::TempDir() + "c_api_document.kv";
  ASSERT_EQ(snapkv_prefix_save(prefix, path.c_str(), error_, sizeof error_), SNAPKV_OK) << error_;
  snapkv_prefix* loaded = snapkv_prefix_load(model_, path.c_str(), error_, sizeof error_);
  ASSERT_NE(loaded, nullptr) << error_;
  const std::string question = "\nThe special number of Paris is";
  snapkv_tokens* asked =
      snapkv_tokenize(model_, question.data(), question.size(), 0, 1, error_, sizeof error_);
  for (snapkv_prefix* rows : {prefix, loaded}) {
    snapkv_session* session = snapkv_session_new(model_, options_, error_, sizeof error_);
    ASSERT_EQ(snapkv_prefill_after(session, rows, asked->ids, asked->n, nullptr, nullptr, error_,
                                   sizeof error_),
              SNAPKV_OK)
        << error_;
    EXPECT_NE(answer(session).find("48213"), std::string::npos);
    snapkv_session_free(session);
  }
  snapkv_tokens_free(asked);
  snapkv_prefix_free(loaded);
  snapkv_prefix_free(prefix);
  std::remove(path.c_str());
}

TEST_F(CApiEngine, ListsSetsAndGetsOptions) {
  const Json list = Json::parse(take(snapkv_options_list(nullptr, error_, sizeof error_)));
  for (const Json& option : list) {
    const std::string name = option.at("name");
    SCOPED_TRACE(name);
    snapkv_options* fresh = snapkv_options_new();
    if (option.at("type") != "texts") {
      const std::string text = option.at("default");
      EXPECT_EQ(take(snapkv_options_get(fresh, name.c_str(), error_, sizeof error_)), text);
      EXPECT_EQ(snapkv_options_set(fresh, name.c_str(), text.c_str(), error_, sizeof error_),
                SNAPKV_OK)
          << error_;
    }
    EXPECT_FALSE(option.at("help").get<std::string>().empty());
    snapkv_options_free(fresh);
  }
  EXPECT_EQ(snapkv_options_set(options_, "top_p", "1.5", error_, sizeof error_),
            SNAPKV_ERROR_USAGE);
  EXPECT_STREQ(error_, "top_p is 1.5; it must be a number from 0 to 1");
  EXPECT_EQ(snapkv_options_set(options_, "kv_kernel_size", "4", error_, sizeof error_),
            SNAPKV_ERROR_USAGE);
  EXPECT_EQ(snapkv_options_set(options_, "topp", "1", error_, sizeof error_), SNAPKV_ERROR_USAGE);
  EXPECT_STREQ(error_,
               "there is no option \"topp\" with kv_policy snapkv-max; did you mean top_p?");
  EXPECT_EQ(snapkv_options_set(options_, "x", "1", error_, sizeof error_), SNAPKV_ERROR_USAGE);
  EXPECT_NE(std::string(error_).find("there are: "), std::string::npos) << error_;
  set("kv_kernel_size", "5");
  set("kv_policy", "keydiff");  // which has no such parameter
  EXPECT_EQ(snapkv_options_get(options_, "kv_kernel_size", error_, sizeof error_), nullptr);
  set("kv_policy", "snapkv");
  EXPECT_EQ(take(snapkv_options_get(options_, "kv_kernel_size", error_, sizeof error_)), "7");
}

TEST_F(CApiEngine, AnswersFollowAGrammar) {
  const std::vector<int32_t> ids = tokenize("The answer is");
  snapkv_session* session = snapkv_session_new(model_, options_, error_, sizeof error_);
  ASSERT_EQ(
      snapkv_prefill(session, ids.data(), ids.size(), nullptr, nullptr, error_, sizeof error_),
      SNAPKV_OK);
  snapkv_generator* g = snapkv_generator_new(session, options_, R"({"enum": ["yes"]})", ids.data(),
                                             ids.size(), error_, sizeof error_);
  ASSERT_NE(g, nullptr) << error_;
  std::string text;
  snapkv_token token = {};
  while (!token.is_last) {
    ASSERT_EQ(snapkv_generator_step(g, &token, error_, sizeof error_), SNAPKV_OK) << error_;
    text.append(token.text, token.n_text);
  }
  EXPECT_EQ(text, "\"yes\"");
  snapkv_generator_free(g);
  snapkv_session_free(session);
}

TEST_F(CApiEngine, RefusesWhatIsMissing) {
  EXPECT_EQ(snapkv_session_new(nullptr, options_, error_, sizeof error_), nullptr);
  EXPECT_STREQ(error_, "model is NULL");
  snapkv_session* session = snapkv_session_new(model_, options_, error_, sizeof error_);
  EXPECT_EQ(snapkv_generator_new(session, options_, nullptr, nullptr, 0, error_, sizeof error_),
            nullptr);
  EXPECT_STREQ(error_, "session: it has read no prompt yet");
  EXPECT_EQ(snapkv_prefill(session, nullptr, 3, nullptr, nullptr, error_, sizeof error_),
            SNAPKV_ERROR_USAGE);
  const auto stop = [](void*, const char*, double) { return 1; };
  const std::vector<int32_t> ids = tokenize(document());
  EXPECT_EQ(snapkv_prefill(session, ids.data(), ids.size(), stop, nullptr, error_, sizeof error_),
            SNAPKV_ERROR_CANCELLED);
  EXPECT_EQ(snapkv_n_past(session), 0);
  snapkv_session_free(session);
  set("model", "/no/such/file.gguf");
  EXPECT_EQ(snapkv_model_load(options_, nullptr, nullptr, error_, sizeof error_), nullptr);
  EXPECT_NE(std::string(error_).find("/no/such/file.gguf"), std::string::npos) << error_;
}

TEST_F(CApiEngine, ObjectsOutliveWhatTheyWereMadeOf) {
  const std::vector<int32_t> ids = tokenize("The answer is");
  snapkv_session* session = snapkv_session_new(model_, options_, error_, sizeof error_);
  ASSERT_EQ(
      snapkv_prefill(session, ids.data(), ids.size(), nullptr, nullptr, error_, sizeof error_),
      SNAPKV_OK);
  snapkv_generator* g =
      snapkv_generator_new(session, options_, nullptr, nullptr, 0, error_, sizeof error_);
  snapkv_session_free(session);
  snapkv_model_free(model_);
  model_ = nullptr;
  snapkv_token token = {};
  EXPECT_EQ(snapkv_generator_step(g, &token, error_, sizeof error_), SNAPKV_OK) << error_;
  EXPECT_EQ(snapkv_generator_step(g, &token, error_, sizeof error_), SNAPKV_OK) << error_;
  snapkv_generator_free(g);
}

}  // namespace c_api_engine_tests
}  // namespace snapkv::test
