// SPDX-License-Identifier: MIT
// snapkv chat: a conversation with a model, turn by turn, at a terminal or through a pipe.
#include "cli/chat/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/chat/shell.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
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
  add_model_options(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_sampler_options(app, s.sampler, s.seed);
  app.footer(
      "In the chat, /help lists the commands. Through a pipe every line is a message or a\n"
      "command; stdout gets the answers alone.");
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

int run_chat(const ChatCommandSettings& s, const CommonSettings& common) {
  ChatSession::Options options;
  session_options(s.cache, s.n_ctx);  // refuses invalid options before a model is loaded
  options.sampler = s.sampler;
  options.sampler.seed = sampler_seed(s.seed);
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
  ChatSession chat(model, s.chat.choose(model_chat, s.model.path, false), std::move(options));
  chat.set_system(s.chat.system());
  const auto reader = make_line_reader(s.no_history ? "" : default_history_path());
  if (reader->is_terminal()) write_stderr(greeting(chat, s.chat.names_template()));
  set_signals_that_kill(4);  // one more Ctrl-C than an impatient user presses while reading
  ChatShell shell(chat, *reader, progress, s.cache, s.n_ctx);
  if (s.store && !s.documents.empty()) {
    chat.set_store(std::make_unique<DocumentRows>(
        *s.store, model, s.model, names_of(s.documents),
        [&shell](const std::string& text) { shell.note_while_reading(text); }));
  }
  for (const std::string& document : s.documents) shell.add_document(document);
  return shell.run();
}

Command add_chat_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<ChatCommandSettings>();
  CLI::App* app = root.add_subcommand("chat", "Talk with a model, turn by turn");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_chat(*settings, common); }};
}

}  // namespace snapkv::cli
