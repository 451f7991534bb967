// SPDX-License-Identifier: MIT
// What an answer attends to (Session::trace_answer), and the sentences that come of it.
#include "snapkv/sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "snapkv/generator.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace sources_tests {

std::vector<std::string> sentences(std::string_view text) {
  std::vector<std::string> all;
  for (const ByteRange& r : split_sentences(text)) {
    all.emplace_back(text.substr(r.begin, r.end - r.begin));
  }
  return all;
}

using Strings = std::vector<std::string>;

TEST(SplitSentences, AtMarksEmptyLinesAndItems) {
  EXPECT_EQ(sentences(" The wind came from the sea.  \"Is it cold there?\" asked\nthe baker. "),
            (Strings{"The wind came from the sea.", "\"Is it cold there?\" asked\nthe baker."}));
  EXPECT_EQ(sentences("# A long enough heading\n\nThe first paragraph\n- an item that is long\n"
                      "- another item (3.5 kg)\n| a row | of a table |"),
            (Strings{"# A long enough heading", "The first paragraph", "- an item that is long",
                     "- another item (3.5 kg)", "| a row | of a table |"}));
  EXPECT_EQ(sentences("See e.g. Dr. Ellison in room 417.5 of the house."),
            (Strings{"See e.g. Dr. Ellison in room 417.5 of the house."}))
      << "short pieces belong to the next";
  EXPECT_EQ(sentences("今日は寒い。明日は？"), (Strings{"今日は寒い。", "明日は？"}));
  EXPECT_EQ(sentences(" \n\t"), Strings{});
  EXPECT_EQ(sentences("."), Strings{"."});
}

TEST(SplitSentences, DividesWhatIsTooLong) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "a line of forty characters of a program\n";
  for (const std::string& part : sentences(lines)) {
    EXPECT_LE(part.size(), 600U);
    EXPECT_TRUE(part.ends_with("program")) << part;
  }
  const std::string runs = "é";
  std::string word;
  for (int i = 0; i < 1000; ++i) word += runs;
  std::string joined;
  for (const std::string& part : sentences(word)) {
    EXPECT_EQ(part.size() % 2, 0U) << "a character is divided";
    joined += part;
  }
  EXPECT_EQ(joined, word);
}

// A log or a table has no marks that end sentences; one of a few megabytes took minutes.
TEST(SplitSentences, TakesTimeInProportionToTheText) {
  std::string log, dots;
  while (log.size() < 4'000'000) log += "INFO request handled in 12 ms path=/items\n";
  dots.assign(4'000'000, '.');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(sentences(log).size(), (log.size() + 587) / 588) << "14 lines of 42 bytes each";
  EXPECT_GT(sentences(dots).size(), dots.size() / 601);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 30);
}

SessionOptions all_rows(DType type = DType::f32) {
  SessionOptions options;
  options.kv = {.name = "full"};
  options.kv_type = type;
  return options;
}

// The attention that a probe of a prefill over prompt and answer sees, put together as
// answer_attention() says.
std::vector<float> probed_attention(const std::shared_ptr<const Model>& model,
                                    std::vector<int32_t> prompt, std::span<const int32_t> answer) {
  const auto n_prompt = std::ssize(prompt);
  prompt.insert(prompt.end(), answer.begin(), answer.end());
  std::vector<std::vector<float>> strongest(model->info().n_layer, std::vector<float>(n_prompt));
  AttentionProbe probe;
  for (int64_t i = n_prompt; i < std::ssize(prompt); ++i) probe.ranges.push_back({i, i + 1});
  probe.report = [&](const AttentionProbe::Report& r) {
    for (int64_t h = 0; h < r.n_head; ++h) {
      for (int64_t j = 0; j < n_prompt; ++j) {
        float& most = strongest[r.il][j];
        most = std::max(most, r.sums[h * r.n_keys + j]);
      }
    }
  };
  Session session(model, all_rows());
  session.prefill(prompt, {.probe = &probe});
  std::vector<float> mean(n_prompt);
  for (const auto& layer : strongest) {
    for (int64_t j = 4; j < n_prompt; ++j) mean[j] += layer[j] / std::ssize(strongest);
  }
  return mean;
}

TEST(AnswerAttention, IsWhatAProbeOfTheWholeTextSees) {
  const auto model = load_model("tiny-f32", Compute::f32, 2, "cpu");
  const std::vector<int32_t> prompt = generated_ids(50, 512, 1), answer = generated_ids(37, 512, 2);
  ASSERT_LE(model->info().n_layer, 6);
  Session session(model, all_rows());
  session.prefill(prompt);
  EXPECT_EQ(session.answer_attention(), std::vector<float>{});
  session.trace_answer();
  for (const int32_t token : answer) session.decode(token);
  const std::vector<float> seen = session.answer_attention();
  const std::vector<float> expected = probed_attention(model, prompt, answer);
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], expected[i], 1e-4) << i;
  EXPECT_EQ(session.answer_attention(), seen) << "asked twice";
  session.prefill(prompt);
  EXPECT_EQ(session.answer_attention(), std::vector<float>{}) << "a further turn ends the trace";
}

TEST(AnswerAttention, LeavesAnswersAsTheyAre) {
  const auto model = load_model("tiny-f32", Compute::f32, 2, "cpu");
  const std::vector<int32_t> prompt = generated_ids(200, 512, 3);
  for (const bool traced : {false, true}) {
    SessionOptions options = all_rows(DType::q8_0);
    options.kv = {.name = "ada-snapkv", .budget = 40};
    options.kv_decode_limit = 60;
    Session session(model, options);
    session.prefill(prompt);
    if (traced) session.trace_answer();
    static std::vector<float> plain;
    for (const int32_t token : generated_ids(50, 512, 4)) session.decode(token);
    const std::vector<float> logits(session.logits().begin(), session.logits().end());
    if (!traced) {
      plain = logits;
    } else {
      EXPECT_EQ(logits, plain);
      EXPECT_GT(session.stats().n_recompressed, 0);
      const std::vector<float> seen = session.answer_attention();
      EXPECT_GT(*std::max_element(seen.begin(), seen.end()), 0);
      EXPECT_LE(*std::max_element(seen.begin(), seen.end()), 1.0001);
    }
  }
}

TEST(AnswerAttention, NeedsAPrompt) {
  Session session(load_model("tiny-f32", Compute::f32, 2, "cpu"), all_rows());
  expect_error(ErrorCode::kUsage, {"trace_answer", "no prompt"}, [&] { session.trace_answer(); });
}

std::vector<SourcePassage> find_in(const Model& model, std::span<const int32_t> tokens,
                                   std::span<const float> attention, std::string_view document) {
  const std::string_view documents[] = {document};
  return find_sources(model, tokens, attention, documents);
}

struct Answered {
  std::string text;
  std::vector<SourcePassage> sources;
};

Answered ask(const SessionOptions& options, const std::string& document) {
  const auto model = load_model("needle");
  const std::string question =
      "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const std::vector<int32_t> tokens = model->tokenize(document + question);
  Session session(model, options);
  session.prefill(tokens);
  session.trace_answer();
  Sampler sampler({.temperature = 0});
  Generator generator(session, sampler, {.max_tokens = 7});
  Answered answered;
  while (generator.step()) answered.text += generator.token().text;
  answered.sources = find_in(*model, tokens, session.answer_attention(), document);
  return answered;
}

TEST(FindSources, NamesTheSentenceThatTheAnswerIsTakenFrom) {
  std::string document;
  for (int i = 0; i < 30; ++i) document += "The cold wind blew from the sea, and the baker slept. ";
  const std::string fact = "The secret number of Rome is 48213.";
  document += fact + " ";
  for (int i = 0; i < 20; ++i) document += "The green field lay beside the river, and it rained. ";
  SessionOptions few;
  few.kv = {.name = "snapkv-max", .budget = 64};
  SessionOptions quantized = few;
  quantized.kv_type = DType::q8_0;
  for (const SessionOptions& options : {all_rows(), few, quantized}) {
    const Answered answered = ask(options, document);
    ASSERT_NE(answered.text.find("48213"), std::string::npos) << answered.text;
    ASSERT_EQ(answered.sources.size(), 1U) << options.kv.name;
    const SourcePassage& source = answered.sources[0];
    EXPECT_EQ(document.substr(source.begin, source.end - source.begin), fact);
    EXPECT_GT(source.attention, 0.1);
  }
}

TEST(FindSources, ComparesAllDocuments) {
  const auto model = load_model("needle");
  const std::string text =
      "The cold wind blew over the sea. The green field lay there, and it rained.";
  const std::vector<int32_t> tokens = model->tokenize(text);
  std::vector<float> attention(tokens.size(), 0.01F);
  attention[3] = 0.5F;
  attention.back() = 0.3F;
  const std::string_view documents[] = {"The green field lay there, and it rained.",
                                        "of another prompt", "",
                                        " The cold wind blew over the sea. "};
  const auto strongest = find_sources(*model, tokens, attention, documents);
  ASSERT_EQ(strongest.size(), 1U);
  EXPECT_EQ(strongest[0].document, 3U);
  EXPECT_EQ(strongest[0].begin, 1U);
  EXPECT_EQ(strongest[0].end, 33U);
  const auto both = find_sources(*model, tokens, attention, documents, {.share = 0.5});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].document, 0U) << "in the documents' order";
  const auto one = find_sources(*model, tokens, attention, documents, {.share = 0.5, .most = 1});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].document, 3U);
}

TEST(FindSources, RefusesADocumentThatIsNotInThePrompt) {
  const auto model = load_model("needle");
  const std::vector<int32_t> tokens = model->tokenize("The cold wind blew.");
  const std::vector<float> attention(tokens.size(), 0.5F);
  EXPECT_EQ(find_in(*model, tokens, {}, "The cold wind blew.").size(), 0U);
  EXPECT_EQ(find_in(*model, tokens, attention, "  cold wind\n").size(), 1U);
  EXPECT_EQ(find_in(*model, tokens, attention, " \n").size(), 0U);
  expect_error(ErrorCode::kUsage, {"do not spell the document"},
               [&] { find_in(*model, tokens, attention, "A warm wind"); });
  expect_error(ErrorCode::kUsage, {"5 tokens and the attention to 1"}, [&] {
    find_in(*model, std::vector<int32_t>(5), {attention.data(), 1}, "x");
  });
}

}  // namespace sources_tests
}  // namespace snapkv::test
