// SPDX-License-Identifier: MIT
#include "cli/common/grammar_settings.h"

#include <CLI/CLI.hpp>

#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

constexpr const char* kGrammar = "--grammar";
constexpr const char* kGrammarFile = "--grammar-file";
constexpr const char* kSchema = "--json-schema";
constexpr const char* kSchemaFile = "--json-schema-file";

}  // namespace

void GrammarSettings::add_options(CLI::App& command) {
  command_ = &command;
  constexpr const char* kGroup = "Grammar";
  command.add_option(kGrammar, grammar_, "Only answers that this grammar allows (docs/grammar.md)")
      ->type_name("GBNF")
      ->group(kGroup);
  command.add_option(kGrammarFile, grammar_file_, "The same, read from a file")
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option("-j,--json-schema", schema_,
                  "Only JSON documents that this schema allows; {}: any, {\"type\": \"object\"}: "
                  "any object")
      ->type_name("SCHEMA")
      ->group(kGroup);
  command.add_option(kSchemaFile, schema_file_, "The same, read from a file")
      ->type_name("FILE")
      ->group(kGroup);
  const char* const names[] = {kGrammar, kGrammarFile, kSchema, kSchemaFile};
  for (const char* const one : names) {
    for (const char* const other : names) {
      if (one != other) command.get_option(one)->excludes(command.get_option(other));
    }
  }
}

std::optional<Grammar> GrammarSettings::read() const {
  if (command_ == nullptr) return std::nullopt;
  const auto given = [&](const char* name) { return command_->get_option(name)->count() > 0; };
  if (given(kGrammar)) return Grammar::parse(grammar_, kGrammar);
  if (given(kGrammarFile)) return Grammar::parse(read_text(grammar_file_), grammar_file_);
  if (given(kSchema)) return Grammar::from_json_schema(schema_, kSchema);
  if (given(kSchemaFile)) return Grammar::from_json_schema(read_text(schema_file_), schema_file_);
  return std::nullopt;
}

}  // namespace snapkv::cli
