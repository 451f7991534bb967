// SPDX-License-Identifier: MIT
#include "cli/common/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "cli/common/policy_options.h"
#include "cli/common/table_options.h"
#include "cli/common/terminal.h"
#include "cli/models/local_models.h"
#include "snapkv/options.h"

namespace snapkv::cli {
namespace {

constexpr const char* kModelGroup = "Model";

SessionOptions options_of(const CacheSettings& settings, int64_t n_ctx, const std::string& policy,
                          const ModelInfo* model) {
  SessionOptions options = settings.session;
  options.n_ctx = n_ctx;
  options.kv = policy_config(settings, policy, model);
  if (!policy_info(policy).has_budget) {
    options.kv_memory = 0;
    options.kv_decode_limit = 0;
    options.kv_refresh = false;
    if (options.draft == Draft::self) options.draft = Draft::lookup;
  }
  PolicyConfig checked = options.kv;
  // a stand-in for a value that is not known yet
  if (options.kv_memory > 0) checked.budget = std::numeric_limits<int32_t>::max();
  if (model == nullptr && !settings.params.contains("window_size")) checked.window_size = 1;
  validate(checked);
  return options;
}

// Warns about options that "full" ignores. Its name alone turns compression off, but somebody who
// types both must be told.
void warn_of_options_without_effect(const CacheSettings& settings) {
  std::vector<std::string> flags;
  for (const SharedParam& shared : shared_params()) {
    const std::vector<std::string>& typed = settings.typed_params;
    if (std::find(typed.begin(), typed.end(), shared.param->name) != typed.end()) {
      flags.push_back(flag_of(shared.param->option));
    }
  }
  const std::vector<std::string>& typed = settings.typed_options;
  if (std::find(typed.begin(), typed.end(), "--kv-refresh") != typed.end()) {
    flags.emplace_back("--kv-refresh");
  }
  if (flags.empty()) return;
  write_stderr(fmt::format("snapkv: warning: --kv-policy {} keeps every row: without effect: {}\n",
                           settings.policy, fmt::join(flags, ", ")));
}

bool has_own_memory(const std::string& device) {
  const std::vector<DeviceInfo> all = devices();
  return std::any_of(all.begin(), all.end(),
                     [&](const DeviceInfo& d) { return d.name == device && d.own_memory; });
}

void add_model_options(CLI::App& command, const std::string& names, ModelSettings& settings) {
  ModelOptions& options = settings;
  const OptionInfo& model = *model_option_table().find("model");
  add_table_option(command, names, model, options.path,
                   [&options](const OptionValue& value) {
                     options.path = model_path(std::get<std::string>(value));
                   })
      ->description(model.help + ", or a name that snapkv models lists")
      ->type_name("FILE|NAME")
      ->group(kModelGroup);
  add_table_option(command, model_option_table(), "compute", options)->group(kModelGroup);
}

}  // namespace

void add_common_options(CLI::App& app, CommonSettings& settings) {
  app.add_option("--config", settings.config,
                 "Configuration file [default: $XDG_CONFIG_HOME/snapkv/config.toml or "
                 "~/.config/snapkv/config.toml, if there]")
      ->type_name("FILE");
  app.add_flag("-v,--verbose", settings.verbose, "Print the library's messages to stderr");
  app.add_flag("--no-progress", settings.no_progress, "No progress on stderr");
}

void add_model_options(CLI::App& command, ModelSettings& settings) {
  add_model_options(command, flag_names("model"), settings);
}

void add_model_argument(CLI::App& command, ModelSettings& settings) {
  add_model_options(command, flag_names("model") + ",MODEL", settings);
}

void add_scaling_options(CLI::App& command, ModelSettings& settings) {
  ModelOptions& options = settings;
  for (const char* name : {"rope_scaling", "yarn_factor", "yarn_orig_ctx"}) {
    add_table_option(command, model_option_table(), name, options)->group(kModelGroup);
  }
}

void add_device_options(CLI::App& command, ModelSettings& settings) {
  command
      .add_option("--gpu-layers,--n-gpu-layers", settings.n_gpu_layers,
                  "As llama.cpp's -ngl: 0 is --device cpu, all layers or more the GPU where there "
                  "is one; a part of them is an error; -1: as --device says")
      ->check(whole_number(-1, kMostTokens))
      ->type_name("N")
      ->capture_default_str()
      ->group(kModelGroup);
  ModelOptions& options = settings;
  add_table_option(command, model_option_table(), "device", options)->group(kModelGroup);
  command
      .add_option("--cpu-target", settings.cpu_target,
                  "Use no instructions beyond these, to test or time what lesser processors do; "
                  "auto: all that this one has")
      ->check(CLI::IsMember(cpu_targets()))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kModelGroup);
  add_table_option(command, model_option_table(), "weights", options)->group(kModelGroup);
  add_scaling_options(command, settings);
}

void add_running_options(CLI::App& command, ModelSettings& settings) {
  add_device_options(command, settings);
  ModelOptions& options = settings;
  if (settings.check_tensors) {
    command
        .add_flag_callback(
            "--no-check-tensors", [&settings] { settings.check_tensors = false; },
            "Take models with infinities or NaNs among the weights too")
        ->group(kModelGroup);
  } else {
    add_table_option(command, model_option_table(), "check_tensors", options)->group(kModelGroup);
  }
  add_table_option(command, model_option_table(), "n_threads", options)->group(kModelGroup);
}

void add_cache_options(CLI::App& command, CacheSettings& settings) {
  command
      .add_option(flag_of("kv_policy"), settings.policy,
                  session_option_table().find("kv_policy")->help + " (snapkv policies)")
      ->check(CLI::IsMember(policy_names()))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kCacheGroup);
  add_policy_options(command, settings);
  command.get_option("--kv-ratio")->excludes(command.get_option("--kv-budget"));
  add_table_options(command, session_option_table(), settings.session, kCacheGroup,
                    {"n_ctx", "kv_policy", "decode_reserve", "draft", "draft_max", "draft_min",
                     "draft_ctx"});
  command.get_option("--kv-memory")
      ->excludes(command.get_option("--kv-budget"))
      ->excludes(command.get_option("--kv-ratio"));
}

void add_draft_options(CLI::App& command, CacheSettings& settings, ModelSettings& model) {
  constexpr const char* kGroup = "Guessed tokens";
  settings.session.draft = Draft::lookup;
  const CLI::Option* const draft =
      add_table_option(command, session_option_table(), "draft", settings.session)->group(kGroup);
  for (const char* name : {"draft_max", "draft_min"}) {
    add_table_option(command, session_option_table(), name, settings.session)->group(kGroup);
  }
  const OptionInfo& info = *model_option_table().find("draft_model");
  add_table_option(command, info, OptionValue(std::string()),
                   [&settings, &model, draft](const OptionValue& value) {
                     model.draft_model = model_path(std::get<std::string>(value));
                     if (!model.draft_model.empty() && draft->count() == 0) {
                       settings.session.draft = Draft::model;
                     }
                   })
      ->type_name("FILE")
      ->group(kGroup);
  add_table_option(command, session_option_table(), "draft_ctx", settings.session)->group(kGroup);
}

std::vector<SessionOptions> session_options(const CacheSettings& settings, int64_t n_ctx,
                                            const std::vector<std::string>& policies,
                                            const ModelInfo* model) {
  check_policy_options(settings, policies);
  std::vector<SessionOptions> all;
  for (const std::string& policy : policies) {
    all.push_back(options_of(settings, n_ctx, policy, model));
  }
  return all;
}

SessionOptions session_options(const CacheSettings& settings, int64_t n_ctx,
                               const ModelInfo* model) {
  if (!policy_info(settings.policy).has_budget) {
    if (settings.session.kv_memory > 0) {
      fail(ErrorCode::kUsage, "--kv-memory makes a budget, and --kv-policy {} keeps every row",
           settings.policy);
    }
    if (settings.session.kv_decode_limit > 0) {
      fail(ErrorCode::kUsage, "--kv-decode-limit compresses, and --kv-policy {} keeps every row",
           settings.policy);
    }
    if (settings.session.draft == Draft::self) {
      fail(ErrorCode::kUsage,
           "--draft self guesses with the rows that a policy keeps, and --kv-policy {} keeps every "
           "row",
           settings.policy);
    }
    if (model == nullptr) warn_of_options_without_effect(settings);  // once, before the model loads
  }
  return session_options(settings, n_ctx, {settings.policy}, model).front();
}

std::string message_of(const Error& error) { return error.message(flag_of); }

void warn_beyond_training(int64_t n_ctx, const ModelInfo& model) {
  if (model.n_ctx_train <= 0 || n_ctx <= model.n_ctx_train) return;
  write_stderr(
      fmt::format("snapkv: warning: --ctx-size {} is more than the {} tokens that the model was "
                  "trained for; what it makes of later ones is not reliable\n",
                  n_ctx, model.n_ctx_train));
}

void require_model(const ModelSettings& settings) {
  if (!settings.path.empty()) return;
  fail(ErrorCode::kUsage,
       "no model: -m FILE or -m NAME names one, as SNAPKV_MODEL and the configuration file do");
}

std::shared_ptr<const Model> load_model(const ModelSettings& settings, ProgressFn progress) {
  require_model(settings);
  if (settings.n_gpu_layers == 0 && has_own_memory(settings.device)) {
    fail(ErrorCode::kUsage, "--gpu-layers 0 is the CPU, and --device is {}", settings.device);
  }
  set_cpu_target(settings.cpu_target);
  ModelOptions options = settings;
  if (settings.n_gpu_layers == 0 && settings.device == "auto") options.device = "cpu";
  options.progress = std::move(progress);
  const auto model = Model::load(options);
  if (settings.n_gpu_layers <= 0) return model;
  if (settings.n_gpu_layers < model->info().n_layer) {
    fail(
        ErrorCode::kUsage,
        "--gpu-layers {}: the model has {} layers and runs on one device as a whole; 0 is the CPU, "
        "{} or more the GPU",
        settings.n_gpu_layers, model->info().n_layer, model->info().n_layer);
  }
  if (!model->on_device()) {
    log_warn("--gpu-layers {}: there is no GPU to use; the model runs on the CPU",
             settings.n_gpu_layers);
  }
  return model;
}

}  // namespace snapkv::cli
