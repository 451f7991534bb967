// SPDX-License-Identifier: MIT
// snapkv generate: reads a prompt, compresses its cache, writes the answer to stdout as it comes.
#include "cli/generate/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stop_check.h"
#include "base/timer.h"
#include "chat/harmony.h"
#include "chat/harmony_text.h"
#include "cli/commands.h"
#include "cli/common/answer_text.h"
#include "cli/common/policy_options.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_length.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/generate/compare.h"
#include "cli/generate/limit_options.h"
#include "cli/generate/long_prompt.h"
#include "cli/generate/report.h"
#include "snapkv/text_stream.h"

namespace snapkv::cli {
namespace {

void add_options(CLI::App& app, GenerateSettings& s) {
  s.prompt.add_options(app, PromptSettings::Parts::document_and_question);
  add_length_option(app, s.limits);
  s.length_option = app.get_option("--n-predict");
  add_context_option(app, s.n_ctx, "prompt and answer");
  add_stop_option(app, s.limits);
  add_ignore_eos_option(app, s.limits);
  app.add_flag("--no-bos", s.no_bos, "Don't begin the prompt with the model's BOS token");
  app.add_flag("--no-special", s.plain_text,
               "Take control tokens that are written out in the prompt as plain text");
  s.chat.add_default_prompt_options(app, s.as_chat, s.as_text);
  CLI::Option* const json = app.add_flag(
      "--json", s.json,
      "Print one JSON object (answer, tokens, settings, timings, cache) instead of text");
  add_cite_option(app, s.cites);
  add_long_option(app, s.long_mode);
  s.saved.add_options(app);
  app.get_option("--cite")->excludes(app.get_option("--load-cache"));
  app.get_option("--long")->excludes(app.get_option("--load-cache"));
  CLI::Option* const timings = app.add_flag("--show-timings", s.show_timings,
                                            "Add the parts of the prompt's time to the summary");
  add_compare_option(app, s.compare)
      ->excludes(json)
      ->excludes(timings)
      ->excludes(app.get_option("--save-cache"))
      ->excludes(app.get_option("--load-cache"));
  add_model_argument(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_draft_options(app, s.cache, s.model);
  add_sampler_options(app, s.sampler);
  s.grammar.add_options(app);
}

constexpr int64_t kBaseModelTokens = 256;  // of an answer that nothing else ends

// Whether control tokens are written out in the text of these tokens: others than those that the
// tokenizer has put before and after it.
bool has_control(const Model& model, std::span<const int32_t> tokens, bool add_bos) {
  const Tokenizer& tokenizer = model.tokenizer();
  const SpecialTokens& special = tokenizer.special();
  if (add_bos && !tokens.empty() && tokens.front() == special.bos) tokens = tokens.subspan(1);
  if (special.add_eos && !tokens.empty() && tokens.back() == special.eos) {
    tokens = tokens.first(tokens.size() - 1);
  }
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](int32_t id) { return tokenizer.is_control(id) && id != special.unk; });
}

// The prompt's tokens: its text, or a chat of one message. Says in `report` which it is, and why.
std::vector<int32_t> tokens_of(const Model& model, const std::string& prompt,
                               const GenerateSettings& s, RunReport& report, bool at_once = false) {
  const bool add_bos = !s.no_bos && !s.saved.loads();  // what continues has no beginning of its own
  const bool has_template = !model.chat().templates.empty();
  report.as_chat = s.as_chat || s.chat.is_given();
  std::vector<int32_t> tokens;
  if (!report.as_chat) {
    tokens = model.tokenize(prompt, add_bos, !s.plain_text);
    const bool is_made = has_control(model, tokens, add_bos);
    const bool may_be_chat = has_template && !s.as_text && !s.saved.loads() && !s.saved.saves();
    report.as_chat = may_be_chat && !is_made;
    report.has_control = may_be_chat && is_made;
    report.misses_template = has_template && !report.as_chat && !is_made;
  }
  if (!report.as_chat) return tokens;
  const ChatTemplate used = s.chat.choose(model.chat(), s.model.path, false);
  report.is_harmony = chat::writes_harmony(used.source());
  return s.chat.tokenize(model, s.model.path, prompt, add_bos, at_once || report.grammar);
}

// A base model goes on until the context is full: its answer is a paragraph, unless the user says
// how long it is.
void end_base_models_answer(const GenerateSettings& s, bool has_template, RunReport& report) {
  const bool is_bounded = s.length_option->count() > 0 || s.limits.max_tokens >= 0;
  if (report.as_chat || is_bounded || has_template || report.grammar) return;
  report.continues_text = true;
  report.limits.max_tokens = kBaseModelTokens;
  report.limits.one_paragraph = s.limits.stops.empty() && !s.limits.ignore_eos;
}

// The store of the prompt's documents, if there is one and they have tokens of their own.
std::optional<DocumentRows> store_of(const GenerateSettings& s, const PromptText& prompt,
                                     const std::shared_ptr<const Model>& model,
                                     const RunReport& report, ProgressDisplay& progress) {
  if (!s.store || prompt.document_bytes == 0) return std::nullopt;
  DocumentRows store(*s.store, model, s.model, s.cache.session, s.documents,
                     [&progress](const std::string& text) {
                       progress.clear();
                       write_stderr("snapkv: " + text + "\n");
                     });
  RunReport ignored = report;
  store.set_document(tokens_of(*model, prompt.text.substr(0, prompt.document_bytes), s, ignored));
  return store;
}

// Reads the prompt; returns false when Ctrl-C or another signal stopped it.
bool read_into(Session& session, const std::vector<int32_t>& tokens,
               std::optional<DocumentRows> store, ProgressDisplay& progress, RunReport& report) {
  try {
    if (store) {
      report.n_stored = read_with_store(session, tokens, *store, progress.callback());
    } else {
      session.prefill(tokens, {.progress = progress.callback()});
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kCancelled) throw;
    return false;
  }
  return true;
}

// Decodes the answer, and streams its text unless it goes into the JSON.
void write_answer(Session& session, Sampler& sampler, const GenerateSettings& s,
                  const Timer& since_prefill, ProgressDisplay& progress, RunReport& report) {
  const bool stream_text = !s.json;
  const bool show_progress = s.json || !stdout_is_terminal();
  Timer since_decode;
  // what the context leaves, where that is less
  const int64_t room = session.n_ctx() - session.n_past();
  const int64_t most =
      report.limits.max_tokens < 0 ? -1 : std::min(report.limits.max_tokens, room + 1);
  progress.clear();
  AnswerText answer(/*wraps=*/report.as_chat);
  const auto show = [&](std::string_view text) {
    if (stream_text) answer.write(text);
  };
  chat::HarmonyText harmony("", [&](std::string_view text, bool) { show(text); });
  generate(
      session, sampler, report.limits,
      [&](std::string_view text, int64_t n) {
        if (!report.first_token_seconds) report.first_token_seconds = since_prefill.seconds();
        report.is_harmony ? harmony.push(text) : show(text);
        if (show_progress) {
          progress.show_decode(n, most, since_decode.seconds());
        }
      },
      report.generation);
  if (report.is_harmony) {
    harmony.finish();
    report.generation.text = chat::harmony_shown("", report.generation.text);
  }
  if (stream_text && !report.generation.text.empty()) answer.finish();
}

// Returns a matcher at the beginning of the answer's grammar, if it has one.
std::optional<GrammarMatcher> matcher_of(const RunReport& report, const Model& model) {
  if (!report.grammar) return std::nullopt;
  return GrammarMatcher(*report.grammar,
                        std::make_shared<const GrammarVocabulary>(model.tokenizer()));
}

int run_comparison(const GenerateSettings& s, const CacheSettings& cache, const RunReport& report,
                   const std::shared_ptr<const Model>& model, const std::vector<int32_t>& tokens,
                   ProgressDisplay& progress) {
  CacheSettings other = cache;
  other.policy = s.compare;
  other.typed_params.clear();  // they apply to the first policy
  if (!policy_info(other.policy).has_budget) {
    other.session.kv_memory = 0;
    other.session.kv_decode_limit = 0;
  }
  const ModelInfo& info = model->info();
  write_styled_stdout(
      compare_caches({.model = model,
                      .first = resolve_options(session_options(other, s.n_ctx, &info), info),
                      .second = resolve_options(report.session, info),
                      .sampler = report.sampler,
                      .grammar = matcher_of(report, *model),
                      .limits = report.limits,
                      .is_harmony = report.is_harmony},
                     tokens, progress, colour_stdout()));
  return 0;
}

// What the model and its file make of the settings.
void describe_run(const GenerateSettings& s, const CacheSettings& cache, const Model& model,
                  RunReport& report) {
  report.model = model.info();
  report.session = session_options(cache, s.n_ctx, &report.model);
  if (report.session.kv_memory > 0 && s.limits.max_tokens > 0) {
    // room for the tokens that may come, and no more, leaves the rest to the budget
    report.session.decode_reserve = std::min(report.session.decode_reserve, s.limits.max_tokens);
  }
  warn_beyond_training(s.n_ctx, report.model);
  report.params_of_model = params_of_model(cache, cache.policy, report.model);
  report.backend = model.backend_description();
}

int64_t context_in_force(const GenerateSettings& s, const ModelInfo& model) {
  return s.n_ctx > 0 ? s.n_ctx : model.n_ctx_train;
}

// Whether a document that is too long may be shortened: there is one, and but for its beginning a
// question to choose by.
bool may_shorten(const GenerateSettings& s, const PromptText& prompt) {
  using long_documents::LongMode;
  if (s.long_mode == LongMode::refuse || prompt.document_bytes == 0) return false;
  return prompt.document_bytes < prompt.text.size() || s.long_mode == LongMode::first;
}

// Returns the prompt with what is read of its document.
std::string shorten(const GenerateSettings& s, const PromptText& prompt,
                    const std::shared_ptr<const Model>& model, ProgressDisplay& progress,
                    RunReport& report) {
  RunReport ignored;
  const LongRun run = {.model = model,
                       .session = report.session,
                       .n_ctx = context_in_force(s, report.model),
                       .answer_tokens = s.limits.max_tokens,
                       .in_chat = report.as_chat,
                       .tokens_of = [&](const std::string& text) {
                         return tokens_of(*model, text, s, ignored, true);
                       }};
  report.shortened = read_long(run, prompt, s.long_mode, progress);
  report.document = {std::string_view(prompt.text).substr(0, prompt.document_bytes), prompt.pages,
                     prompt.documents};
  return report.shortened->condensed.text + prompt.text.substr(prompt.document_bytes);
}

// The passages of the document that the answer was taken from.
std::vector<CitedPassage> sources_of(Session& session, std::span<const int32_t> tokens,
                                     const PromptText& prompt, const RunReport& report) {
  if (!report.shortened) {
    const auto document = std::string_view(prompt.text).substr(0, prompt.document_bytes);
    const CitableText texts[] = {{document, prompt.pages}};
    return cited_passages(session, tokens, texts);
  }
  std::vector<CitedPassage> passages = cited_passages(session, tokens, *report.shortened, prompt);
  for (CitedPassage& passage : passages) {
    SourcePassage& source = passage.source;
    const auto* mark = long_documents::document_at(prompt.documents, source.begin);
    if (mark == nullptr) continue;
    passage.document = mark->name;
    source.end -= std::min(mark->begin, source.end);
    source.begin -= std::min(mark->begin, source.begin);
  }
  return passages;
}

}  // namespace

CLI::Option* add_compare_option(CLI::App& app, std::string& policy) {
  return app
      .add_option("--compare", policy,
                  "Answer with this policy too, full for example, and print both answers and what "
                  "the caches cost")
      ->check(CLI::IsMember(policy_names()))
      ->type_name("NAME")
      ->excludes(app.get_option("--cite"));
}

int run_generate(const GenerateSettings& s, const CommonSettings& common) {
  const StopCheck stop(interrupted);
  RunReport report;
  const CacheSettings cache = s.saved.settings(s.cache);
  session_options(cache, s.n_ctx);  // refuses invalid options before a model is loaded
  report.sampler = s.sampler;
  report.sampler.seed = drawn_seed(s.sampler.seed);
  report.limits = s.limits;
  Sampler sampler(report.sampler);
  report.grammar = s.grammar.read();
  if (report.grammar && s.limits.ignore_eos) {
    fail(ErrorCode::kUsage, "--ignore-eos: an answer by a grammar ends where the grammar does");
  }
  TextStream(s.limits.stops);  // refuses invalid stop strings before a long prompt is read
  require_model(s.model);
  const bool has_prompt = s.prompt.is_given() || !s.saved.loads();
  const PromptText parts = has_prompt ? s.prompt.read_parts() : PromptText();
  std::string prompt = parts.text;

  ProgressDisplay progress(!common.no_progress, common.verbose);
  const Timer since_start;
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  report.load_seconds = since_start.seconds();
  progress.clear();
  if (s.prompt.leaves_stdin()) {
    write_stderr("snapkv: what is piped in is not read; -f - makes it the document\n");
  }
  describe_run(s, cache, *model, report);
  std::vector<int32_t> tokens;
  const bool may_be_long = may_shorten(s, parts);
  if (!may_be_long) refuse_hopeless_length(*model, prompt, s.n_ctx);
  if (has_prompt) tokens = tokens_of(*model, prompt, s, report);
  if (tokens.empty() && has_prompt) fail(ErrorCode::kUsage, "the prompt is empty");
  if (may_be_long && std::ssize(tokens) > context_in_force(s, report.model)) {
    prompt = shorten(s, parts, model, progress, report);
    tokens = tokens_of(*model, prompt, s, report);
  }
  if (!s.saved.loads()) {
    refuse_beyond_context(report.model, std::ssize(tokens), s.n_ctx,
                          parts.document_bytes > 0 && !may_be_long);
  }
  end_base_models_answer(s, !model->chat().templates.empty(), report);
  report.n_prompt = static_cast<int64_t>(tokens.size());

  if (!s.compare.empty()) return run_comparison(s, cache, report, model, tokens, progress);
  if (auto matcher = matcher_of(report, *model)) sampler.set_grammar(*std::move(matcher));
  Session session(model, report.session);
  if (s.saved.loads()) session.load(s.saved.load_path());
  report.n_loaded = session.n_past();
  report.session = session.options();
  report.n_ctx = session.n_ctx();
  std::optional<DocumentRows> store;  // nothing of a document that is read in part
  if (!report.shortened) store = store_of(s, parts, model, report, progress);
  const Timer since_prefill;
  if (tokens.empty() || read_into(session, tokens, std::move(store), progress, report)) {
    if (s.saved.saves()) session.save(s.saved.save_path());
    report.after_prefill = session.stats();
    sampler.accept(tokens);
    if (s.cites) session.trace_answer();
    write_answer(session, sampler, s, since_prefill, progress, report);
  } else {
    report.generation.stop_reason = StopReason::cancelled;
    report.cancelled_after_seconds = since_prefill.seconds();
  }
  report.at_end = session.stats();
  progress.clear();
  if (s.cites && report.after_prefill) {
    report.sources = sources_of(session, tokens, parts, report);
  }
  if (s.json) write_stdout(to_json(report));
  if (!s.json && report.sources) {
    write_stdout("\n" + sources_text(*report.sources));
  }
  if (!s.json && stdout_is_terminal()) write_stderr("\n");
  write_styled_stderr(summary(report, s.show_timings, colour_stderr()));
  return report.generation.stop_reason == StopReason::cancelled
             ? static_cast<int>(ErrorCode::kCancelled)
             : 0;
}

Command add_generate_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<GenerateSettings>();
  CLI::App* app = root.add_subcommand("generate", "Read a prompt and write the answer to stdout");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_generate(*settings, common); }};
}

}  // namespace snapkv::cli
