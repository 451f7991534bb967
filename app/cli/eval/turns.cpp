// SPDX-License-Identifier: MIT
// snapkv eval turns: asks several questions about one document, as in a chat (eval/turns/turns.h).
#include "eval/turns/turns.h"

#include <CLI/CLI.hpp>

#include "cli/eval/options.h"
#include "eval/common/haystack.h"

namespace snapkv::cli {
namespace {

struct TurnsSettings {
  EvalSettings eval;
  std::string haystack;
  std::vector<std::string> modes = {"append", "refresh"};
  eval::TurnsOptions turns;
};

int run_turns(TurnsSettings s, const CommonSettings& common) {
  s.turns.seed = s.eval.seed;
  if (!s.haystack.empty()) s.turns.haystack = eval::read_haystack(s.haystack);
  s.eval.refresh_modes.clear();
  for (const std::string& mode : s.modes) s.eval.refresh_modes.push_back(mode == "refresh");
  EvalRun run(s.eval, common);
  s.turns.format = prompt_format(s.eval, *run.model());
  for (const int64_t length : s.turns.lengths) {
    run.check_length(length, eval::later_tokens(*run.model(), s.turns));
  }
  const std::vector<eval::Item> items = eval::turns_items(run.model(), s.turns);
  eval::run_items(run.options(), items, run.file());
  run.finish(eval::summary_table(run.options(), items, run.file()) + "\n" +
             eval::turns_tables(run.options(), s.turns, items, run.file()));
  return 0;
}

void add_turns_options(CLI::App& app, TurnsSettings& s) {
  constexpr const char* kGroup = "Turns";
  add_lengths_option(app, s.turns.lengths, "Tokens of the document and the first question", kGroup);
  const auto add = [&](const char* name, auto& value, const char* help, int64_t low, int64_t high) {
    app.add_option(name, value, help)
        ->check(whole_number(low, high))
        ->type_name("N")
        ->capture_default_str()
        ->group(kGroup);
  };
  add("--questions", s.turns.n_questions, "Facts in a document, each asked for in its own turn", 2,
      40);
  add("--samples", s.turns.n_samples, "Documents of each length", 1, 100'000);
  add("--n-predict", s.turns.n_predict, "Tokens of an answer, at most; it ends with its first line",
      1, 1 << 20);
  app.add_option("--modes", s.modes,
                 "What later turns see: append (what was kept) or refresh (all, as --kv-refresh)")
      ->check(CLI::IsMember({"append", "refresh"}))
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("append,refresh")
      ->group(kGroup);
  app.add_option("--haystack", s.haystack, "Folder of .txt files [default: generated sentences]")
      ->type_name("DIR")
      ->group(kGroup);
}

}  // namespace

Command add_eval_turns(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<TurnsSettings>();
  CLI::App* app = eval.add_subcommand("turns", "Several questions about one document, in turn");
  add_turns_options(*app, *s);
  add_chat_option(*app, s->eval);
  add_question_option(*app, s->eval);
  add_eval_options(*app, s->eval);
  app->remove_option(app->get_option("--kv-refresh"));  // --modes replaces it
  return {app, [s, &common] { return run_turns(*s, common); }};
}

}  // namespace snapkv::cli
