// SPDX-License-Identifier: MIT
// snapkv detokenize: turns token ids into text; needs only a model's vocabulary.
#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/tokenize/vocabulary.h"
#include "snapkv/tokenizer.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DetokenizeSettings {
  VocabularySettings vocabulary;
  std::string ids;
  std::string file;
  CLI::Option* ids_option = nullptr;
  CLI::Option* file_option = nullptr;
  bool show_control = false;
  bool json = false;
  bool json_lines = false;
};

void add_options(CLI::App& app, DetokenizeSettings& s) {
  add_vocabulary_options(app, s.vocabulary);
  s.ids_option =
      app.add_option("-i,--ids", s.ids,
                     "The ids, with spaces or commas between them; brackets around are allowed")
          ->type_name("IDS");
  s.file_option = app.add_option("-f,--file", s.file, "Read the ids from a file; - for stdin")
                      ->type_name("FILE");
  app.add_flag("--control", s.show_control, "Write control tokens too, as in </s>");
  app.add_flag("--json", s.json,
               "Print one JSON object; what is no UTF-8 in the text becomes U+FFFD");
  app.add_flag(
      "--json-lines", s.json_lines,
      "Every line has the ids of a text; print each text as a JSON string on a line of its "
      "own");
}

std::string read_input(const DetokenizeSettings& s) {
  const bool from_text = s.ids_option->count() > 0, from_file = s.file_option->count() > 0;
  if (from_text == from_file) {
    fail(ErrorCode::kUsage, "{}: give the ids either as -i IDS or as -f FILE (- for stdin)",
         from_text ? "ids twice" : "no ids");
  }
  return from_text ? s.ids : read_text(s.file);
}

std::vector<int32_t> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,;[]";
  std::vector<int32_t> ids;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return ids;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      fail(ErrorCode::kUsage, "'{}' is not a token id", printable(word.substr(0, 64)));
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_detokenize(const DetokenizeSettings& s) {
  if (s.json && s.json_lines) fail(ErrorCode::kUsage, "--json and --json-lines exclude each other");
  const std::string input = read_input(s);
  if (s.json_lines) {
    const auto tokenizer = load_vocabulary(s.vocabulary);
    for (std::string_view rest = input; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      write_stdout(
          json_text(tokenizer->decode(parse_ids(rest.substr(0, end)), s.show_control), -1));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return 0;
  }
  const std::vector<int32_t> ids = parse_ids(input);
  const auto tokenizer = load_vocabulary(s.vocabulary);
  const std::string text = tokenizer->decode(ids, s.show_control);
  if (s.json) {
    const Json json = {
        {"tokenizer", tokenizer->description()}, {"n_tokens", ids.size()}, {"text", text}};
    write_stdout(json_text(json, 2));
    return 0;
  }
  write_stdout(text);
  if (stdout_is_terminal() && !text.ends_with('\n')) write_stdout("\n");
  return 0;
}

}  // namespace

Command add_detokenize_command(CLI::App& root, const CommonSettings&) {
  auto s = std::make_shared<DetokenizeSettings>();
  CLI::App* app = root.add_subcommand("detokenize", "Write the text of token ids, byte for byte");
  add_options(*app, *s);
  app->footer(
      "Example:\n"
      "  snapkv detokenize -m model.gguf -i \"1, 15043, 3186\"\n"
      "  Hello world");
  return {app, [s] { return run_detokenize(*s); }};
}

}  // namespace snapkv::cli
