// SPDX-License-Identifier: MIT
// snapkv eval needle: asks for facts hidden in long texts (eval/needle/needle.h).
#include "eval/needle/needle.h"

#include <CLI/CLI.hpp>

#include "cli/eval/options.h"
#include "eval/common/haystack.h"

namespace snapkv::cli {
namespace {

struct NeedleSettings {
  EvalSettings eval;
  std::string kind = "single";
  std::string haystack;
  eval::NeedleOptions needle;
};

int run_needle(NeedleSettings s, const CommonSettings& common) {
  s.needle.kind = eval::needle_kind(s.kind);
  s.needle.seed = s.eval.seed;
  s.needle.n_predict = s.eval.n_predict;
  if (!s.haystack.empty()) s.needle.haystack = eval::read_haystack(s.haystack);
  EvalRun run(s.eval, common);
  for (const int64_t length : s.needle.lengths) {
    run.check_length(length, s.needle.n_predict);
  }
  s.needle.format = prompt_format(s.eval, *run.model());
  run.ask(eval::needle_items(run.model(), s.needle));
  return 0;
}

void add_needle_options(CLI::App& app, NeedleSettings& s) {
  constexpr const char* kGroup = "Needle";
  app.add_option("--kind", s.kind, "single, multi-key, multi-value, multi-query or text")
      ->check(CLI::IsMember({"single", "multi-key", "multi-value", "multi-query", "text"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kGroup);
  add_lengths_option(app, s.needle.lengths, "Tokens of the prompts", kGroup);
  const auto add = [&](const char* name, auto& value, const char* help, int64_t high) {
    app.add_option(name, value, help)
        ->check(whole_number(1, high))
        ->type_name("N")
        ->capture_default_str()
        ->group(kGroup);
  };
  add("--depths", s.needle.n_depths, "Depths of the fact, from the beginning to the end", 1000);
  add("--samples", s.needle.n_samples, "Prompts of each length and depth", 100'000);
  add("--facts", s.needle.n_facts, "Facts of the multi kinds", 40);
  app.add_option("--haystack", s.haystack, "Folder of .txt files [default: generated sentences]")
      ->type_name("DIR")
      ->group(kGroup);
}

}  // namespace

Command add_eval_needle(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<NeedleSettings>();
  CLI::App* app = eval.add_subcommand("needle", "Facts hidden in long texts");
  add_needle_options(*app, *s);
  add_answer_option(*app, s->eval);
  add_chat_option(*app, s->eval);
  add_question_option(*app, s->eval);
  add_stored_option(*app, s->eval);
  add_eval_options(*app, s->eval);
  return {app, [s, &common] { return run_needle(*s, common); }};
}

}  // namespace snapkv::cli
