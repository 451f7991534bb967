// SPDX-License-Identifier: MIT
// The time that a mask takes, measured at the tokens of answers with the vocabularies of real
// models: those in SNAPKV_TEST_DATA, and a GGUF file or tokenizer.json that SNAPKV_SPEED_VOCABULARY
// names. docs/grammar.md has the times that this test prints; its limits are higher, for slower
// machines.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "snapkv/tokenizer.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "summary": {"type": "string", "maxLength": 400},
    "born": {"type": "string", "format": "date"},
    "score": {"type": "integer", "minimum": 0, "maximum": 100},
    "ratio": {"type": "number"},
    "kind": {"enum": ["person", "place", "thing"]},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
    "address": {"type": "object", "properties": {
      "street": {"type": "string"}, "city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
      "required": ["street", "city", "zip"]},
    "children": {"type": "array", "items": {"$ref": "#"}}
  },
  "required": ["name", "summary", "born", "score", "ratio", "kind", "tags", "address", "children"]
})";

std::string document(int n_children) {
  std::string children;
  for (int i = 0; i < n_children; ++i) children += (i > 0 ? ", " : "") + document(0);
  return R"({"name": "Maria \"Mia\" Sk\u0142odowska", "summary": "A physicist and chemist who did research on)"
         R"( radioactivity; she was the first woman to win a Nobel Prize, and the only person to win it in two)"
         R"( sciences. 玛丽·居里 — “Madame Curie”.", "born": "1867-11-07", "score": 98, "ratio": 0.25,)"
         R"( "kind": "person", "tags": ["physics", "chemistry", "Nobel Prize", "Paris"], "address": {"street":)"
         R"( "11 rue Pierre et Marie Curie", "city": "Paris", "zip": "75005"}, "children": [)" +
         children + "]}";
}

// Milliseconds of processor time, as other programs may use the processor too.
double now_ms() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double timed_mask(const GrammarMatcher& matcher, std::vector<uint64_t>& mask) {
  const double begin = now_ms();
  matcher.mask(mask);
  return now_ms() - begin;
}

// The milliseconds that mask() takes before each token of a text, which the grammar must allow.
std::vector<double> times_of_text(GrammarMatcher matcher, const Tokenizer& tokenizer,
                                  const std::string& text) {
  std::vector<double> times;
  std::vector<uint64_t> mask;
  for (const int32_t id : tokenizer.encode(text, false, false)) {
    times.push_back(timed_mask(matcher, mask));
    EXPECT_TRUE(bit(mask, id)) << tokenizer.piece(id) << " at " << times.size();
    if (!bit(mask, id)) break;
    matcher.accept(id);
  }
  EXPECT_TRUE(matcher.is_complete());
  return times;
}

// The same, before each token of an answer of random allowed tokens.
std::vector<double> times_of_random_answer(GrammarMatcher matcher, int64_t n_vocab, size_t n_tokens,
                                           std::mt19937& random) {
  std::vector<double> times;
  std::vector<uint64_t> mask;
  while (times.size() < n_tokens && matcher.can_continue()) {
    times.push_back(timed_mask(matcher, mask));
    auto id = static_cast<int64_t>(random() % static_cast<uint64_t>(n_vocab));
    while (!bit(mask, static_cast<int32_t>(id))) id = (id + 1) % n_vocab;
    matcher.accept(static_cast<int32_t>(id));
  }
  return times;
}

void expect_quick(const std::string& name, std::vector<double> times) {
  const double first = times.front();
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  fmt::print("{:24} {:5} tokens: first {:.3f} median {:.3f} 99.9% {:.3f} most {:.3f} ms\n", name,
             times.size(), first, at(0.5), at(0.999), times.back());
  EXPECT_LT(at(0.5), 2.0) << name;
  EXPECT_LT(times.back(), 15.0) << name;
}

std::string vocabulary_file(const std::string& name) {
  const char* const own = std::getenv("SNAPKV_SPEED_VOCABULARY");
  if (name == "other") return own == nullptr ? "" : own;
  const char* const data = std::getenv("SNAPKV_TEST_DATA");
  return data == nullptr ? "" : fmt::format("{}/vocab/{}.gguf", data, name);
}

class GrammarSpeed : public testing::TestWithParam<const char*> {};

TEST_P(GrammarSpeed, Masks) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "a sanitizer's checks would be timed";
#endif
  const std::string file = vocabulary_file(GetParam());
  if (file.empty()) GTEST_SKIP() << "no vocabulary: SNAPKV_TEST_DATA, SNAPKV_SPEED_VOCABULARY";
  const auto tokenizer = Tokenizer::load(file);
  const double begin = now_ms();
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(*tokenizer);
  fmt::print("{}: {} tokens, vocabulary made in {:.0f} ms\n", file, vocabulary->n_vocab(),
             now_ms() - begin);
  const auto matcher_of = [&](const std::string& schema) {
    return GrammarMatcher(Grammar::from_json_schema(schema), vocabulary);
  };

  const std::string text = document(5);
  for (const auto& [name, matcher] :
       {std::pair("schema", matcher_of(kSchema)),
        std::pair("any JSON", GrammarMatcher(Grammar::json_object(), vocabulary))}) {
    expect_quick(name, times_of_text(matcher, *tokenizer, text));
    expect_quick(std::string(name) + ", again", times_of_text(matcher, *tokenizer, text));
  }

  std::string sentence = "\"";  // each place of the repetition is new the first time
  while (sentence.size() < 360)
    sentence += "The river rose (4 m), and the mill – „Mühle“ – stood. ";
  for (const char* bounds : {R"("maxLength": 400)", R"("minLength": 300, "maxLength": 500)"}) {
    expect_quick(bounds,
                 times_of_text(matcher_of(fmt::format(R"({{"type": "string", {}}})", bounds)),
                               *tokenizer, sentence + "\""));
  }

  std::mt19937 random(5);
  std::vector<double> times;
  const auto schemas =
      nlohmann::json::parse(std::ifstream(SNAPKV_SOURCE_DIR "/tests/text/grammar/schemas.json"));
  for (const nlohmann::json& schema : schemas) {
    const GrammarMatcher matcher = matcher_of(schema.dump());
    for (int i = 0; i < 3; ++i) {
      const auto more = times_of_random_answer(matcher, vocabulary->n_vocab(), 60, random);
      times.insert(times.end(), more.begin(), more.end());
    }
  }
  expect_quick("random answers", times);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GrammarSpeed,
                         testing::Values("deepseek-llm", "falcon", "other"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace snapkv::test
