// SPDX-License-Identifier: MIT
// snapkv inspect: reads a prompt and draws what its cache keeps and why, as one HTML page
// (docs/pictures.md), or writes the data as JSON. eval/inspect/inspect.h gathers the data.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/common/chat_settings.h"
#include "cli/common/output_files.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_length.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "eval/common/page.h"
#include "eval/inspect/inspect.h"

namespace snapkv::cli {
namespace {

struct InspectSettings {
  ModelSettings model;
  CacheSettings cache;
  PromptSettings prompt;
  bool as_chat = false;
  ChatSettings chat;
  bool no_bos = false;
  bool plain_text = false;
  std::string out;
  std::string json;
  std::vector<std::string> spotlights;
  int64_t text_limit = eval::InspectOptions{}.text_limit;
};

// Parses "17" or "17-40": positions from 0, inclusive.
AttentionProbe::Range parse_range(const std::string& text) {
  const char* const end = text.data() + text.size();
  int64_t first = 0, last = 0;
  std::from_chars_result result = std::from_chars(text.data(), end, first);
  last = first;
  if (result.ec == std::errc{} && result.ptr != end && *result.ptr == '-') {
    result = std::from_chars(result.ptr + 1, end, last);
  }
  if (result.ec != std::errc{} || result.ptr != end || first < 0 || last < first) {
    fail(ErrorCode::kUsage, "--spotlight {}: expected a position or a range as in 17 or 17-40",
         text);
  }
  return {first, last + 1};
}

std::string written(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return path;  // a device or a pipe
  return fmt::format("{} ({})", path, format_bytes(bytes));
}

int run_inspect(const InspectSettings& s, const CommonSettings& common) {
  if (s.out.empty() && s.json.empty()) {
    fail(ErrorCode::kUsage, "nothing to write: name a page with -o FILE.html, or --json FILE");
  }
  if (!s.out.empty()) eval::check_page(s.out);
  eval::InspectOptions options;
  session_options(s.cache, 0);  // refuses invalid options before a model is loaded
  options.text_limit = s.text_limit;
  for (const std::string& text : s.spotlights) options.spotlights.push_back(parse_range(text));
  if (s.as_chat) s.chat.variables();
  require_model(s.model);
  const std::string prompt = s.prompt.read();
  ProgressDisplay progress(!common.no_progress, common.verbose);
  options.model = load_model(s.model, progress.callback());
  options.session = session_options(s.cache, 0, &options.model->info());
  refuse_hopeless_length(*options.model, prompt, 0);
  options.tokens = s.as_chat ? s.chat.tokenize(*options.model, s.model.path, prompt, !s.no_bos)
                             : options.model->tokenize(prompt, !s.no_bos, !s.plain_text);
  options.shows_control = s.as_chat;
  if (options.tokens.empty()) fail(ErrorCode::kUsage, "the prompt is empty");
  refuse_beyond_context(options.model->info(), std::ssize(options.tokens), 0);
  options.progress = progress.callback();
  const eval::Json data = eval::inspect(options);
  progress.clear();
  if (!s.json.empty()) {
    write_file(s.json, eval::to_line(data) + "\n");
    write_stderr(fmt::format("snapkv: wrote {}\n", written(s.json)));
  }
  if (!s.out.empty()) {
    eval::write_page(s.out, data);
    write_stderr(fmt::format("snapkv: wrote {}: open it in a browser\n", written(s.out)));
  }
  return 0;
}

}  // namespace

Command add_inspect_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<InspectSettings>();
  CLI::App* app = root.add_subcommand(
      "inspect", "Draw what the cache keeps of a prompt, and what its tokens attend to");
  mark_output(
      app->add_option("-o,--out", s->out, "HTML page to write, one file with everything in it"),
      OutputKind::file)
      ->type_name("FILE");
  mark_output(app->add_option("--json", s->json, "Write the page's data as one JSON object"),
              OutputKind::file)
      ->type_name("FILE");
  app->add_option("--spotlight", s->spotlights,
                  "Also show what these tokens attend to: positions (17) or ranges (17-40)")
      ->delimiter(',')
      ->type_name("N,N-M,...");
  app->add_option("--text-limit", s->text_limit,
                  "Tokens whose text the page holds; of longer prompts the first and last ones")
      ->check(whole_number(0, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  s->prompt.add_options(*app, PromptSettings::Parts::document_and_question);
  app->add_flag("--no-bos", s->no_bos, "Don't begin the prompt with the model's BOS token");
  app->add_flag("--no-special", s->plain_text,
                "Take control tokens that are written out in the prompt as plain text");
  s->chat.add_prompt_options(*app, s->as_chat);
  add_model_argument(*app, s->model);
  add_running_options(*app, s->model);
  add_cache_options(*app, s->cache);
  return {.app = app, .run = [s, &common] { return run_inspect(*s, common); }};
}

}  // namespace snapkv::cli
