// SPDX-License-Identifier: MIT
// snapkv info: shows what a model file contains, whether it can run, and the memory that a prompt
// needs with a full and with a compressed cache. Reads no weights.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/terminal.h"
#include "cli/info/report.h"

namespace snapkv::cli {
namespace {

struct InfoSettings {
  ModelSettings model;
  CacheSettings cache;
  int64_t n_ctx = 0;
  bool metadata = false;
  bool tensors = false;
  bool json = false;
  bool check = false;
};

InfoPlans make_plans(const InfoSettings& s, const ModelInfo& info) {
  InfoPlans plans;
  SessionOptions options = resolve_options(session_options(s.cache, s.n_ctx, &info), info);
  plans.n_tokens = s.n_ctx > 0 ? s.n_ctx : info.n_ctx_train;
  if (plans.n_tokens <= 0) {
    fail(ErrorCode::kUsage, "{} names no context length: give one with --ctx-size", info.path);
  }
  plans.options = options;
  const Compute compute = s.model.compute;
  plans.compute = compute == Compute::f32    ? DType::f32
                  : compute == Compute::bf16 ? DType::bf16
                                             : cpu_compute_dtype();
  plans.free_memory =
      s.cache.session.memory_limit > 0 ? s.cache.session.memory_limit : free_memory();
  plans.kept = plan_memory(info, options, plans.n_tokens, plans.compute);
  plans.longest_kept = longest_prompt(info, options, plans.free_memory, plans.compute);
  options.kv = {.name = "full"};
  options.kv_memory = 0;
  options.kv_decode_limit = 0;
  if (options.draft == Draft::self) options.draft = Draft::lookup;  // there are no others
  plans.full = plan_memory(info, options, plans.n_tokens, plans.compute);
  plans.longest_full = longest_prompt(info, options, plans.free_memory, plans.compute);
  return plans;
}

int run_info(const InfoSettings& s) {
  session_options(s.cache, s.n_ctx);  // refuses invalid options before a file is read
  require_model(s.model);
  InfoReport report;
  report.model = describe_model(s.model);
  if (report.model.info.decoder != nullptr) report.plans = make_plans(s, report.model.info);
  warn_beyond_training(s.n_ctx, report.model.info);
  report.metadata = s.metadata;
  report.tensors = s.tensors;
  write_stdout(s.json ? info_json(report) + "\n"
                      : info_text(report, stdout_width(), stdout_is_terminal()));
  const bool fails = s.check && !report.model.problems.empty();
  return fails ? static_cast<int>(ErrorCode::kBadModel) : 0;
}

}  // namespace

Command add_info_command(CLI::App& root, const CommonSettings&) {
  auto s = std::make_shared<InfoSettings>();
  CLI::App* app = root.add_subcommand(
      "info", "Show what a model is, whether it can run, and the memory that a prompt needs");
  app->add_option("-c,--ctx-size", s->n_ctx, "Tokens to plan for; 0: the model's own context")
      ->check(whole_number(0, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--metadata", s->metadata, "List the file's metadata");
  app->add_flag("--tensors", s->tensors, "List the tensors");
  app->add_flag("--json", s->json, "Print one JSON object instead of text");
  app->add_flag("--check", s->check, "Exit with 3 if the model can't run");
  add_model_argument(*app, s->model);
  add_scaling_options(*app, s->model);
  add_cache_options(*app, s->cache);
  add_draft_options(*app, s->cache, s->model);  // the memory of guesses is part of the plan
  return {app, [s] { return run_info(*s); }};
}

}  // namespace snapkv::cli
