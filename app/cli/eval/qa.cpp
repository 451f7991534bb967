// SPDX-License-Identifier: MIT
// snapkv eval qa: asks questions about real texts (eval/qa/qa.h).
#include "eval/qa/qa.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/terminal.h"
#include "cli/eval/options.h"
#include "eval/qa/after.h"

namespace snapkv::cli {
namespace {

struct QaSettings {
  EvalSettings eval;
  std::string data, texts;
  std::string half;
  int64_t n_samples = 0;  // of each kind; 0: all
  int64_t n_joined = 0;   // tokens of documents made of several texts; 0: each text is one
  int64_t n_earlier = 0;  // other questions of the conversation before each
  std::vector<std::string> modes = {"append", "refresh"};  // with n_earlier
  bool no_prefix = false;
  eval::QaOptions qa;
};

int run_qa(QaSettings s, const CommonSettings& common) {
  include_full_cache(s.eval);  // only questions that it answers count
  s.qa.n_predict = s.eval.n_predict;
  std::vector<eval::QaQuestion> questions = eval::read_qa(s.data, s.texts, s.half);
  if (s.no_prefix) {
    for (eval::QaQuestion& question : questions) question.lead.clear();
  }
  if (s.n_earlier > 0) {
    for (const std::string& mode : s.modes) s.eval.refresh_modes.push_back(mode == "refresh");
  }
  EvalRun run(s.eval, common);
  if (s.n_joined > 0) questions = run.join(questions, s.n_joined, s.qa.n_predict);
  if (s.n_earlier > 0) questions = eval::ask_after_others(std::move(questions), s.n_earlier);
  if (s.n_samples > 0) questions = eval::first_of_each_kind(std::move(questions), s.n_samples);
  s.qa.format = prompt_format(s.eval, *run.model());
  const eval::QaItems items = eval::qa_items(run.model(), questions, s.qa);
  if (items.n_left_out > 0) {
    write_stderr(fmt::format("snapkv: {} of {} questions are left out, by --max-length\n",
                             items.n_left_out, questions.size()));
  }
  eval::run_items(run.options(), items.items, run.file());
  run.finish(eval::qa_table(run.options(), items, run.file()));
  return 0;
}

void add_qa_options(CLI::App& app, QaSettings& s) {
  constexpr const char* kGroup = "Questions";
  app.add_option("--data", s.data, "The questions, a JSON object a line (docs/evaluation.md)")
      ->required()
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--texts", s.texts, "Folder of the texts that the questions name")
      ->type_name("DIR")
      ->group(kGroup);
  add_half_option(app, s.half, kGroup);
  app.add_flag("--no-prefix", s.no_prefix,
               "Let the model begin its answers itself, also where the data say how they begin")
      ->group(kGroup);
  const auto add = [&](const char* name, int64_t& value, const char* help) {
    app.add_option(name, value, help)
        ->check(whole_number(1, kMostTokens))
        ->type_name("N")
        ->group(kGroup);
  };
  add("--samples", s.n_samples, "The first N questions of each kind [default: all]");
  add("--join", s.n_joined,
      "Put texts together to documents of up to N tokens, with questions that name their text");
  add("--max-length", s.qa.max_length,
      "Leave out prompts of more tokens [default: those beyond the model's context are an error]");
}

// Comes after add_question_option() and add_stored_option().
void add_conversation_options(CLI::App& app, QaSettings& s) {
  constexpr const char* kGroup = "Conversations";
  CLI::Option* const after =
      app.add_option("--after", s.n_earlier,
                     "Ask each question after N others about its text, with the full cache's "
                     "answers to them")
          ->check(whole_number(1, 40))
          ->type_name("N")
          ->group(kGroup)
          ->excludes(app.get_option("--question-agnostic"))
          ->excludes(app.get_option("--keep-full"));
  app.add_option("--modes", s.modes,
                 "What later questions see: append (what was kept) or refresh (all, as "
                 "--kv-refresh)")
      ->check(CLI::IsMember({"append", "refresh"}))
      ->delimiter(',')
      ->type_name("NAME,...")
      ->default_str("append,refresh")
      ->group(kGroup)
      ->needs(after);
}

}  // namespace

Command add_eval_qa(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<QaSettings>();
  s->eval.n_predict = s->qa.n_predict;
  CLI::App* app = eval.add_subcommand(
      "qa", "Questions about real texts: which a compressed cache answers as the full one does");
  add_qa_options(*app, *s);
  add_answer_option(*app, s->eval);
  add_chat_option(*app, s->eval);
  add_question_option(*app, s->eval);
  add_stored_option(*app, s->eval);
  add_conversation_options(*app, *s);
  add_eval_options(*app, s->eval, false);
  app->get_option("--after")->excludes(app->get_option("--kv-refresh"));  // --modes says it
  return {app, [s, &common] { return run_qa(*s, common); }};
}

}  // namespace snapkv::cli
