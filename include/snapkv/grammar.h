// SPDX-License-Identifier: MIT
// Grammars constrain the form of an answer. A grammar is a text in GBNF, llama.cpp's notation, or
// is made from a JSON schema; a matcher tells, token by token, what may follow.
//
//   const auto vocabulary = std::make_shared<const snapkv::GrammarVocabulary>(model->tokenizer());
//   const auto grammar = snapkv::Grammar::from_json_schema(R"({"type": "object", ...})");
//   snapkv::Sampler sampler(config);
//   sampler.set_grammar(snapkv::GrammarMatcher(grammar, vocabulary));
//   ... sampler.sample(session.logits()) ...
//
// docs/grammar.md lists what GBNF and schemas may contain. Neither is trusted: size, nesting and
// the work for one token are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/error.h"

namespace snapkv {

class Tokenizer;

/// What of a schema is not in its grammar. Without one, a schema that says more than a grammar can
/// is an error.
struct SchemaRelaxation {
  std::vector<std::string> left_out;  ///< keywords and places: "uniqueItems (#/properties/tags)"
  int64_t repetitions = 100'000;      ///< that lengths and numbers of items may still take together
};

/// Immutable; copies share their data.
class Grammar {
 public:
  /// Reads GBNF; texts begin at the rule `root`. Throws Error{kUsage} "NAME: line L, column C: ..."
  /// if it is not a grammar, or for left recursion.
  static Grammar parse(std::string_view gbnf, std::string name = "grammar");
  /// The same for GBNF that json_schema_to_gbnf() made, or that has parts which it made: lengths
  /// and numbers of items may be larger.
  static Grammar parse_schema_rules(std::string_view gbnf, std::string name = "grammar");
  /// The JSON documents that a schema allows, properties in the schema's order. Throws
  /// Error{kUsage} "NAME: PLACE: ..." for what is not a schema; also for what a grammar can't say,
  /// unless there is a `relaxation`, to which it is added.
  static Grammar from_json_schema(std::string_view schema, std::string name = "JSON schema",
                                  SchemaRelaxation* relaxation = nullptr);
  /// The texts that an ECMA regular expression matches as a whole. Throws Error{kUsage} "NAME:
  /// pattern '...', character N: ..." for what is not an expression or what a grammar can't say,
  /// such as look-around.
  static Grammar from_regex(std::string_view pattern, std::string name = "regular expression");
  /// The grammar of any JSON object.
  static Grammar json_object();
  /// The grammar of any JSON value.
  static Grammar json_value();

  const std::string& name() const;
  /// The grammar in GBNF, also if it was made from a schema.
  const std::string& source() const;

 private:
  friend class GrammarMatcher;
  struct Impl;
  const Impl& impl() const;  // throws Error{kUsage} if the grammar was moved from
  explicit Grammar(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// The GBNF that Grammar::from_json_schema() makes of a schema: rules for a larger grammar, not
/// compiled on their own. Throws as that function does, except that left recursion is found only
/// when the rules are compiled.
std::string json_schema_to_gbnf(std::string_view schema, const std::string& name = "JSON schema",
                                SchemaRelaxation* relaxation = nullptr);

/// Writes a text as a GBNF literal, with quotes.
std::string gbnf_literal(std::string_view text);

/// A model's vocabulary in the form that matchers need: made once per model (some 50 ms), then
/// shared by all threads. No text that a grammar allows contains control tokens.
class GrammarVocabulary {
 public:
  explicit GrammarVocabulary(const Tokenizer& tokenizer);
  /// `pieces`: the bytes of each token, empty for those that are never allowed. `end_tokens`: the
  /// tokens that end an answer.
  GrammarVocabulary(std::vector<std::string> pieces, std::vector<int32_t> end_tokens);
  ~GrammarVocabulary();
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  int64_t n_vocab() const;

 private:
  friend class GrammarMatcher;
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// The progress of an answer within a grammar. Copies advance independently and share, also between
/// threads, what was computed for grammar and vocabulary: for many answers by one grammar, copy a
/// matcher.
class GrammarMatcher {
 public:
  GrammarMatcher(Grammar grammar, std::shared_ptr<const GrammarVocabulary> vocabulary);
  ~GrammarMatcher();
  GrammarMatcher(const GrammarMatcher&);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(const GrammarMatcher&);
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  /// The tokens that may come next: bit id % 64 of word id / 64. A token is allowed if its bytes
  /// begin a text that the grammar allows (they may end inside a character); a token that ends the
  /// answer is allowed if the answer may end. Throws Error{kRuntime} if the grammar is too
  /// ambiguous.
  void mask(std::vector<uint64_t>& allowed) const;
  /// Sets the logits of all other tokens to -inf; [n_vocab], or more for a model whose output is
  /// longer than its vocabulary. Throws as mask() does.
  void apply(std::span<float> logits) const;

  /// Accepts a token. Throws Error{kUsage} if it is not allowed; the state is then as before.
  void accept(int32_t id);
  /// Accepts any bytes, such as the text of an answer that is continued. Throws as accept() does.
  void accept_text(std::string_view bytes);

  /// Whether the answer may end here.
  bool is_complete() const;
  /// Whether anything except the end may follow.
  bool can_continue() const;
  const Grammar& grammar() const;
  /// Bytes of the masks that have been computed and are cached; copies share them.
  size_t mask_bytes() const;

 private:
  struct Shared;
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace snapkv
