// SPDX-License-Identifier: MIT
#include "cli/common/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <regex>

#include "base/error.h"
#include "base/log.h"
#include "cli/common/policy_options.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

constexpr const char* kModelGroup = "Model";

SessionOptions options_of(const CacheSettings& settings, int64_t n_ctx, const std::string& policy,
                          const ModelInfo* model) {
  SessionOptions options;
  options.n_ctx = n_ctx;
  options.kv = policy_config(settings, policy, model);
  options.kv_type = settings.type == "f32"    ? DType::f32
                    : settings.type == "bf16" ? DType::bf16
                    : settings.type == "q8_0" ? DType::q8_0
                                              : DType::f16;
  options.chunk = settings.chunk;
  options.memory_limit = settings.memory_limit;
  options.spill_dir = settings.spill_dir;
  if (policy_info(policy).has_budget) {
    options.kv_memory = settings.memory;
    options.kv_decode_limit = settings.decode_limit;
    options.kv_refresh = settings.refresh;
  }
  PolicyConfig checked = options.kv;
  // a stand-in for a value that is not known yet
  if (options.kv_memory > 0) checked.budget = std::numeric_limits<int32_t>::max();
  if (model == nullptr && !settings.params.contains("window_size")) checked.window_size = 1;
  validate(checked, ParamNames::flags);
  return options;
}

// Whether [begin, end) is part of a key (as snapkv.window_size), an option or a file's name.
bool is_in_longer_name(const std::string& message, size_t begin, size_t end) {
  constexpr std::string_view kJoins = ".-/\\";
  if (begin > 0 && kJoins.find(message[begin - 1]) != std::string_view::npos) return true;
  if (end == message.size() || kJoins.find(message[end]) == std::string_view::npos) return false;
  // a full stop at the end of a sentence joins nothing
  return end + 1 < message.size() && message[end + 1] != ' ' && message[end + 1] != '\n';
}

// Whether [begin, end) is part of a word that the user typed.
bool is_typed(const std::string& message, size_t begin, size_t end,
              const std::vector<std::string>& typed) {
  return std::any_of(typed.begin(), typed.end(), [&](const std::string& word) {
    if (word.size() < end - begin) return false;
    const size_t first = end > word.size() ? end - word.size() : 0;
    const size_t at = message.find(word, first);
    return at != std::string::npos && at <= begin;
  });
}

// Warns about options that "full" ignores. Its name alone turns compression off, but somebody who
// types both must be told.
void warn_of_options_without_effect(const CacheSettings& settings) {
  std::vector<std::string> flags;
  for (const SharedParam& shared : shared_params()) {
    const std::vector<std::string>& typed = settings.typed_params;
    if (std::find(typed.begin(), typed.end(), shared.param->name) != typed.end()) {
      flags.push_back(shared.param->flag);
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
  command
      .add_option("-m,--model", settings.path,
                  "GGUF file (of a split one: the first part), or folder of a Hugging Face model")
      ->type_name("FILE")
      ->group(kModelGroup);
  command
      .add_option(
          "--compute", settings.compute,
          "Precision of matrix products; auto: activations are rounded to 8 bits or to "
          "bf16, whichever is fastest; bf16: to 8 bits while decoding only; f32: nothing is "
          "rounded")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->type_name("TYPE")
      ->capture_default_str()
      ->group(kModelGroup);
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
  command
      .add_option(
          "--device", settings.device,
          "Where the model runs; auto: on the GPU where this build and the machine have one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kModelGroup);
  command
      .add_option("--cpu-target", settings.cpu_target,
                  "Use no instructions beyond these, to test or time what lesser processors do; "
                  "auto: all that this one has")
      ->check(CLI::IsMember(cpu_targets()))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kModelGroup);
  command
      .add_option(
          "--weights", settings.weights,
          "Decode from the mapped file (mapped) or, faster, from a copy in huge pages made at "
          "the start (huge); auto: the copy is made while decoding, if there is memory; copy: read "
          "the whole model at the start and close its files, which may then change")
      ->check(CLI::IsMember({"auto", "mapped", "huge", "copy"}))
      ->type_name("WHERE")
      ->capture_default_str()
      ->group(kModelGroup);
}

void add_running_options(CLI::App& command, ModelSettings& settings) {
  add_device_options(command, settings);
  if (settings.check_tensors) {
    command
        .add_flag_callback(
            "--no-check-tensors", [&settings] { settings.check_tensors = false; },
            "Take models with infinities or NaNs among the weights too")
        ->group(kModelGroup);
  } else {
    command
        .add_flag("--check-tensors", settings.check_tensors,
                  "Read all weights first, and refuse models with infinities or NaNs among them")
        ->group(kModelGroup);
  }
  command
      .add_option("-t,--threads", settings.n_threads,
                  "Threads; 0: one for each processor that the process may use")
      ->check(whole_number(0, 4096))
      ->type_name("N")
      ->capture_default_str()
      ->group(kModelGroup);
}

void add_cache_options(CLI::App& command, CacheSettings& settings) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return command.add_option(name, value, help)
        ->type_name(type)
        ->capture_default_str()
        ->group(kCacheGroup);
  };
  add("--kv-policy", settings.policy, "What is kept of a prompt (snapkv policies)", "NAME")
      ->check(CLI::IsMember(policy_names()));
  add_policy_options(command, settings);
  command.get_option("--kv-ratio")->excludes(command.get_option("--kv-budget"));
  add("--kv-memory", settings.memory,
      "The largest budget whose cache takes no more than this, as in 256MiB, room for the first "
      "generated tokens included; 0: off",
      "SIZE")
      ->transform(byte_size(0))
      ->excludes(command.get_option("--kv-budget"))
      ->excludes(command.get_option("--kv-ratio"));
  add("--kv-decode-limit", settings.decode_limit,
      "Compress to the budget again when generated tokens have filled the cache to this many rows "
      "per layer and KV head; 0: never",
      "N")
      ->check(whole_number(0, kMostTokens));
  command
      .add_flag("--kv-refresh", settings.refresh,
                "Keep the uncompressed rows as well, in memory or in --spill-dir, so that every "
                "further turn reads and chooses from all of them")
      ->group(kCacheGroup);
  add("--kv-type", settings.type, "Type of the cache; q8_0 takes half of f16's memory", "TYPE")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  add("--chunk", settings.chunk, "Prompt tokens computed at a time; bounds activations", "N")
      ->check(whole_number(1, 1 << 20));
  add("--memory-limit", settings.memory_limit,
      "Refuse prompts that would need more, as in 8G; 0: what the system has left", "SIZE")
      ->transform(byte_size(0));
  add("--spill-dir", settings.spill_dir,
      "Keep a long prompt's hidden states in a temporary file in this folder, not in memory",
      "DIR");
}

Compute compute_of(const ModelSettings& settings) {
  if (settings.compute == "f32") return Compute::f32;
  if (settings.compute == "bf16") return Compute::bf16;
  return Compute::automatic;
}

WeightMemory weights_of(const ModelSettings& settings) {
  if (settings.weights == "mapped") return WeightMemory::mapped;
  if (settings.weights == "huge") return WeightMemory::huge_pages;
  if (settings.weights == "copy") return WeightMemory::copy;
  return WeightMemory::automatic;
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
    if (settings.memory > 0) {
      fail(ErrorCode::kUsage, "--kv-memory makes a budget, and --kv-policy {} keeps every row",
           settings.policy);
    }
    if (settings.decode_limit > 0) {
      fail(ErrorCode::kUsage, "--kv-decode-limit compresses, and --kv-policy {} keeps every row",
           settings.policy);
    }
    if (model == nullptr) warn_of_options_without_effect(settings);  // once, before the model loads
  }
  return session_options(settings, n_ctx, {settings.policy}, model).front();
}

std::string name_flags(const std::string& message, const std::vector<std::string>& typed) {
  std::map<std::string, std::string> flags = {{"n_ctx", "--ctx-size"},
                                              {"n_threads", "--threads"},
                                              {"chunk", "--chunk"},
                                              {"policy", "--kv-policy"},
                                              {"decode_reserve", "reserve for generated tokens"}};
  for (const char* name :
       {"kv_memory", "kv_decode_limit", "kv_type", "kv_refresh", "memory_limit", "spill_dir"}) {
    std::string flag = fmt::format("--{}", name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    flags[name] = flag;
  }
  for (const SharedParam& shared : shared_params()) flags[shared.param->name] = shared.param->flag;
  // names that are English words stay, unless the message gives their value
  std::string fields;
  for (const auto& [name, flag] : flags) {
    const bool is_word = name.find('_') == std::string::npos;
    fields += fmt::format("{}{}{}", fields.empty() ? "" : "|", name,
                          is_word ? "(?=, which| = | must | is \\d| exclude)" : "");
  }
  const std::regex name("\\b(" + fields + ")\\b");
  std::string text;
  auto rest = message.begin();
  for (std::sregex_iterator i(message.begin(), message.end(), name), end; i != end; ++i) {
    const auto first = static_cast<size_t>(i->position()), last = first + i->length();
    const bool stays =
        is_in_longer_name(message, first, last) || is_typed(message, first, last, typed);
    text.append(rest, message.begin() + i->position());
    text.append(stays ? i->str() : flags.at(i->str()));
    rest = message.begin() + i->position() + i->length();
  }
  return text.append(rest, message.end());
}

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
       "no model: name one with -m FILE, SNAPKV_MODEL or in the configuration file");
}

std::shared_ptr<const Model> load_model(const ModelSettings& settings, ProgressFn progress) {
  require_model(settings);
  if (settings.n_gpu_layers == 0 && settings.device == "cuda") {
    fail(ErrorCode::kUsage, "--gpu-layers 0 is the CPU, and --device is cuda");
  }
  set_cpu_target(settings.cpu_target);
  const bool on_cpu = settings.device == "cpu" || settings.n_gpu_layers == 0;
  const auto model = Model::load({.path = settings.path,
                                  .device = settings.device == "cuda" ? Device::cuda
                                            : on_cpu                  ? Device::cpu
                                                                      : Device::automatic,
                                  .compute = compute_of(settings),
                                  .weights = weights_of(settings),
                                  .n_threads = settings.n_threads,
                                  .progress = std::move(progress),
                                  .check_tensors = settings.check_tensors});
  if (settings.n_gpu_layers <= 0) return model;
  if (settings.n_gpu_layers < model->info().n_layer) {
    fail(
        ErrorCode::kUsage,
        "--gpu-layers {}: the model has {} layers and runs on one device as a whole; 0 is the CPU, "
        "{} or more the GPU",
        settings.n_gpu_layers, model->info().n_layer, model->info().n_layer);
  }
  if (model->backend_description().rfind("cpu", 0) == 0) {
    log_warn("--gpu-layers {}: there is no GPU to use; the model runs on the CPU",
             settings.n_gpu_layers);
  }
  return model;
}

}  // namespace snapkv::cli
