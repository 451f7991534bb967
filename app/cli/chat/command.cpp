// SPDX-License-Identifier: MIT
// snapkv chat: a conversation with a model, turn by turn, at a terminal or through a pipe.
#include "cli/chat/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cli/chat/shell.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/document/ask.h"
#include "cli/generate/limit_options.h"

namespace snapkv::cli {
namespace {

void add_options(CLI::App& app, ChatCommandSettings& s) {
  add_length_option(app, s.limits);
  add_context_option(app, s.n_ctx, "the whole chat");
  app.add_option("-f,--file", s.documents,
                 "Begin the first message with a document (PDF, EPUB, Word, HTML, text), as /file "
                 "does; can be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_stop_option(app, s.limits);
  add_ignore_eos_option(app, s.limits);
  app.add_flag("--no-history", s.no_history,
               "Keep what is typed out of the file that the arrow keys bring it back from");
  add_cite_option(app, s.cites);
  s.chat.add_options(app);
  add_model_argument(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_draft_options(app, s.cache, s.model);
  add_sampler_options(app, s.sampler);
  app.footer(
      "In the chat, /help lists the commands. Through a pipe every line is a message or a\n"
      "command; stdout gets the answers alone.");
}

/// What a chat about a stored document says of it.
std::string document_line(const chat::Document& document, const std::string& path) {
  const chat::DocumentFile& file = document.file;
  return fmt::format("{}: {}, {}\n", terminal_text(path, 300), plural(file.n_tokens, "token"),
                     file.keeps_all ? "every row stored; each question chooses from all"
                                    : file.options.kv.name + ", chosen before any question");
}

/// Opens the document that the chat is about, and takes the model and the cache that belong to it.
chat::Document open_stored(ChatCommandSettings& s) {
  chat::Document document = chat::open_document(s.stored_document, nullptr);
  if (document.file.form.template_source.empty()) {
    fail(ErrorCode::kUsage,
         "{} was read without a chat template, as for a base model, which knows no chat: give a "
         "question",
         s.stored_document);
  }
  if (s.cites && !document.file.keeps_all) {
    fail(ErrorCode::kUsage,
         "--cite: {} holds what was chosen of the document, and not its text; a file of compress "
         "--keep-full has both",
         s.stored_document);
  }
  s.cache = document_cache(s.cache, document.file, s.stored_document);
  if (s.model.path.empty()) s.model.path = document.file.model_path;
  return document;
}

ChatTemplate template_of(const ChatCommandSettings& s, const ModelChat& model_chat,
                         const ChatSession::Options& options) {
  if (!options.document) return s.chat.choose(model_chat, s.model.path, false);
  const chat::DocumentForm& form = options.document->file.form;
  return ChatTemplate::parse(form.template_source, form.template_name);
}

/// Returns the opening lines: the model, its cache and its context.
std::string greeting(const ChatSession& chat, bool names_template) {
  const Session& session = chat.session();
  const std::string& name = chat.chat_template().name();
  const bool shows_template = names_template && !name.starts_with("--");
  const ModelInfo& info = session.model().info();
  return fmt::format("{}{}\n{}: {}; a context of {}\n/help lists the commands, Ctrl-D leaves\n\n",
                     terminal_text(info.name.empty() ? info.path : info.name, 300),
                     shows_template ? ", chat template " + name : "", session.options().kv.name,
                     describe_policy(session.options().kv), plural(session.n_ctx(), "token"));
}

}  // namespace

int run_chat(const ChatCommandSettings& given, const CommonSettings& common) {
  ChatCommandSettings s = given;
  ChatSession::Options options;
  const bool has_document = !s.stored_document.empty();
  chat::Document document;
  if (has_document) document = open_stored(s);
  session_options(s.cache, s.n_ctx);  // refuses invalid options before a model is loaded
  options.sampler = s.sampler;
  options.sampler.seed = drawn_seed(s.sampler.seed);
  options.limits = s.limits;
  options.cites = s.cites;
  options.variables = s.chat.variables();
  Sampler{options.sampler};
  require_model(s.model);
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  progress.clear();
  warn_beyond_training(s.n_ctx, model->info());
  options.session = session_options(s.cache, s.n_ctx, &model->info());
  const ModelChat model_chat = model->chat();
  add_token_texts(model_chat, options.variables);
  if (has_document) {
    if (document.file.keeps_all) document.rows = KvPrefix::load(model, s.stored_document);
    options.document = std::make_shared<const chat::Document>(std::move(document));
  }
  ChatTemplate chat_template = template_of(s, model_chat, options);
  ChatSession chat(model, std::move(chat_template), std::move(options));
  if (!has_document) chat.set_system(s.chat.system());
  const auto reader = make_line_reader(s.no_history ? "" : default_history_path());
  if (reader->is_terminal()) {
    if (has_document) write_stderr(document_line(*chat.document(), s.stored_document));
    write_stderr(greeting(chat, s.chat.names_template()));
  }
  set_signals_that_kill(4);  // one more Ctrl-C than an impatient user presses while reading
  ChatShell shell(chat, *reader, progress, s.cache, s.n_ctx);
  if (s.store && !s.documents.empty()) {
    chat.set_store(std::make_unique<DocumentRows>(
        *s.store, model, s.model, s.cache.session, names_of(s.documents),
        [&shell](const std::string& text) { shell.note_while_reading(text); }));
  }
  for (const std::string& path : s.documents) shell.add_document(path);
  return shell.run();
}

Command add_chat_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<ChatCommandSettings>();
  CLI::App* app = root.add_subcommand("chat", "Talk with a model, turn by turn");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_chat(*settings, common); }};
}

}  // namespace snapkv::cli
