// SPDX-License-Identifier: MIT
// How long a mask takes, over the tokens of JSON documents and with the vocabularies of real models
// (SNAPKV_TEST_DATA). What it prints is in docs/grammar.md; what it asserts is far above that, for
// busy machines.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

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

struct Times {
  double least, median, most;
  size_t n_steps;
};

// Milliseconds of mask() before each token of the document, and whether each was allowed.
Times measure(GrammarMatcher matcher, const Tokenizer& tokenizer, const std::string& text) {
  std::vector<double> times;
  std::vector<uint64_t> mask;
  for (const int32_t id : tokenizer.encode(text, false, false)) {
    const auto start = std::chrono::steady_clock::now();
    matcher.mask(mask);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count());
    EXPECT_TRUE(bit(mask, id)) << tokenizer.piece(id) << " at " << times.size();
    if (!bit(mask, id)) break;
    matcher.accept(id);
  }
  EXPECT_TRUE(matcher.is_complete());
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], times.back(), times.size()};
}

class GrammarSpeed : public testing::TestWithParam<const char*> {};

TEST_P(GrammarSpeed, MasksOfJson) {
#if defined(SNAPKV_SANITIZED)
  GTEST_SKIP() << "a sanitizer's checks would be timed";
#endif
  const char* const data = std::getenv("SNAPKV_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "SNAPKV_TEST_DATA is not set";
  const auto tokenizer = Tokenizer::load(fmt::format("{}/vocab/{}.gguf", data, GetParam()));
  const auto begin = std::chrono::steady_clock::now();
  const auto vocabulary = std::make_shared<const GrammarVocabulary>(*tokenizer);
  const std::chrono::duration<double, std::milli> made = std::chrono::steady_clock::now() - begin;
  fmt::print("{}: {} tokens, vocabulary made in {:.0f} ms\n", GetParam(), vocabulary->n_vocab(),
             made.count());
  const std::string text = document(5);
  for (const auto& [name, grammar] : {std::pair("schema", Grammar::from_json_schema(kSchema)),
                                      std::pair("any JSON", Grammar::json_object())}) {
    const GrammarMatcher matcher(grammar, vocabulary);
    for (const char* run : {"first answer", "second answer"}) {
      const Times t = measure(matcher, *tokenizer, text);
      fmt::print("{}, {}: {} steps, min {:.3f} median {:.3f} max {:.3f} ms\n", name, run, t.n_steps,
                 t.least, t.median, t.most);
      EXPECT_LT(t.median, 2.0) << name;
      EXPECT_LT(t.most, 100.0) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GrammarSpeed, testing::Values("deepseek-llm", "falcon"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace snapkv::test
