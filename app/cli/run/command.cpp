// SPDX-License-Identifier: MIT
// snapkv run MODEL [FILE...] [QUESTION]: a chat at a terminal, an answer through a pipe, about
// documents.
#include "cli/chat/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/documents.h"
#include "cli/common/terminal.h"
#include "cli/document/ask.h"
#include "cli/document/document_rows.h"
#include "cli/generate/cite.h"
#include "cli/generate/command.h"
#include "cli/generate/limit_options.h"
#include "cli/generate/long_prompt.h"
#include "cli/pull/pull.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {
namespace {

struct RunSettings {
  GenerateSettings generate;
  std::string model;
  std::vector<std::string> words;
  StoreSettings store;
  bool no_history = false;
};

struct Words {
  std::vector<std::string> documents;
  std::string question;
};

/// Whether a word is a path rather than a question's word: "notes/a", "report.pdf", not "it?".
bool looks_like_file(const std::string& word) {
  if (word.find_first_of(" \t\n?!") != std::string::npos) return false;
  const std::string ending = std::filesystem::path(word).extension().string();
  const bool has_ending = ending.size() > 1 && std::isalpha(static_cast<unsigned char>(ending[1]));
  return has_ending || word.find('/') != std::string::npos;
}

/// Files first, then the question. Its words may stand without quotes; a file that is not there is
/// none of them.
Words split(const std::vector<std::string>& words) {
  Words result;
  std::vector<std::string> question;
  for (const std::string& word : words) {
    std::error_code error;
    const bool exists = std::filesystem::exists(word, error);
    if (exists && question.empty()) {
      result.documents.push_back(word);
      continue;
    }
    const bool is_address = word.starts_with("http://") || word.starts_with("https://");
    if (is_address && word.find_first_of(" \t\n") == std::string::npos) {
      fail(ErrorCode::kUsage,
           "{0}: snapkv fetches no documents; curl -sL '{0}' | snapkv run MODEL \"QUESTION\" asks "
           "about a page",
           word);
    }
    if (looks_like_file(word)) {
      fail(ErrorCode::kUsage,
           "{} {}: after the model come documents, and then a question, in quotes",
           exists ? "a document after the question's first words:" : "there is no file", word);
    }
    question.push_back(word);
  }
  result.question = fmt::format("{}", fmt::join(question, " "));
  if (question.size() > 1) {
    write_stderr(fmt::format("snapkv: the question is taken to be \"{}\"\n", result.question));
  }
  return result;
}

/// `has_piped`: becomes whether something was piped in. It is the last document, or the question
/// where there is no other.
PromptText prompt_of(const Words& words, bool& has_piped) {
  std::vector<NamedDocument> documents = read_documents(words.documents);
  documents::PagedText piped;
  if (has_piped) piped = without_newlines_at_end(read_piped_document());
  has_piped = !piped.text.empty();
  const bool is_document = has_piped && (documents.empty() || !words.question.empty());
  if (is_document) documents.push_back({"standard input", std::move(piped)});
  PromptText prompt = join_documents(std::move(documents));
  const auto add = [&](const std::string& text) {
    if (!prompt.text.empty() && !text.empty()) prompt.text += "\n\n";
    prompt.text += text;
  };
  if (!is_document) add(piped.text);
  prompt.document_bytes = prompt.text.size();
  add(words.question);
  return prompt;
}

bool is_stored_document(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && is_cache_file(path);
}

/// run DOCUMENT.kv [QUESTION], or run MODEL DOCUMENT.kv [QUESTION]: as ask does.
int run_about_stored(const RunSettings& s, const Words& words, const std::string& document,
                     const CommonSettings& common) {
  const GenerateSettings& g = s.generate;
  if (g.chat.is_given() || g.as_chat || g.as_text) {
    fail(ErrorCode::kUsage,
         "{} was read with a chat template of its own: --chat, --chat-template and --system are "
         "options of snapkv compress",
         document);
  }
  if (!g.compare.empty()) {
    fail(ErrorCode::kUsage, "--compare reads documents, and {} has been read", document);
  }
  AskSettings ask = {.document = document,
                     .model = g.model,
                     .cache = g.cache,
                     .sampler = g.sampler,
                     .question = {},
                     .limits = g.limits,
                     .n_ctx = g.n_ctx,
                     .cites = g.cites,
                     .no_history = s.no_history};
  if (!words.question.empty()) ask.question.set_text({.text = words.question});
  return run_ask(ask, common);
}

/// A document where the model should be: the model was forgotten. Damaged models are none.
void refuse_document_as_model(const std::string& path) {
  std::error_code error;
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".gguf" || ending == ".safetensors" ||
      !std::filesystem::is_regular_file(path, error)) {
    return;
  }
  std::ifstream file(path, std::ios::binary);
  std::string magic(4, '\0');
  if (!file.read(magic.data(), std::ssize(magic)) || magic == "GGUF") return;
  fail(ErrorCode::kUsage,
       "{0} is not a model; the model comes first: snapkv run MODEL {0} \"QUESTION\"\n"
       "snapkv models lists the models on this machine",
       path);
}

int run_run(RunSettings s, const CommonSettings& common) {
  GenerateSettings& g = s.generate;
  const Words words = split(s.words);
  if (is_stored_document(s.model)) {
    if (words.documents.empty()) return run_about_stored(s, words, s.model, common);
    fail(ErrorCode::kUsage, "{} is a stored document, and a chat is about one: not {} too", s.model,
         words.documents.front());
  }
  refuse_document_as_model(s.model);
  g.model.path = find_or_pull_model(s.model, common);
  if (!g.model.draft_model.empty()) {
    g.model.draft_model = find_or_pull_model(g.model.draft_model, common);
  }
  const auto stored =
      std::find_if(words.documents.begin(), words.documents.end(), is_stored_document);
  if (stored != words.documents.end()) {
    if (words.documents.size() == 1) return run_about_stored(s, words, *stored, common);
    fail(ErrorCode::kUsage, "{} is a stored document: no others can be read beside it", *stored);
  }
  const bool is_piped = stdin_is_piped();
  if (words.question.empty() && !is_piped) {
    if (!g.compare.empty()) {
      fail(ErrorCode::kUsage,
           "--compare compares answers to one question: give it after the model");
    }
    return run_chat({.model = g.model,
                     .cache = g.cache,
                     .sampler = g.sampler,
                     .limits = g.limits,
                     .n_ctx = g.n_ctx,
                     .chat = g.chat,
                     .documents = words.documents,
                     .no_history = s.no_history,
                     .cites = g.cites,
                     .store = s.store},
                    common);
  }
  bool has_piped = is_piped;
  PromptText prompt = prompt_of(words, has_piped);
  if (prompt.text.empty()) fail(ErrorCode::kUsage, "no question: nothing was piped in");
  g.prompt.set_text(std::move(prompt));
  // what is piped in comes once, and is nobody's file
  if (!words.documents.empty() && !has_piped) g.store = s.store;
  g.documents = names_of(words.documents);
  return run_generate(g, common);
}

}  // namespace

Command add_run_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<RunSettings>();
  GenerateSettings& g = s->generate;
  CLI::App* app = root.add_subcommand(
      "run", "Talk with a model about documents, or answer one question about them");
  app->add_option("MODEL", s->model,
                  "A GGUF file, a folder, or the name of a model on this machine (snapkv models); "
                  "or a document that snapkv compress has stored, which names its model")
      ->type_name("MODEL")
      ->required();
  app->add_option(
         "WORDS", s->words,
         "Documents (PDF, EPUB, Word, HTML, text) or folders of them, and then a question, "
         "best in quotes; "
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
  add_compare_option(*app, g.compare);
  add_store_options(*app, s->store);
  g.long_mode = long_documents::LongMode::automatic;
  add_long_option(*app, g.long_mode);
  add_running_options(*app, g.model);
  add_cache_options(*app, g.cache);
  add_draft_options(*app, g.cache, g.model);
  add_sampler_options(*app, g.sampler);
  return {app, [s, &common] { return run_run(*s, common); }};
}

}  // namespace snapkv::cli
