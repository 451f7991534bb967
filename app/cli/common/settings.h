// SPDX-License-Identifier: MIT
// Options that several commands share, and where their values come from: the command line, else
// SNAPKV_* environment variables, else the configuration file, else the default.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/common/number_options.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// Of every command.
struct CommonSettings {
  std::string config;
  bool verbose = false;
  bool no_progress = false;
};

struct ModelSettings {
  std::string path;
  int n_threads = 0;
  std::string compute = "auto";
  std::string weights = "auto";
  std::string device = "auto";
  int64_t n_gpu_layers = -1;  // as llama.cpp's -ngl; -1: as `device` says
  bool check_tensors = false;
  std::string cpu_target = "auto";
};

/// What a session keeps.
struct CacheSettings {
  std::string policy = kDefaultPolicy;
  PolicyParams params;  // of all policies together: what was set, or is the command's own default
  std::vector<std::string> typed_params;   // those of the command line
  std::vector<std::string> typed_options;  // all options of the command line, as "--kv-type"
  std::string type = "f16";
  uint64_t memory = 0;       // bytes to make the budget of; 0: the policy's
  int64_t decode_limit = 0;  // rows at which decoding compresses again; 0: never
  bool refresh = false;      // later turns choose from all rows again
  int64_t chunk = SessionOptions{}.chunk;
  uint64_t memory_limit = 0;
  std::string spill_dir;  // empty: hidden states are in memory
};

/// A subcommand: its options and what runs it (returns the exit code), or subcommands of its own.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run = {};
  std::vector<Command> tasks = {};
};

void add_common_options(CLI::App& app, CommonSettings& settings);
/// The file and the precision; add_running_options for commands that compute.
void add_model_options(CLI::App& command, ModelSettings& settings);
/// Where it runs and where the weights are.
void add_device_options(CLI::App& command, ModelSettings& settings);
/// The same, how many threads, and whether weights are checked: a command that sets
/// `settings.check_tensors` before gets the option to leave that out.
void add_running_options(CLI::App& command, ModelSettings& settings);
/// Which rows are kept, in what type.
void add_cache_options(CLI::App& command, CacheSettings& settings);
void add_sampler_options(CLI::App& command, SamplerConfig& config, int64_t& seed);

/// The seed of --seed; -1: another one each time. Throws kUsage for others below 0.
uint64_t sampler_seed(int64_t seed);

Compute compute_of(const ModelSettings& settings);
WeightMemory weights_of(const ModelSettings& settings);
/// What a session keeps: the settings, else what the model's file recommends
/// (ModelInfo::policy_defaults), else the papers' defaults. Every command has its options from
/// here. `model` is null before the model is known: for settings that must be refused before it is
/// loaded; what the file may still change is then not checked. Throws kUsage when the policy can't
/// work or does not have an option that was typed.
SessionOptions session_options(const CacheSettings& settings, int64_t n_ctx,
                               const ModelInfo* model = nullptr);
/// The same with other policies, in their order: an option is of use if any of them has it, and
/// those that have no budget take none.
std::vector<SessionOptions> session_options(const CacheSettings& settings, int64_t n_ctx,
                                            const std::vector<std::string>& policies,
                                            const ModelInfo* model = nullptr);
/// The options' names in place of the library's, where a message has those of SessionOptions. Names
/// of files stay as they are, and so do `typed` words of the user's that the message quotes.
std::string name_flags(const std::string& message, const std::vector<std::string>& typed = {});
/// A warning on stderr when a context (0: the model's own) is longer than the model's training.
void warn_beyond_training(int64_t n_ctx, const ModelInfo& model);
/// Throws kUsage when the settings name no model.
void require_model(const ModelSettings& settings);
/// Loads the model that the settings name.
std::shared_ptr<const Model> load_model(const ModelSettings& settings, ProgressFn progress);

/// Gives the options of `command` that the command line left alone their values from the
/// environment, else from the configuration file (a section is a command, [eval.needle] a command's
/// task): config_file.cpp. `settings.config` empty: the
/// default file, if there is one. Returns the file's name, empty for none. Throws kUsage for
/// unknown names and bad values, kRuntime when a named file can't be read.
std::string apply_environment_and_config(CLI::App& root, CLI::App& command,
                                         const CommonSettings& settings);

}  // namespace snapkv::cli
