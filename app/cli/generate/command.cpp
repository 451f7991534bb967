// SPDX-License-Identifier: MIT
// snapkv generate: reads a prompt, compresses its cache, writes the answer to stdout as it comes.
#include <memory>
#include <random>

#include "base/error.h"
#include "base/timer.h"
#include "cli/commands.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/generate/generation.h"
#include "cli/generate/report.h"
#include "snapkv/text_stream.h"

namespace snapkv::cli {
namespace {

struct GenerateSettings {
  ModelSettings model;
  CacheSettings cache;
  SamplerConfig sampler;
  int64_t seed = 0;
  PromptSettings prompt;
  GenerationLimits limits;
  int64_t n_ctx = 0;
  bool no_bos = false;
  bool plain_text = false;
  bool json = false;
  bool show_timings = false;
};

void add_options(CLI::App& app, GenerateSettings& s) {
  s.prompt.add_options(app);
  app.add_option("-n,--n-predict", s.limits.n_predict,
                 "Most tokens of the answer; -1: until it ends or the context is full")
      ->check(whole_number(-1, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("-c,--ctx-size", s.n_ctx, "Most tokens of prompt and answer; 0: the model's own")
      ->check(whole_number(0, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--stop", s.limits.stops,
         "End the answer before this text, which is not printed; can be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", s.limits.ignore_eos, "Never let the model end its answer");
  app.add_flag("--no-bos", s.no_bos, "Don't begin the prompt with the model's BOS token");
  app.add_flag("--no-special", s.plain_text,
               "Take control tokens that are written out in the prompt as plain text");
  app.add_flag("--json", s.json,
               "Print one JSON object (answer, tokens, settings, timings, cache) instead of text");
  app.add_flag("--show-timings", s.show_timings,
               "Add the parts of the prompt's time to the summary");
  add_model_options(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_sampler_options(app, s.sampler, s.seed);
}

uint64_t seed_of(int64_t seed) {
  if (seed < -1) fail(ErrorCode::kUsage, "seed must be 0 or more, or -1, not {}", seed);
  if (seed >= 0) return static_cast<uint64_t>(seed);
  return std::random_device{}() & 0x7fffffffu;  // printed with --json, to be given again
}

// Prefill; false when Ctrl-C or another signal stopped it.
bool read_into(Session& session, const std::vector<int32_t>& tokens, ProgressDisplay& progress) {
  try {
    session.prefill(tokens, {.progress = progress.callback()});
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kCancelled) throw;
    return false;
  }
  return true;
}

// Decodes, and streams the text unless it goes into the JSON.
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

int run_generate(const GenerateSettings& s, const CommonSettings& common) {
  RunReport report;
  report.session = session_options(s.cache, s.n_ctx);
  report.sampler = s.sampler;
  report.sampler.seed = seed_of(s.seed);
  report.limits = s.limits;
  Sampler sampler(report.sampler);
  TextStream(s.limits.stops);  // refuses what is no text, before a long prompt is read
  require_model(s.model);
  const std::string prompt = s.prompt.read();

  ProgressDisplay progress(!common.no_progress, common.verbose);
  const Timer since_start;
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  report.load_seconds = since_start.seconds();
  report.model = model->info();
  report.backend = model->backend_description();
  const std::vector<int32_t> tokens = model->tokenize(prompt, !s.no_bos, !s.plain_text);
  if (tokens.empty()) fail(ErrorCode::kUsage, "the prompt is empty");
  report.n_prompt = static_cast<int64_t>(tokens.size());

  Session session(model, report.session);
  report.session = session.options();
  report.n_ctx = session.n_ctx();
  const Timer since_prefill;
  if (read_into(session, tokens, progress)) {
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
  write_stderr(summary(report, s.show_timings, colour_stderr()));
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
