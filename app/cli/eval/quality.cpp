// SPDX-License-Identifier: MIT
// snapkv eval quality: how many of its answers a model keeps with fewer rows
// (eval/quality/quality.h).
#include "eval/quality/quality.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/timer.h"
#include "base/write_file.h"
#include "cli/common/output_files.h"
#include "cli/common/terminal.h"
#include "cli/eval/options.h"
#include "eval/qa/data.h"
#include "snapkv/policy.h"

namespace snapkv::cli {
namespace {

struct QualitySettings {
  EvalSettings eval;
  std::string policy = kDefaultPolicy;
  std::vector<int64_t> budgets = {64, 128, 256, 512};
  std::string data, texts = "texts", picture, json;
  int64_t minutes = 10;
  bool no_chat = false;
  eval::QualityOptions quality;
};

std::vector<eval::QaQuestion> read_questions(const QualitySettings& s, bool has_texts) {
  if (s.data.empty()) return eval::built_in_questions(s.texts);
  return eval::read_qa(s.data, has_texts ? s.texts : "");
}

void write_results(const QualitySettings& s, const EvalRun& run,
                   const eval::QualityResult& result) {
  if (!s.json.empty()) {
    write_file(s.json, eval::quality_json(run.options(), result).dump(2) + "\n");
  }
  if (s.picture.empty()) return;
  if (eval::count_answered(result) == 0) {
    write_stderr("snapkv: no picture: the full cache answers nothing\n");
    return;
  }
  write_file(s.picture, eval::quality_picture(result));
}

int run_quality(QualitySettings s, const CommonSettings& common, bool has_texts) {
  std::sort(s.budgets.begin(), s.budgets.end());
  s.eval.policies = {"full", s.policy};
  s.eval.lists[0].values.assign(s.budgets.begin(), s.budgets.end());
  if (policy_info(s.policy).find("least_attention") != nullptr) {
    s.eval.lists[0].values.emplace_back(kAutoBudget);
  }
  const std::vector<eval::QaQuestion> questions = read_questions(s, has_texts);
  EvalRun run(s.eval, common);
  if (s.quality.n_document > 0) run.check_length(s.quality.n_document, s.quality.n_predict);
  s.eval.as_chat = !s.no_chat && !run.model()->chat().templates.empty();
  s.quality.format = prompt_format(s.eval, *run.model());
  s.quality.seconds = static_cast<double>(60 * s.minutes);
  // questions of one's own need titles for documents, which few have
  s.quality.asks_documents = s.data.empty() || s.quality.n_document > 0;
  const Timer timer;
  int64_t n_begun = 0;
  run.options().progress = [&](int64_t, int64_t) {
    run.show_progress(fmt::format("question {}", ++n_begun),
                      std::min(1.0, timer.seconds() / s.quality.seconds));
  };
  const eval::QualityResult result =
      eval::measure_quality(run.options(), questions, s.quality, run.file());
  run.finish(eval::quality_report(result));
  write_results(s, run, result);
  return 0;
}

void add_quality_files(CLI::App& app, QualitySettings& s) {
  constexpr const char* kGroup = "Quality";
  const auto output = [&](const char* name, std::string& file, const char* help) {
    mark_output(app.add_option(name, file, help), OutputKind::file)
        ->type_name("FILE")
        ->group(kGroup);
  };
  output("--svg", s.picture, "Draw the result as a picture, for light and dark pages");
  output("--json", s.json, "Write the result as JSON");
  app.add_option("--data", s.data,
                 "Questions of your own instead of the built-in ones, as for eval qa")
      ->type_name("FILE")
      ->group(kGroup);
}

void add_quality_options(CLI::App& app, QualitySettings& s) {
  constexpr const char* kGroup = "Quality";
  app.add_option("--texts", s.texts, "Folder of the texts, which `make texts` fetches")
      ->type_name("DIR")
      ->capture_default_str()
      ->group(kGroup);
  add_quality_files(app, s);
  app.add_option("--minutes", s.minutes, "Time for questions; more time, more of them")
      ->check(whole_number(1, 100'000))
      ->type_name("N")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--budgets", s.budgets, "Rows kept")
      ->check(whole_number(1, kMostTokens))
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("64,128,256,512")
      ->group(kGroup);
  std::vector<std::string> policies = policy_names();
  std::erase_if(policies, [](const auto& name) { return !policy_info(name).has_budget; });
  app.add_option("--policy", s.policy, "Policy that chooses the rows")
      ->check(CLI::IsMember(policies))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--length", s.quality.n_document,
                 "Tokens of the documents made of several texts [default: 16000, or 8000 "
                 "where time or context are short; none with --data]")
      ->check(whole_number(1, kMostTokens))
      ->type_name("TOKENS")
      ->group(kGroup);
  app.add_flag("--no-chat", s.no_chat, "Ask in plain text even if the model has a chat template")
      ->group(kGroup);
}

}  // namespace

Command add_eval_quality(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<QualitySettings>();
  CLI::App* app = eval.add_subcommand(
      "quality", "How many of its answers your model keeps with fewer rows, in ten minutes");
  add_quality_options(*app, *s);
  add_record_options(*app, s->eval, false);
  const CLI::Option* const texts = app->get_option("--texts");
  return {app, [s, texts, &common] { return run_quality(*s, common, texts->count() > 0); }};
}

}  // namespace snapkv::cli
