// SPDX-License-Identifier: MIT
// Grammar and GrammarVocabulary.
#include "snapkv/grammar.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "snapkv/tokenizer.h"
#include "text/grammar/gbnf_parser.h"
#include "text/grammar/grammar_impl.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/schema_pattern.h"

namespace snapkv {
namespace {

std::vector<std::string> pieces_of(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces(static_cast<size_t>(tokenizer.n_vocab()));
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    if (tokenizer.is_control(id) || tokenizer.is_end_of_generation(id)) continue;
    pieces[id] = tokenizer.piece(id);
  }
  return pieces;
}

std::vector<int32_t> end_tokens_of(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    if (tokenizer.is_end_of_generation(id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace

namespace {

grammar::Automaton compile(std::string_view gbnf, const std::string& name,
                           const grammar::ParseLimits& limits) {
  const grammar::RuleSet rules = grammar::parse_gbnf(gbnf, name, limits);
  return grammar::Automaton(rules, name);
}

}  // namespace

Grammar Grammar::parse(std::string_view gbnf, std::string name) {
  grammar::Automaton automaton = compile(gbnf, name, {});
  return Grammar(
      std::make_shared<const Impl>(Impl{std::move(name), std::string(gbnf), std::move(automaton)}));
}

Grammar Grammar::parse_schema_rules(std::string_view gbnf, std::string name) {
  grammar::Automaton automaton = compile(gbnf, name, grammar::schema_limits());
  return Grammar(
      std::make_shared<const Impl>(Impl{std::move(name), std::string(gbnf), std::move(automaton)}));
}

Grammar Grammar::from_json_schema(std::string_view schema, std::string name,
                                  SchemaRelaxation* relaxation) {
  const std::string gbnf = grammar::schema_to_gbnf(schema, name, relaxation);
  return parse_schema_rules(gbnf, std::move(name));
}

Grammar Grammar::from_regex(std::string_view pattern, std::string name) {
  const std::string gbnf = "root ::= " + grammar::whole_text_pattern_to_gbnf(pattern, name);
  return parse_schema_rules(gbnf, std::move(name));
}

Grammar Grammar::json_object() {
  return from_json_schema(R"({"type": "object", "additionalProperties": true})", "JSON object");
}

Grammar Grammar::json_value() { return from_json_schema("{}", "JSON value"); }

std::string json_schema_to_gbnf(std::string_view schema, const std::string& name,
                                SchemaRelaxation* relaxation) {
  return grammar::schema_to_gbnf(schema, name, relaxation);
}

std::string gbnf_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      literal += fmt::format("\\x{:02X}", byte);
    } else {
      literal += c;
    }
  }
  return literal + '"';
}

const Grammar::Impl& Grammar::impl() const {
  if (impl_ == nullptr) fail(ErrorCode::kUsage, "the grammar was moved from");
  return *impl_;
}
const std::string& Grammar::name() const { return impl().name; }
const std::string& Grammar::source() const { return impl().source; }

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer)
    : GrammarVocabulary(pieces_of(tokenizer), end_tokens_of(tokenizer)) {}

GrammarVocabulary::GrammarVocabulary(std::vector<std::string> pieces,
                                     std::vector<int32_t> end_tokens) {
  std::vector<bool> is_end(pieces.size());
  for (const int32_t id : end_tokens) {
    if (id < 0 || id >= std::ssize(pieces)) {
      fail(ErrorCode::kUsage, "end token {} is not one of the {} tokens of the vocabulary", id,
           pieces.size());
    }
    is_end[id] = true;
    pieces[id].clear();
  }
  grammar::TokenTrie trie(pieces);
  impl_ = std::make_unique<const Impl>(
      Impl{std::move(pieces), std::move(end_tokens), std::move(is_end), std::move(trie)});
}

GrammarVocabulary::~GrammarVocabulary() = default;

int64_t GrammarVocabulary::n_vocab() const { return std::ssize(impl_->pieces); }

}  // namespace snapkv
