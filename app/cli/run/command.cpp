// SPDX-License-Identifier: MIT
// snapkv run MODEL [FILE...] [QUESTION]: a chat at a terminal, an answer through a pipe, about
// documents.
#include "cli/chat/command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/documents.h"
#include "cli/generate/cite.h"
#include "cli/generate/command.h"
#include "cli/generate/limit_options.h"
#include "cli/models/local_models.h"

namespace snapkv::cli {
namespace {

struct RunSettings {
  GenerateSettings generate;
  std::string model;
  std::vector<std::string> words;
  bool no_history = false;
};

struct Words {
  std::vector<std::string> documents;
  std::string question;
};

/// Files first, then the question: the last word, unless it is a file or looks like one.
Words split(const std::vector<std::string>& words) {
  Words result;
  for (const std::string& word : words) {
    std::error_code error;
    const bool is_last = &word == &words.back();
    if (std::filesystem::exists(word, error)) {
      result.documents.push_back(word);
      continue;
    }
    const bool has_blank = word.find_first_of(" \t\n?!") != std::string::npos;
    if (!is_last || (!has_blank && std::filesystem::path(word).has_extension())) {
      fail(ErrorCode::kUsage,
           "there is no file {}: after the model come documents, and a question as the last word, "
           "in quotes",
           word);
    }
    result.question = word;
  }
  return result;
}

PromptText prompt_of(const Words& words, bool is_piped) {
  PromptText prompt;
  std::string& text = prompt.text;
  const auto add = [&](std::string part) {
    while (part.ends_with('\n')) part.pop_back();
    if (!part.empty()) text += (text.empty() ? "" : "\n\n") + part;
  };
  for (const std::string& document : words.documents) add(read_document(document));
  if (is_piped) add(read_piped_document());
  prompt.document_bytes = text.size();
  add(words.question);
  return prompt;
}

int run_run(RunSettings s, const CommonSettings& common) {
  GenerateSettings& g = s.generate;
  const Words words = split(s.words);
  g.model.path = find_model(s.model);
  const bool is_piped = stdin_is_piped();
  if (words.question.empty() && !is_piped) {
    return run_chat({.model = g.model,
                     .cache = g.cache,
                     .sampler = g.sampler,
                     .seed = g.seed,
                     .limits = g.limits,
                     .n_ctx = g.n_ctx,
                     .chat = g.chat,
                     .documents = words.documents,
                     .no_history = s.no_history,
                     .cites = g.cites},
                    common);
  }
  PromptText prompt = prompt_of(words, is_piped);
  if (prompt.text.empty()) fail(ErrorCode::kUsage, "no question: nothing was piped in");
  g.prompt.set_text(std::move(prompt));
  return run_generate(g, common);
}

}  // namespace

Command add_run_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<RunSettings>();
  GenerateSettings& g = s->generate;
  CLI::App* app = root.add_subcommand(
      "run", "Talk with a model about documents, or answer one question about them");
  app->add_option("MODEL", s->model,
                  "A GGUF file, a folder, or the name of a model on this machine (snapkv models)")
      ->type_name("MODEL")
      ->required();
  app->add_option("WORDS", s->words,
                  "Documents (PDF, EPUB, Word, HTML, text), and last a question, in quotes; "
                  "without a question a chat begins, unless one is piped in")
      ->type_name("[FILE...] [QUESTION]");
  add_length_option(*app, g.limits);
  g.length_option = app->get_option("--n-predict");
  add_context_option(*app, g.n_ctx, "documents, questions and answers");
  add_stop_option(*app, g.limits);
  app->add_flag("--no-history", s->no_history,
                "Keep what is typed out of the file that the arrow keys bring it back from");
  g.chat.add_default_prompt_options(*app, g.as_chat, g.as_text);
  add_cite_option(*app, g.cites);
  add_running_options(*app, g.model);
  add_cache_options(*app, g.cache);
  add_sampler_options(*app, g.sampler, g.seed);
  return {app, [s, &common] { return run_run(*s, common); }};
}

}  // namespace snapkv::cli
