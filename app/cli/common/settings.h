// SPDX-License-Identifier: MIT
// Options that several commands share. Their values come from the command line, else from SNAPKV_*
// environment variables, else from the configuration file, else from the default.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/number_options.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Settings that every command has.
struct CommonSettings {
  std::string config;
  bool verbose = false;
  bool no_progress = false;
};

struct ModelSettings : ModelOptions {
  int64_t n_gpu_layers = -1;  // as llama.cpp's -ngl; -1: as `device` says
  std::string cpu_target = "auto";
};

/// How a session's cache is compressed and stored.
struct CacheSettings {
  std::string policy = kDefaultPolicy;
  PolicyParams params;  // of all policies: values that were set, or the command's own defaults
  std::vector<std::string> typed_params;   // the parameters set on the command line
  std::vector<std::string> typed_options;  // all options of the command line, as "--kv-type"
  SessionOptions session;  // all but n_ctx, and kv, which is made of `policy` and `params`
};

/// A subcommand: its options and the function that runs it and returns the exit code, or its own
/// subcommands.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run = {};
  std::vector<Command> tasks = {};
};

void add_common_options(CLI::App& app, CommonSettings& settings);
/// Adds the options for the file and the precision; commands that compute use add_running_options.
void add_model_options(CLI::App& command, ModelSettings& settings);
/// The same; the model may also be the first word that has no option before it.
void add_model_argument(CLI::App& command, ModelSettings& settings);
/// Adds the options for scaled positions (RoPE).
void add_scaling_options(CLI::App& command, ModelSettings& settings);
/// Adds these, and the options for the device and for how weights are held.
void add_device_options(CLI::App& command, ModelSettings& settings);
/// Adds the same, the number of threads, and the check of weights: a command that sets
/// `settings.check_tensors` beforehand gets the option to skip it.
void add_running_options(CLI::App& command, ModelSettings& settings);
/// Adds the options for which rows are kept, and in what type.
void add_cache_options(CLI::App& command, CacheSettings& settings);
/// Adds the options for speculative decoding, which is then on by default: with a model that guesses
/// if there is one, else by looking up.
void add_draft_options(CLI::App& command, CacheSettings& settings, ModelSettings& model);
void add_sampler_options(CLI::App& command, SamplerConfig& config);

/// A session's options: from the settings, else as the model's file recommends
/// (ModelInfo::policy_defaults), else the papers' defaults. `model` is null to refuse invalid
/// settings before the model is loaded; what its file may still change is then not checked. Throws
/// kUsage when the policy can't work or lacks an option that was typed.
SessionOptions session_options(const CacheSettings& settings, int64_t n_ctx,
                               const ModelInfo* model = nullptr);
/// The same for several policies, in their order: an option is valid if any of them has it, and
/// policies without a budget take none.
std::vector<SessionOptions> session_options(const CacheSettings& settings, int64_t n_ctx,
                                            const std::vector<std::string>& policies,
                                            const ModelInfo* model = nullptr);
/// The message of an error, with the command's names of the options that it mentions.
std::string message_of(const Error& error);
/// Warns on stderr when a context (0: the model's own) is longer than the model was trained for.
void warn_beyond_training(int64_t n_ctx, const ModelInfo& model);
/// Throws kUsage when the settings name no model.
void require_model(const ModelSettings& settings);
/// Loads the model that the settings name.
std::shared_ptr<const Model> load_model(const ModelSettings& settings, ProgressFn progress);

/// Sets options of `command` that the command line left unset from the environment, else from the
/// configuration file (a section is a command, [eval.needle] a command's task). With
/// `settings.config` empty, reads the default file if there is one. Returns the file's name, empty
/// for none. Throws kUsage for unknown names and bad values, kRuntime when a named file can't be
/// read.
std::string apply_environment_and_config(CLI::App& root, CLI::App& command,
                                         const CommonSettings& settings);

}  // namespace snapkv::cli
