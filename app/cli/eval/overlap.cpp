// SPDX-License-Identifier: MIT
// snapkv eval overlap: measures the observations that SnapKV is based on (eval/overlap/overlap.h).
#include "eval/overlap/overlap.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "cli/eval/options.h"
#include "eval/common/haystack.h"

namespace snapkv::cli {
namespace {

struct OverlapSettings {
  EvalSettings eval;
  std::string haystack;
  std::string continuation = "greedy";
  eval::OverlapOptions overlap;
};

int run_overlap(OverlapSettings s, const CommonSettings& common) {
  s.overlap.seed = s.eval.seed;
  s.overlap.continue_text = s.continuation == "text";
  if (s.overlap.random_tokens && !s.haystack.empty()) {
    fail(ErrorCode::kUsage, "--random-tokens and --haystack exclude each other");
  }
  if (!s.haystack.empty()) s.overlap.haystack = eval::read_haystack(s.haystack);
  eval::validate(s.overlap);
  // nothing is dropped: the task measures attention itself
  s.eval.policies = {"full"};
  EvalRun run(s.eval, common);
  run.check_length(s.overlap.length, eval::longest_prompt(s.overlap) - s.overlap.length);
  eval::run_overlap(run.options(), s.overlap, run.file());
  run.finish(eval::overlap_tables(run.options(), s.overlap, run.file()));
  return 0;
}

void add_overlap_options(CLI::App& app, OverlapSettings& s) {
  constexpr const char* kGroup = "Overlap";
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return app.add_option(name, value, help)->type_name(type)->capture_default_str()->group(kGroup);
  };
  const auto count = [&](const char* name, auto& value, const char* help) {
    add(name, value, help, "N")->check(whole_number(1, 1 << 24));
  };
  eval::OverlapOptions& o = s.overlap;
  count("--length", o.length, "Tokens of the prompts, at most");
  count("--samples", o.n_samples, "Prompts");
  count("--windows", o.n_windows, "Last windows of the prompt to look at");
  count("--window-length", o.window_length, "Tokens of a window, of the prompt and after it");
  count("--gen-windows", o.n_gen_windows, "Windows of what follows the prompt");
  count("--question-window", o.question_window,
        "Two questions: tokens at the prompt's end that vote");
  count("--answer-length", o.n_answer, "Two questions: tokens of the answers");
  add("--p", o.p, "Share of the tokens that a window selects", "X")->check(real_number(0, 1));
  add("--theta", o.theta, "Attention, mean over a window, above which a token is used", "X")
      ->check(real_number(0, 1));
  add("--continuation", s.continuation,
      "What follows the prompt: greedy (the model's, ends ignored) or text (its own)", "NAME")
      ->check(CLI::IsMember({"greedy", "text"}));
  app.add_option("--haystack", s.haystack, "Folder of .txt files [default: generated sentences]")
      ->type_name("DIR")
      ->group(kGroup);
  app.add_flag("--random-tokens", o.random_tokens,
               "Prompts of random tokens, for models without words; without the two questions")
      ->group(kGroup);
}

}  // namespace

Command add_eval_overlap(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<OverlapSettings>();
  CLI::App* app = eval.add_subcommand(
      "overlap", "Whether windows of a prompt attend to what answers attend to");
  add_overlap_options(*app, *s);
  add_record_options(*app, s->eval);
  return {app, [s, &common] { return run_overlap(*s, common); }};
}

}  // namespace snapkv::cli
