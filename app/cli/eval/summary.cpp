// SPDX-License-Identifier: MIT
// snapkv eval summary: how many facts summaries of whole texts name with fewer rows
// (eval/summary/summary.h).
#include "eval/summary/summary.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "cli/common/terminal.h"
#include "cli/eval/options.h"
#include "eval/common/text_files.h"
#include "eval/quality/quality.h"

namespace snapkv::cli {
namespace {

struct SummarySettings {
  EvalSettings eval;
  std::vector<std::string> files;  // texts of the user's own; empty: those of data
  std::string data, texts = "texts", half;
  std::vector<std::string> kinds;  // empty: all
  int64_t n_samples = 0;           // of each kind; 0: all
  int64_t n_joined = 0;            // tokens of documents made of several texts; 0: each text is one
  eval::SummaryOptions summary;
};

/// The texts of files, as if there were a question about each.
std::vector<eval::QaQuestion> texts_of_files(const std::vector<std::string>& files) {
  std::vector<eval::QaQuestion> texts;
  for (const eval::TextFile& file : eval::read_texts(files, std::cin)) {
    eval::QaQuestion text;
    text.context = std::make_shared<const eval::QaContext>(
        eval::QaContext{file.path, file.content, hash64(file.content)});
    text.title = std::filesystem::path(file.path).filename().string();
    text.kind = "text";
    text.place = file.path;
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Keeps the texts of these kinds; throws kUsage, naming all kinds, if there are none of one.
void choose_kinds(const std::vector<std::string>& kinds, std::vector<eval::QaQuestion>& texts) {
  if (kinds.empty()) return;
  std::set<std::string> known;
  for (const eval::QaQuestion& text : texts) known.insert(text.kind);
  for (const std::string& kind : kinds) {
    if (known.contains(kind)) continue;
    fail(ErrorCode::kUsage, "--kinds {}: the texts are of the kinds {}", kind,
         fmt::join(known, ", "));
  }
  std::erase_if(texts, [&](const eval::QaQuestion& text) {
    return std::find(kinds.begin(), kinds.end(), text.kind) == kinds.end();
  });
}

std::vector<eval::QaQuestion> read_summary_texts(const SummarySettings& s, bool has_texts) {
  std::vector<eval::QaQuestion> texts;
  if (!s.files.empty()) {
    texts = texts_of_files(s.files);
  } else if (!s.data.empty()) {
    texts = eval::read_qa(s.data, has_texts ? s.texts : "", s.half);
  } else {
    texts = eval::built_in_questions(s.texts, s.half.empty() ? "report" : s.half);
  }
  texts = eval::first_of_each_text(std::move(texts));
  choose_kinds(s.kinds, texts);
  return texts;
}

int run_summary(SummarySettings s, const CommonSettings& common, bool has_texts) {
  include_full_cache(s.eval);
  s.summary.n_predict = s.eval.n_predict;
  s.summary.has_several = s.n_joined > 0;
  std::vector<eval::QaQuestion> texts = read_summary_texts(s, has_texts);
  EvalRun run(s.eval, common);
  if (s.n_joined > 0) {
    texts = eval::first_of_each_text(run.join(texts, s.n_joined, s.eval.n_predict));
    for (eval::QaQuestion& document : texts) {
      document.kind = "documents";
      document.title = document.context->name;
    }
  }
  if (s.n_samples > 0) texts = eval::first_of_each_kind(std::move(texts), s.n_samples);
  s.summary.format = prompt_format(s.eval, *run.model());
  const std::vector<eval::Item> items = eval::summary_items(run.model(), texts, s.summary);
  eval::run_items(run.options(), items, run.file());
  run.finish(eval::facts_table(run.options(), items, run.file()));
  return 0;
}

void add_summary_texts(CLI::App& app, SummarySettings& s) {
  constexpr const char* kGroup = "Summaries";
  CLI::Option* const files =
      app.add_option("--text", s.files, "Text files, folders of .txt files, or - for stdin")
          ->type_name("FILE")
          ->group(kGroup);
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return app.add_option(name, value, help)->type_name(type)->group(kGroup)->excludes(files);
  };
  add("--texts", s.texts, "Folder of the texts, which `make texts` fetches", "DIR")
      ->capture_default_str();
  add("--data", s.data,
      "The texts that these questions are about, as for eval qa [default: the built-in ones]",
      "FILE");
  add_half_option(app, s.half, kGroup)->excludes(files);
  app.add_option("--kinds", s.kinds, "Only texts of these kinds: prose, manual, reference, code")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->group(kGroup)
      ->excludes(files);
}

void add_summary_options(CLI::App& app, SummarySettings& s) {
  constexpr const char* kGroup = "Summaries";
  add_summary_texts(app, s);
  const auto add = [&](const char* name, int64_t& value, const char* help) {
    return app.add_option(name, value, help)
        ->check(whole_number(1, kMostTokens))
        ->type_name("N")
        ->group(kGroup);
  };
  add("--samples", s.n_samples, "The first N texts of each kind [default: all]");
  add("--join", s.n_joined, "Put texts together to documents of up to N tokens");
  add("--n-predict", s.eval.n_predict, "Tokens of a summary, at most")->capture_default_str();
  app.add_option("--refresh-limits", s.eval.refresh_limits,
                 "Rows beyond the budget after which the rows are chosen again from all "
                 "(--kv-refresh with a --kv-decode-limit); 0: never")
      ->check(whole_number(0, kMostTokens))
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str("0")
      ->group(kGroup);
}

}  // namespace

Command add_eval_summary(CLI::App& eval, const CommonSettings& common) {
  auto s = std::make_shared<SummarySettings>();
  s->eval.n_predict = s->summary.n_predict;
  s->eval.refresh_limits = {0};
  CLI::App* app = eval.add_subcommand(
      "summary", "Summaries of whole texts: facts that they name and invent with fewer rows");
  add_summary_options(*app, *s);
  add_chat_option(*app, s->eval);
  add_eval_options(*app, s->eval, false);
  for (const char* replaced : {"--kv-refresh", "--kv-decode-limit"}) {  // by --refresh-limits
    app->remove_option(app->get_option(replaced));
  }
  const CLI::Option* const texts = app->get_option("--texts");
  return {app, [s, texts, &common] { return run_summary(*s, common, texts->count() > 0); }};
}

}  // namespace snapkv::cli
