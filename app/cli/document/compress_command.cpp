// SPDX-License-Identifier: MIT
// snapkv compress: reads a document once and stores its compressed cache, for `snapkv ask` and the
// server's snapshots.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/stop_check.h"
#include "base/timer.h"
#include "base/utf8.h"
#include "chat/document.h"
#include "cli/commands.h"
#include "cli/common/chat_settings.h"
#include "cli/common/output_files.h"
#include "cli/common/plain_text.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_length.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "long_documents/condensed.h"
#include "long_documents/plan.h"
#include "snapkv/prefill.h"

namespace snapkv::cli {
namespace {

struct CompressSettings {
  ModelSettings model;
  CacheSettings cache;
  PromptSettings document;
  ChatSettings chat;
  int64_t n_ctx = 0;
  std::string output;
  std::string long_mode = "refuse";
  bool keep_full = false;
  uint64_t full_limit = chat::kFullLimit;
};

void add_options(CLI::App& app, CompressSettings& s) {
  s.cache.policy = chat::kUnaskedPolicy;
  s.document.add_options(app, PromptSettings::Parts::one);
  mark_output(
      app.add_option("-o,--output", s.output, "The file that is written, document.kv for example"),
      OutputKind::cache)
      ->type_name("FILE")
      ->required();
  app.add_flag("--keep-full", s.keep_full,
               "Store every row, in q8_0: each question then selects from all of them, as well as "
               "if it had been there when the document was read; --kv- options are ask's then. "
               "The default for files up to --full-limit, unless a --kv- option is given");
  app.add_option("--full-limit", s.full_limit,
                 "Store every row where that takes no more than this, as in 4GiB; 0: never")
      ->transform(byte_size(0))
      ->type_name("SIZE")
      ->default_str("1GiB");
  add_context_option(app, s.n_ctx, "document, question and answer");
  app.add_option("--long", s.long_mode,
                 "What is done with a document longer than the context: first stores as much of "
                 "its beginning as leaves room for a question; refuse is an error")
      ->check(CLI::IsMember({"first", "refuse"}))
      ->type_name("WAY")
      ->capture_default_str();
  s.chat.add_options(app);
  add_model_options(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  app.remove_option(app.get_option("--kv-refresh"));  // sessions with it can't be saved
}

chat::DocumentForm form_of(const Model& model, const CompressSettings& s) {
  chat::DocumentForm form;
  const ModelChat chat = model.chat();
  if (chat.templates.empty() && !s.chat.names_template()) return form;
  const ChatTemplate tmpl = s.chat.choose(chat, s.model.path, false);
  form.template_source = tmpl.source();
  form.template_name = tmpl.name();
  form.variables = s.chat.variables();
  add_token_texts(chat, form.variables);
  form.system = s.chat.system();
  return form;
}

/// Whether a --kv- option was typed: somebody who says which rows to keep does not want all of
/// them.
bool chooses_rows(const CompressSettings& s) {
  return std::any_of(s.cache.typed_options.begin(), s.cache.typed_options.end(),
                     [](const std::string& option) { return option.starts_with("--kv-"); });
}

/// Whether some layer has a state whose size does not depend on the tokens.
bool has_fixed_states(const ModelInfo& info) {
  for (int64_t il = 0; il < info.n_layer; ++il) {
    if (kv_layer_bytes(info, DType::f16, il, 0) > 0) return true;
  }
  return false;
}

/// Why a file may be larger than a full cache.
std::string why_file_is_larger(const ModelInfo& info) {
  const auto has = [&](AttentionKind kind) {
    return std::any_of(info.layers.begin(), info.layers.end(),
                       [kind](const LayerInfo& layer) { return layer.attention == kind; });
  };
  std::string text = "less than the file";
  if (has(AttentionKind::sliding_window) || has(AttentionKind::chunked)) {
    text +=
        ": layers with sliding windows or chunks keep their last rows only, and the file holds "
        "every row, "
        "for "
        "any question";
  } else if (has_fixed_states(info)) {
    text += ", which also holds states of recurrent layers, for questions to go on from";
  }
  return text;
}

std::string summary(const CompressSettings& s, const Session& session, bool keeps_all,
                    double seconds) {
  const SessionStats& stats = session.stats();
  const size_t file = std::filesystem::file_size(s.output);
  const double ratio = static_cast<double>(stats.kv_bytes_full) / static_cast<double>(file);
  const std::string kept =
      keeps_all
          ? fmt::format("every row, in {}", name(stored_kv_type(session.model().info())))
          : fmt::format("{}, {}", session.options().kv.name, describe_policy(session.options().kv));
  const std::string full = ratio >= 1 ? fmt::format("{:.1f} times as much", ratio)
                                      : why_file_is_larger(session.model().info());
  std::string text =
      fmt::format("{}: {} read in {} ({})\n{}: {}; a full cache takes {}, {}\n",
                  terminal_text(session.model().info().name, 80), plural(session.n_past(), "token"),
                  format_seconds(seconds), format_rate(session.n_past(), seconds), s.output,
                  format_bytes(file) + ", " + kept, format_bytes(stats.kv_bytes_full), full);
  if (!keeps_all) {
    text +=
        "These rows were chosen before any question was known, and may lack what one asks for; "
        "--keep-full stores every row, and each question chooses.\n";
  }
  return text;
}

/// The text, or with --long first as much of its beginning as leaves room for a question and an
/// answer.
std::string fitting_text(const CompressSettings& s, const Model& model,
                         const chat::DocumentForm& form, std::string text) {
  constexpr int64_t kRoom = 1024;  // tokens
  const int64_t n_ctx = s.n_ctx > 0 ? s.n_ctx : model.info().n_ctx_train;
  if (s.long_mode == "refuse") {
    refuse_hopeless_length(model, text, s.n_ctx);
    return text;
  }
  if (std::ssize(model.tokenize(chat::document_part(form, text))) <= n_ctx) return text;
  const int64_t n_form = std::ssize(model.tokenize(chat::document_part(form, "")));
  const long_documents::LongPlan plan = long_documents::plan_reading(
      {text, {}}, "", long_documents::LongMode::first,
      {.n_once = n_ctx - n_form - std::min(kRoom, n_ctx / 4)},
      [&](std::string_view part) { return std::ssize(model.tokenize(part, false)); });
  write_stderr(fmt::format(
      "snapkv: the document has about {}, more than the context of {}: storing the first {}, {}% "
      "of it\n",
      plural(plan.n_document, "token"), n_ctx, plural(plan.n_read, "token"),
      100 * plan.n_read / plan.n_document));
  return long_documents::condense({text, {}}, plan).text;
}

int run_compress(const CompressSettings& s, const CommonSettings& common) {
  const StopCheck stop(interrupted);
  session_options(s.cache, s.n_ctx);  // refuses invalid options before a model is loaded
  require_model(s.model);
  PromptText document = s.document.read_parts();
  std::string text = std::move(document.text);
  if (!utf8::is_valid(text)) fail(ErrorCode::kUsage, "the document is not valid UTF-8");
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  progress.clear();
  const chat::DocumentForm form = form_of(*model, s);
  text = fitting_text(s, *model, form, std::move(text));
  std::erase_if(document.pages, [&](const long_documents::PageMark& page) {
    return page.begin >= text.size();  // what was left out
  });
  const std::string notes = chat::document_notes(
      form, std::filesystem::absolute(s.model.path).string(), "", document.pages);
  PrefillPrompt prompt;
  prompt.tokens = model->tokenize(chat::document_part(form, text));
  prompt.options.progress = progress.callback();
  const int64_t n_tokens = std::ssize(prompt.tokens);
  const bool keeps_all =
      s.keep_full || (!chooses_rows(s) && chat::stores_every_row(*model, n_tokens, s.full_limit));
  prompt.makes_prefix = keeps_all;
  SessionOptions options = session_options(s.cache, s.n_ctx, &model->info());
  if (keeps_all) options.kv = {};  // what the session itself keeps is not stored
  Session session(model, options);
  prompt.sessions = {&session};
  const Timer timer;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  const double seconds = timer.seconds();
  progress.clear();
  if (keeps_all) {
    prefill.take_prefix()->save(s.output, stored_kv_type(model->info()), notes);
  } else {
    session.save(s.output, notes);
  }
  write_stderr(summary(s, session, keeps_all, seconds));
  return 0;
}

}  // namespace

Command add_compress_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<CompressSettings>();
  CLI::App* app = root.add_subcommand(
      "compress", "Read a document once and store its compressed cache, for ask and serve");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_compress(*settings, common); }};
}

}  // namespace snapkv::cli
