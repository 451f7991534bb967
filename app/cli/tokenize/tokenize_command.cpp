// SPDX-License-Identifier: MIT
// snapkv tokenize: turns a text into tokens; needs only a model's vocabulary.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/tokenize/vocabulary.h"
#include "eval/common/json_field.h"
#include "snapkv/tokenizer.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeSettings {
  VocabularySettings vocabulary;
  std::string text;
  std::string file;
  CLI::Option* text_option = nullptr;
  CLI::Option* file_option = nullptr;
  bool ids = false;
  bool count = false;
  bool json = false;
  bool json_lines = false;
  bool no_bos = false;
  bool plain_text = false;
};

void add_options(CLI::App& app, TokenizeSettings& s) {
  add_vocabulary_options(app, s.vocabulary);
  s.text_option = app.add_option("-p,--prompt", s.text, "The text")->type_name("TEXT");
  s.file_option =
      app.add_option("-f,--file", s.file, "Read the text from a file, all of it; - for stdin")
          ->type_name("FILE");
  app.add_flag("--ids", s.ids, "Print the ids alone, as in [1, 15043, 3186]");
  app.add_flag("--count", s.count, "Print the number of tokens alone");
  app.add_flag("--json", s.json, "Print one JSON object");
  app.add_flag("--json-lines", s.json_lines,
               "Every line of the text is a JSON string; print the ids of each on a line of its "
               "own");
  app.add_flag("--no-bos", s.no_bos,
               "Leave out the tokens that the model wants before and after a text");
  app.add_flag("--no-special", s.plain_text,
               "Take control tokens that are written out in the text as plain text");
}

std::string read_input(const TokenizeSettings& s) {
  const bool from_text = s.text_option->count() > 0, from_file = s.file_option->count() > 0;
  if (from_text == from_file) {
    fail(ErrorCode::kUsage, "{}: give the text either as -p TEXT or as -f FILE (- for stdin)",
         from_text ? "two texts" : "no text");
  }
  return from_text ? s.text : read_text(s.file);
}

std::string id_list(const std::vector<int32_t>& ids) {
  std::string text = "[";
  for (size_t i = 0; i < ids.size(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", ids[i]);
  return text + "]\n";
}

std::string table(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) {
    text += fmt::format("{:>8} -> '{}'\n", id, printable(tokenizer.piece(id, true)));
  }
  return text;
}

Json json_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Json tokens = Json::array();
  for (const int32_t id : ids) {
    tokens.push_back({{"id", id},
                      {"piece", tokenizer.piece(id, true)},
                      {"token", tokenizer.token_text(id)},
                      {"control", tokenizer.is_control(id)}});
  }
  return {{"tokenizer", tokenizer.description()},
          {"n_vocab", tokenizer.n_vocab()},
          {"n_tokens", ids.size()},
          {"tokens", std::move(tokens)}};
}

/// Returns the string in a line of JSON.
std::string string_of(std::string_view line, size_t number) {
  const Json json = eval::parse_json(line);
  if (!json.is_string()) {
    fail(ErrorCode::kUsage, "line {} of the text is not a JSON string", number);
  }
  return json.get<std::string>();
}

int run_tokenize(const TokenizeSettings& s) {
  if (s.ids + s.count + s.json + s.json_lines > 1) {
    fail(ErrorCode::kUsage, "--ids, --count, --json and --json-lines exclude each other");
  }
  const std::string input = read_input(s);
  const auto tokenizer = load_vocabulary(s.vocabulary);
  const auto ids_of = [&](std::string_view text) {
    return tokenizer->encode(text, !s.no_bos, !s.plain_text);
  };
  if (s.json_lines) {
    std::string_view rest = input;
    for (size_t number = 1; !rest.empty(); ++number) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      write_stdout(id_list(ids_of(string_of(rest.substr(0, end), number))));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return 0;
  }
  const std::vector<int32_t> ids = ids_of(input);
  if (s.ids) {
    write_stdout(id_list(ids));
  } else if (s.count) {
    write_stdout(fmt::format("{}\n", ids.size()));
  } else if (s.json) {
    write_stdout(json_of(*tokenizer, ids).dump(2, ' ', false, Json::error_handler_t::replace) +
                 "\n");
  } else {
    write_stdout(table(*tokenizer, ids));
  }
  return 0;
}

}  // namespace

Command add_tokenize_command(CLI::App& root, const CommonSettings&) {
  auto s = std::make_shared<TokenizeSettings>();
  CLI::App* app =
      root.add_subcommand("tokenize", "Show the tokens of a text, by a model's vocabulary");
  add_options(*app, *s);
  app->footer(
      "Example:\n"
      "  snapkv tokenize -m model.gguf -p \"Hello world\"\n"
      "       1 -> '<s>'\n"
      "   15043 -> ' Hello'\n"
      "    3186 -> ' world'");
  return {app, [s] { return run_tokenize(*s); }};
}

}  // namespace snapkv::cli
