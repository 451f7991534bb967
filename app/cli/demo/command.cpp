// SPDX-License-Identifier: MIT
// snapkv demo: builds a long text with one fact in it, asks for the fact, and prints what a full
// cache and SnapKV answer, keep and cost, side by side.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/cache_table.h"
#include "cli/common/plain_text.h"
#include "cli/common/progress.h"
#include "cli/common/settings.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/demo/needle_model.h"
#include "cli/generate/generation.h"
#include "eval/needle/needle.h"

namespace snapkv::cli {
namespace {

constexpr int64_t kDecodeTokens = 64;  // enough to time; the answer is only the first seven
constexpr size_t kShownColumns = 76;

struct DemoSettings {
  ModelSettings model;
  CacheSettings cache = needle_cache_defaults();
  uint64_t seed = 1;
  int64_t length = 4000;
  double depth = 50;  // percent
  std::string name;
};

// The result of reading one prompt into a new session and continuing it greedily.
struct Run : CacheRun {
  std::string answer;
  bool right = false;
};

// Returns the answer in a text: "48213" for " 48213.\n..."
std::string answer_of(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_first_of(".\n", begin) - begin);
}

// Throws kCancelled after Ctrl-C or another signal.
Run run_needle(const std::shared_ptr<const Model>& model, const SessionOptions& options,
               const NeedlePrompt& prompt, int64_t n_predict, const ProgressFn& progress) {
  Run run;
  Session session(model, options);
  session.prefill(prompt.tokens, {.progress = progress});
  run.after_prefill = session.stats();
  Sampler sampler({.temperature = 0});
  Generation generation;
  generate(session, sampler, {.max_tokens = n_predict}, {}, generation);
  if (generation.stop_reason == StopReason::cancelled) fail(ErrorCode::kCancelled, "cancelled");
  run.at_end = session.stats();
  run.answer = answer_of(generation.text);
  run.right = run.answer == prompt.digits;
  return run;
}

// A row of the table, with a cell for each cache. Cells are padded before they are coloured.
struct Row {
  std::string label, full, kept;
  Style full_style = Style::bold, kept_style = Style::bold;
  bool styled = false;
};

std::string shortened(const std::string& text) {
  const std::string line = printable(text.substr(0, 4 * kShownColumns));
  if (line.size() <= kShownColumns) return line;
  return line.substr(0, kShownColumns - 3) + "...";
}

// Returns the lines of a text that are not empty.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string show_text(const NeedlePrompt& p, bool colour) {
  const auto tokens = static_cast<int64_t>(p.tokens.size());
  std::string text = fmt::format(
      "A text of {}; the fact stands at token {}, {:.0f}% into it:\n\n", plural(tokens, "token"),
      p.fact_token, 100.0 * static_cast<double>(p.fact_token) / static_cast<double>(tokens));
  const auto skipped = [](size_t n) {
    return n > 0 ? fmt::format("    [{} more]\n", plural(static_cast<int64_t>(n), "paragraph"))
                 : "";
  };
  const std::vector<std::string> before = lines_of(p.before), after = lines_of(p.after);
  if (!before.empty()) text += "  " + shortened(before.front()) + "\n" + skipped(before.size() - 1);
  text += "  " + paint(Style::bold, terminal_text(p.fact, 1000), colour) + "\n";
  if (!after.empty()) text += skipped(after.size() - 1) + "  " + shortened(after.back()) + "\n";
  std::string question = message_text(p.question);
  for (size_t at = 0; (at = question.find('\n', at)) != std::string::npos; at += 3) {
    question.replace(at, 1, "\n  ");
  }
  return text + question + " ...\n\n";
}

std::vector<Row> table_rows(const Run& full, const Run& kept) {
  const auto verdict = [](const Run& run) { return run.right ? "right" : "wrong"; };
  const auto verdict_style = [](const Run& run) { return run.right ? Style::green : Style::red; };
  std::vector<Row> rows = {
      {"answer", terminal_text(full.answer, 200), terminal_text(kept.answer, 200), Style::bold,
       Style::bold, true},
      {"", verdict(full), verdict(kept), verdict_style(full), verdict_style(kept), true}};
  for (const CacheTableRow& row : cache_rows(full, kept)) {
    rows.push_back({row.label, row.first, row.second});
  }
  return rows;
}

std::string show_table(const std::vector<Row>& rows, const PolicyConfig& policy, bool colour) {
  std::string text = fmt::format("{:<24}  {:<14}  {}\n", "", "full cache", cache_name(policy));
  for (const Row& row : rows) {
    const bool painted = colour && row.styled;
    text += fmt::format("{:<24}  {}  {}\n", row.label,
                        paint(row.full_style, fmt::format("{:<14}", row.full), painted),
                        paint(row.kept_style, row.kept, painted));
  }
  return text + fmt::format("{}: {}\n", policy.name, describe_policy(policy));
}

// Shows the shape of K and V, which is the same; a range where heads keep different counts.
std::string show_shapes(const ModelInfo& m, const SessionStats& before, const SessionStats& after) {
  std::vector<int64_t> counts;
  for (const auto& layer : after.layers) {
    counts.insert(counts.end(), layer.n_kept.begin(), layer.n_kept.end());
  }
  const int64_t total = before.layers.empty() ? 0 : before.layers.front().n_total;
  const std::string kept = format_range(counts);
  std::string text = fmt::format("\nEach of {}:\n", plural(m.n_layer, "layer"));
  for (const char* tensor : {"K", "V"}) {
    text += fmt::format("  {} [1, {}, {}, {}] -> [1, {}, {}, {}]\n", tensor, m.n_head_kv, total,
                        m.head_dim, m.n_head_kv, kept, m.head_dim);
  }
  return text;
}

// Runs the kernels once: their preparation for a shape must not count against the full cache.
void warm_up(const std::shared_ptr<const Model>& model, const SessionOptions& options,
             const NeedlePrompt& prompt) {
  NeedlePrompt part;
  const auto n = std::min<int64_t>(options.chunk, std::ssize(prompt.tokens));
  part.tokens.assign(prompt.tokens.begin(), prompt.tokens.begin() + n);
  run_needle(model, options, part, 2, {});
}

int run_demo(const DemoSettings& s, const CommonSettings& common) {
  session_options(s.cache, 0);  // refuses invalid options before a model is loaded
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_needle_model(s.model, progress.callback());
  const ModelInfo& info = model->info();
  if (info.n_head == 0) {
    fail(ErrorCode::kUsage, "{} has no attention: every cache of it is the same", info.path);
  }
  const SessionOptions kept_options = resolve_options(session_options(s.cache, 0, &info), info);
  SessionOptions full_options = kept_options;
  full_options.kv = {.name = "full"};
  const NeedlePrompt prompt = make_needle_prompt(
      *model, {.length = s.length, .depth = s.depth / 100, .name = s.name, .seed = s.seed});
  progress.clear();
  const bool colour = colour_stdout();
  write_stdout(fmt::format("{}: {}, {} query heads, {} KV heads of {}, {}\n",
                           terminal_text(info.name.empty() ? info.path : info.name, 300),
                           plural(info.n_layer, "layer"), info.n_head, info.n_head_kv,
                           info.head_dim, format_bytes(info.weight_bytes)));
  write_styled_stdout(show_text(prompt, colour));

  warm_up(model, full_options, prompt);
  const auto run = [&](const SessionOptions& options) {
    return run_needle(model, options, prompt, kDecodeTokens, progress.callback());
  };
  const Run full = run(full_options);
  const Run kept = run(kept_options);
  progress.clear();
  write_styled_stdout(show_table(table_rows(full, kept), kept_options.kv, colour));
  write_stdout(show_shapes(info, full.after_prefill, kept.after_prefill));
  return 0;
}

}  // namespace

Command add_demo_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<DemoSettings>();
  CLI::App* app = root.add_subcommand(
      "demo", "Hide a fact in a long text, ask for it: full cache beside SnapKV");
  app->add_option("--length", s->length, "Tokens of the text and the question")
      ->check(whole_number(1, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--depth", s->depth,
                  "Where the fact stands, in percent of the text; it gets the nearest line end")
      ->check(real_number(0, 100))
      ->type_name("P")
      ->capture_default_str();
  app->add_option("--name", s->name, "The city asked about [default: chosen by the seed]")
      ->check(CLI::IsMember(eval::needle_names()))
      ->type_name("CITY");
  app->add_option("--seed", s->seed, "Another seed, another text, city and number")
      ->check(seed_number())
      ->type_name("N")
      ->capture_default_str();
  add_model_options(*app, s->model);
  add_running_options(*app, s->model);
  add_cache_options(*app, s->cache);
  return {app, [s, &common] { return run_demo(*s, common); }};
}

}  // namespace snapkv::cli
