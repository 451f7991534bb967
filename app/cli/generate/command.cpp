// SPDX-License-Identifier: MIT
// snapkv generate: reads a prompt, compresses its cache, and writes the answer to stdout as it
// arrives.
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/stop_check.h"
#include "base/timer.h"
#include "cli/commands.h"
#include "cli/common/chat_settings.h"
#include "cli/common/grammar_settings.h"
#include "cli/common/policy_options.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/generate/compare.h"
#include "cli/generate/generation.h"
#include "cli/generate/limit_options.h"
#include "cli/generate/report.h"
#include "cli/generate/saved_cache.h"
#include "snapkv/text_stream.h"

namespace snapkv::cli {
namespace {

struct GenerateSettings {
  ModelSettings model;
  CacheSettings cache;
  SamplerConfig sampler;
  GrammarSettings grammar;
  int64_t seed = 0;
  PromptSettings prompt;
  GenerationLimits limits;
  int64_t n_ctx = 0;
  bool no_bos = false;
  bool plain_text = false;
  SavedCache saved;
  std::string compare;  // policy for a second answer; empty: one answer
  bool as_chat = false;
  ChatSettings chat;
  bool json = false;
  bool show_timings = false;
};

void add_options(CLI::App& app, GenerateSettings& s) {
  s.prompt.add_options(app);
  add_length_option(app, s.limits);
  add_context_option(app, s.n_ctx, "prompt and answer");
  add_stop_option(app, s.limits);
  add_ignore_eos_option(app, s.limits);
  app.add_flag("--no-bos", s.no_bos, "Don't begin the prompt with the model's BOS token");
  app.add_flag("--no-special", s.plain_text,
               "Take control tokens that are written out in the prompt as plain text");
  s.chat.add_prompt_options(app, s.as_chat);
  CLI::Option* const json = app.add_flag(
      "--json", s.json,
      "Print one JSON object (answer, tokens, settings, timings, cache) instead of text");
  s.saved.add_options(app);
  CLI::Option* const timings = app.add_flag("--show-timings", s.show_timings,
                                            "Add the parts of the prompt's time to the summary");
  app.add_option("--compare", s.compare,
                 "Answer with this policy too, full for example, and print both answers and what "
                 "the caches cost")
      ->check(CLI::IsMember(policy_names()))
      ->type_name("NAME")
      ->excludes(json)
      ->excludes(timings)
      ->excludes(app.get_option("--save-cache"))
      ->excludes(app.get_option("--load-cache"));
  add_model_options(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_sampler_options(app, s.sampler, s.seed);
  s.grammar.add_options(app);
}

// Returns the prompt's tokens: of its text, or of a chat with that one message.
std::vector<int32_t> tokens_of(const Model& model, const std::string& prompt,
                               const GenerateSettings& s) {
  const bool add_bos = !s.no_bos && !s.saved.loads();  // a continuation has no beginning
  if (!s.as_chat) return model.tokenize(prompt, add_bos, !s.plain_text);
  return s.chat.tokenize(model, s.model.path, prompt, add_bos);
}

// Whether the model has a chat template and the prompt was not made with one.
bool misses_template(const Model& model, const std::vector<int32_t>& tokens,
                     const GenerateSettings& s) {
  if (s.as_chat || model.chat().templates.empty()) return false;
  const size_t n_bos = s.no_bos ? 0 : 1;
  return std::none_of(tokens.begin() + std::min(n_bos, tokens.size()), tokens.end(),
                      [&](int32_t id) { return model.tokenizer().is_control(id); });
}

// Reads the prompt; returns false when Ctrl-C or another signal stopped it.
bool read_into(Session& session, const std::vector<int32_t>& tokens, ProgressDisplay& progress) {
  try {
    session.prefill(tokens, {.progress = progress.callback()});
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
  progress.clear();
  generate(
      session, sampler, s.limits,
      [&](std::string_view text, int64_t n) {
        if (!report.first_token_seconds) report.first_token_seconds = since_prefill.seconds();
        if (stream_text) write_stdout(text);
        if (show_progress) {
          progress.show_decode(n, s.limits.n_predict, since_decode.seconds());
        }
      },
      report.generation);
  if (!stream_text) return;
  const std::string& text = report.generation.text;
  if (stdout_is_terminal() && (text.empty() || text.back() != '\n')) write_stdout("\n");
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
  if (!policy_info(other.policy).has_budget) other.memory = other.decode_limit = 0;
  const ModelInfo& info = model->info();
  write_styled_stdout(
      compare_caches({.model = model,
                      .first = resolve_options(session_options(other, s.n_ctx, &info), info),
                      .second = resolve_options(report.session, info),
                      .sampler = report.sampler,
                      .grammar = matcher_of(report, *model),
                      .limits = s.limits},
                     tokens, progress, colour_stdout()));
  return 0;
}

int run_generate(const GenerateSettings& s, const CommonSettings& common) {
  const StopCheck stop(interrupted);
  RunReport report;
  const CacheSettings cache = s.saved.settings(s.cache);
  session_options(cache, s.n_ctx);  // refuses invalid options before a model is loaded
  report.sampler = s.sampler;
  report.sampler.seed = sampler_seed(s.seed);
  report.limits = s.limits;
  Sampler sampler(report.sampler);
  report.grammar = s.grammar.read();
  if (report.grammar && s.limits.ignore_eos) {
    fail(ErrorCode::kUsage, "--ignore-eos: an answer by a grammar ends where the grammar does");
  }
  TextStream(s.limits.stops);  // refuses invalid stop strings before a long prompt is read
  require_model(s.model);
  const bool has_prompt = s.prompt.is_given() || !s.saved.loads();
  const std::string prompt = has_prompt ? s.prompt.read() : "";

  ProgressDisplay progress(!common.no_progress, common.verbose);
  const Timer since_start;
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  report.load_seconds = since_start.seconds();
  report.model = model->info();
  report.session = session_options(cache, s.n_ctx, &report.model);
  progress.clear();
  warn_beyond_training(s.n_ctx, report.model);
  report.params_of_model = params_of_model(cache, cache.policy, report.model);
  report.backend = model->backend_description();
  std::vector<int32_t> tokens;
  if (has_prompt) tokens = tokens_of(*model, prompt, s);
  if (tokens.empty() && has_prompt) fail(ErrorCode::kUsage, "the prompt is empty");
  report.misses_template = has_prompt && misses_template(*model, tokens, s);
  report.n_prompt = static_cast<int64_t>(tokens.size());

  if (!s.compare.empty()) return run_comparison(s, cache, report, model, tokens, progress);
  if (auto matcher = matcher_of(report, *model)) sampler.set_grammar(*std::move(matcher));
  Session session(model, report.session);
  if (s.saved.loads()) session.load(s.saved.load_path());
  report.n_loaded = session.n_past();
  report.session = session.options();
  report.n_ctx = session.n_ctx();
  const Timer since_prefill;
  if (tokens.empty() || read_into(session, tokens, progress)) {
    if (s.saved.saves()) session.save(s.saved.save_path());
    report.after_prefill = session.stats();
    sampler.accept(tokens);
    write_answer(session, sampler, s, since_prefill, progress, report);
  } else {
    report.generation.stop_reason = StopReason::cancelled;
    report.cancelled_after_seconds = since_prefill.seconds();
  }
  report.at_end = session.stats();
  progress.clear();
  if (s.json) write_stdout(to_json(report));
  if (!s.json && stdout_is_terminal()) write_stderr("\n");
  write_styled_stderr(summary(report, s.show_timings, colour_stderr()));
  return report.generation.stop_reason == StopReason::cancelled
             ? static_cast<int>(ErrorCode::kCancelled)
             : 0;
}

}  // namespace

Command add_generate_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<GenerateSettings>();
  CLI::App* app = root.add_subcommand("generate", "Read a prompt and write the answer to stdout");
  add_options(*app, *settings);
  return {app, [settings, &common] { return run_generate(*settings, common); }};
}

}  // namespace snapkv::cli
