// SPDX-License-Identifier: MIT
// snapkv eval make-qa: makes questions about the user's texts, for eval qa
// (eval/make_qa/make_qa.h).
#include "eval/make_qa/make_qa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/write_file.h"
#include "cli/common/number_options.h"
#include "cli/common/output_files.h"
#include "cli/common/terminal.h"
#include "cli/eval/options.h"
#include "cli/tokenize/vocabulary.h"

namespace snapkv::cli {
namespace {

struct MakeQaSettings {
  VocabularySettings vocabulary;
  std::vector<std::string> texts;
  std::string out;
  eval::MakeQaOptions made;
};

int run_make_qa(MakeQaSettings s) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (s.made.n_tokens > 0) {
    tokenizer = load_vocabulary(s.vocabulary);
    s.made.count_tokens = [&](std::string_view text) {
      return std::ssize(tokenizer->encode(text, false, false));
    };
  }
  const eval::MakeQaFiles texts = eval::list_texts(s.texts);
  const eval::MadeQa made = eval::make_qa(texts, s.made);
  if (!made.skipped.empty()) {
    constexpr size_t kMostNamed = 5;
    const std::vector<std::string> named(
        made.skipped.begin(),
        made.skipped.begin() + static_cast<int64_t>(std::min(kMostNamed, made.skipped.size())));
    write_stderr(
        fmt::format("snapkv: {} of {} files are left out, they are empty or no UTF-8 text: {}{}\n",
                    made.skipped.size(), texts.files.size(), fmt::join(named, ", "),
                    made.skipped.size() > kMostNamed ? ", ..." : ""));
  }
  write_file(s.out, made.lines);
  write_stdout(eval::make_qa_table(made) +
               fmt::format("For: snapkv eval qa --data {} --texts {}\n", s.out, texts.folder));
  return 0;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const eval::MadeKind& kind : eval::made_kinds()) names.emplace_back(kind.name);
  return names;
}

std::string kinds_help() {
  std::string left_out;
  for (const eval::MadeKind& kind : eval::made_kinds()) {
    if (!kind.by_name_only) continue;
    left_out += fmt::format("{} {}", left_out.empty() ? " but" : ",", kind.name);
  }
  std::string help = fmt::format("Kinds of questions [default: all{}]:", left_out);
  for (const eval::MadeKind& kind : eval::made_kinds()) {
    help += fmt::format("{} {} ({})", help.back() == ':' ? "" : ",", kind.name, kind.about);
  }
  return help;
}

}  // namespace

Command add_eval_make_qa(CLI::App& eval) {
  constexpr int64_t kFewest = 1000;  // bytes or tokens: more than a sentence
  auto s = std::make_shared<MakeQaSettings>();
  CLI::App* app = eval.add_subcommand(
      "make-qa", "Write questions about texts by rule, for eval qa; no model is asked");
  app->add_option("--texts", s->texts, "Texts: files, and folders with all that is in them")
      ->required()
      ->type_name("FILE|DIR");
  mark_output(app->add_option("-o,--out", s->out, "Write the questions here"), OutputKind::file)
      ->required()
      ->type_name("FILE");
  app->add_option("--kinds", s->made.kinds, kinds_help())
      ->check(CLI::IsMember(kind_names()))
      ->delimiter(',')
      ->type_name("NAME,...");
  app->add_option("--per-text", s->made.per_text, "Questions of each kind about a text, at most")
      ->check(whole_number(1, kMostSamples))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--seed", s->made.seed, "Another seed, other questions")
      ->check(seed_number())
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* const bytes =
      app->add_option("--bytes", s->made.n_bytes,
                      "Cut longer texts to so many bytes, from a sentence that is drawn")
          ->check(whole_number(kFewest, kMostBytes))
          ->type_name("N")
          ->capture_default_str();
  app->add_option("--length", s->made.n_tokens,
                  "The same in tokens of the model, instead of --bytes; planted facts come on top")
      ->check(whole_number(kFewest, kMostTokens))
      ->type_name("TOKENS")
      ->excludes(bytes);
  add_vocabulary_options(*app, s->vocabulary);
  return {app, [s] { return run_make_qa(*s); }};
}

}  // namespace snapkv::cli
