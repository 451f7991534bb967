// SPDX-License-Identifier: MIT
// snapkv ask: answers questions about a document that `snapkv compress` has read.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/stop_check.h"
#include "base/timer.h"
#include "base/utf8.h"
#include "chat/document.h"
#include "chat/harmony.h"
#include "chat/harmony_text.h"
#include "cli/chat/command.h"
#include "cli/commands.h"
#include "cli/common/answer_text.h"
#include "cli/common/chat_settings.h"
#include "cli/common/documents.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/document/ask.h"
#include "cli/generate/cite.h"
#include "cli/generate/generation.h"
#include "cli/generate/limit_options.h"
#include "cli/generate/saved_cache.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {
namespace {

void add_options(CLI::App& app, AskSettings& s) {
  app.add_option("DOCUMENT", s.document, "A file that snapkv compress has written")
      ->type_name("FILE")
      ->required();
  s.question.add_options(app, PromptSettings::Parts::one);
  app.add_flag("--no-history", s.no_history,
               "In the chat, keep what is typed out of the file that the arrow keys bring it back "
               "from");
  add_length_option(app, s.limits);
  add_context_option(app, s.n_ctx, "document, question and answer");
  add_stop_option(app, s.limits);
  add_cite_option(app, s.cites);
  add_model_options(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_draft_options(app, s.cache, s.model);
  app.remove_option(app.get_option("--kv-refresh"));
  add_sampler_options(app, s.sampler);
  app.footer(
      "Without a question a chat about the document begins; through a pipe every line is a "
      "question.");
}

/// Reads the question after the document, whose rows come from the file.
class Asking {
 public:
  Asking(const AskSettings& s, const chat::Document& document,
         const std::shared_ptr<const Model>& model)
      : session_(model, options_of(s, document.file, *model)),
        tokens_(question_tokens(s, document.file, *model)) {
    const Timer timer;
    if (document.compressed) {
      session_.load(*document.compressed);
    } else {
      prefix_ = KvPrefix::load(model, s.document);
    }
    load_seconds_ = timer.seconds();
  }

  void read(const ProgressFn& progress) {
    if (!prefix_) return session_.prefill(tokens_, {.progress = progress, .compress = false});
    prefill_after(session_, prefix_, tokens_, progress);
  }

  /// The passages of the document that the answer was taken from.
  std::vector<CitedPassage> sources(const chat::DocumentFile& file) {
    const Model& model = session_.model();
    std::vector<int32_t> all(prefix_->tokens().begin(), prefix_->tokens().end());
    const std::string text = chat::document_text(model, file.form, all);
    all.insert(all.end(), tokens_.begin(), tokens_.end());
    const CitableText texts[] = {{text, file.pages}};
    return cited_passages(session_, all, texts);
  }

  Session& session() { return session_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  double load_seconds() const { return load_seconds_; }

 private:
  static SessionOptions options_of(const AskSettings& s, const chat::DocumentFile& file,
                                   const Model& model) {
    return session_options(document_cache(s.cache, file, s.document), s.n_ctx, &model.info());
  }
  static std::vector<int32_t> question_tokens(const AskSettings& s, const chat::DocumentFile& file,
                                              const Model& model) {
    const std::string question = s.question.read();
    if (!utf8::is_valid(question)) fail(ErrorCode::kUsage, "the question is not valid UTF-8");
    const Json messages = Json::array({{{"role", "user"}, {"content", question}}});
    return model.tokenize(chat::question_part(file.form, messages), /*add_bos=*/false);
  }

  Session session_;
  std::vector<int32_t> tokens_;
  std::shared_ptr<const KvPrefix> prefix_;  // from a file that keeps every row
  double load_seconds_ = 0;
};

/// Without a question: a chat, or through a pipe one question in each line.
int run_document_chat(const AskSettings& s, const CommonSettings& common) {
  return run_chat({.model = s.model,
                   .cache = s.cache,
                   .sampler = s.sampler,
                   .limits = s.limits,
                   .n_ctx = s.n_ctx,
                   .chat = {},
                   .documents = {},
                   .no_history = s.no_history,
                   .cites = s.cites,
                   .store = {},
                   .stored_document = s.document},
                  common);
}

/// Says how to ask about a document that has not been stored.
void refuse_other_files(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0 || is_cache_file(path)) return;
  fail(ErrorCode::kUsage,
       "{0} is no document that snapkv compress has stored; snapkv run MODEL {0} \"QUESTION\" asks "
       "about documents and folders as they are",
       path);
}

}  // namespace

CacheSettings document_cache(const CacheSettings& given, const chat::DocumentFile& file,
                             const std::string& path) {
  CacheSettings cache = given;
  cache.session.kv_refresh = false;  // the rows are in the file already
  if (file.keeps_all) return cache;
  const std::vector<std::string>& typed = given.typed_options;
  const auto is_typed = [&](const std::string& option) {
    return std::find(typed.begin(), typed.end(), option) != typed.end();
  };
  if (is_typed("--kv-memory")) {
    fail(ErrorCode::kUsage,
         "--kv-memory makes a budget, and the rows of {} are chosen already; compress --keep-full "
         "leaves that to the questions",
         path);
  }
  cache = with_saved(cache, file.options, is_typed);
  cache.session.kv_memory = 0;
  return cache;
}

int run_ask(const AskSettings& given, const CommonSettings& common) {
  refuse_other_files(given.document);
  const bool may_chat = isatty(STDIN_FILENO) != 0 || stdin_is_piped();
  if (!given.question.is_given() && may_chat) return run_document_chat(given, common);
  const StopCheck stop(interrupted);
  AskSettings s = given;
  s.sampler.seed = drawn_seed(s.sampler.seed);
  Sampler sampler(s.sampler);
  const chat::Document document = chat::open_document(s.document, nullptr);
  const chat::DocumentFile& file = document.file;
  session_options(document_cache(s.cache, file, s.document),
                  s.n_ctx);  // refuses invalid options before a model is loaded
  if (s.cites && !file.keeps_all) {
    fail(ErrorCode::kUsage,
         "--cite: {} holds what was chosen of the document, and not its text; a file of compress "
         "--keep-full has both",
         s.document);
  }
  if (s.model.path.empty()) s.model.path = file.model_path;
  require_model(s.model);
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  progress.clear();
  Asking asking(s, document, model);
  const Timer timer;
  asking.read(progress.callback());
  progress.clear();
  sampler.accept(asking.tokens());
  double first_token = 0;
  Generation answer;
  const SessionStats before = asking.session().stats();
  if (s.cites) asking.session().trace_answer();
  AnswerText text_out(/*wraps=*/!file.form.template_source.empty());
  const bool is_harmony = chat::writes_harmony(file.form.template_source);
  chat::HarmonyText harmony("", [&](std::string_view text, bool) { text_out.write(text); });
  generate(
      asking.session(), sampler, s.limits,
      [&](std::string_view text, int64_t n) {
        if (n == 1) first_token = timer.seconds();
        is_harmony ? harmony.push(text) : text_out.write(text);
      },
      answer);
  if (is_harmony) harmony.finish();
  text_out.finish();
  if (s.cites) write_stdout("\n" + sources_text(asking.sources(file)));
  write_stderr(fmt::format(
      "\ndocument {}, {}, opened in {}; question {}, first token after {}\n"
      "cache {} of {}, {:.1f} times smaller; {} written, {}\n",
      plural(file.n_tokens, "token"),
      file.keeps_all ? "all of them stored" : file.options.kv.name + ", compressed",
      format_seconds(asking.load_seconds()), plural(std::ssize(asking.tokens()), "token"),
      format_seconds(first_token), format_bytes(before.kv_bytes_used),
      format_bytes(before.kv_bytes_full), before.compression(),
      plural(std::ssize(answer.ids), "token"),
      format_rate(asking.session().stats().n_decoded, asking.session().stats().decode_seconds)));
  return answer.stop_reason == StopReason::cancelled ? static_cast<int>(ErrorCode::kCancelled) : 0;
}

Command add_ask_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<AskSettings>();
  CLI::App* app =
      root.add_subcommand("ask", "Answer questions about a document that compress has stored");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_ask(*settings, common); }};
}

}  // namespace snapkv::cli
