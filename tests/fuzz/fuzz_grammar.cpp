// SPDX-License-Identifier: MIT
// The fuzz target for grammars, JSON schemas and regular expressions: libFuzzer's entry point
// (preset `fuzz`), also linked into tests/text/grammar, which replays corpus_grammar/ and mutations
// of it.
#include "tests/fuzz/fuzz_grammar.h"

#include <cstdint>

#include "base/check.h"
#include "tests/fuzz/time_limit.h"
#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {

GrammarUse use_hostile_grammar(std::string_view bytes) {
  const size_t end = bytes.find('\0');
  const std::string_view text =
      end == std::string_view::npos ? std::string_view() : bytes.substr(end + 1);
  if (bytes.empty()) return GrammarUse::kNoGrammar;
  const std::string_view source = bytes.substr(1, end == std::string_view::npos ? end : end - 1);
  GrammarUse outcome = GrammarUse::kNoGrammar;
  try {
    const Grammar grammar = bytes[0] == 's'   ? Grammar::from_json_schema(source)
                            : bytes[0] == 'r' ? Grammar::from_regex(source)
                                              : Grammar::parse(source);
    GrammarMatcher matcher(grammar, byte_vocabulary());
    outcome = GrammarUse::kRefusedText;
    std::vector<uint64_t> mask;
    for (const char c : text) {
      matcher.mask(mask);
      const bool is_allowed = bit(mask, static_cast<unsigned char>(c));
      SNAPKV_CHECK(bit(mask, kByteVocabularyEnd) == matcher.is_complete());
      try {
        matcher.accept(static_cast<unsigned char>(c));
        SNAPKV_CHECK(is_allowed);
      } catch (const Error& e) {
        SNAPKV_CHECK(!is_allowed || e.code() == ErrorCode::kRuntime);
        return outcome;
      }
    }
    outcome = GrammarUse::kText;
  } catch (const Error&) {
    // the expected outcome for bad input
  }
  return outcome;
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::use_hostile_grammar({reinterpret_cast<const char*>(data), size});
  return 0;
}
