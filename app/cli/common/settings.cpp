// SPDX-License-Identifier: MIT
#include "cli/common/settings.h"

#include <limits>

#include "base/error.h"

namespace snapkv::cli {
namespace {

constexpr const char* kModelGroup = "Model";
constexpr const char* kCacheGroup = "KV cache";
constexpr const char* kSamplingGroup = "Sampling";

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
  command.add_option("-m,--model", settings.path, "GGUF file (of a split one: the first part)")
      ->type_name("FILE")
      ->group(kModelGroup);
  command
      .add_option(
          "--compute", settings.compute,
          "Precision of the prompt's matrix products; auto: bf16 where the processor has it")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->type_name("TYPE")
      ->capture_default_str()
      ->group(kModelGroup);
}

void add_device_options(CLI::App& command, ModelSettings& settings) {
  command
      .add_option(
          "--device", settings.device,
          "Where the model runs; auto: on the GPU where this build and the machine have one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kModelGroup);
  command
      .add_option(
          "--weights", settings.weights,
          "Decode from the mapped file (mapped) or, faster, from a copy in huge pages made at "
          "the start (huge); auto: the copy is made while decoding, if there is memory")
      ->check(CLI::IsMember({"auto", "mapped", "huge"}))
      ->type_name("WHERE")
      ->capture_default_str()
      ->group(kModelGroup);
}

void add_running_options(CLI::App& command, ModelSettings& settings) {
  add_device_options(command, settings);
  command
      .add_option("-t,--threads", settings.n_threads,
                  "Threads; 0: as many as the process may run on")
      ->check(whole_number(0, 4096))
      ->type_name("N")
      ->capture_default_str()
      ->group(kModelGroup);
}

void add_cache_options(CLI::App& command, CacheSettings& settings) {
  PolicyConfig& policy = settings.policy;
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return command.add_option(name, value, help)
        ->type_name(type)
        ->capture_default_str()
        ->group(kCacheGroup);
  };
  add("--kv-policy", policy.name, "What is kept of a prompt", "NAME")
      ->check(CLI::IsMember(policy_names()));
  CLI::Option* budget = add("--kv-budget", policy.budget,
                            "Rows kept per layer and KV head, the window included", "N")
      ->check(whole_number(1, kMostTokens));
  CLI::Option* ratio =
      add("--kv-ratio", policy.ratio,
          "Keep this share of the prompt instead of a budget, up to 1; 0: off", "R")
      ->check(real_number(0, 1));
  add("--kv-memory", settings.memory,
      "The largest budget whose cache takes no more than this, as in 256MiB, room for the first "
      "generated tokens included; 0: off",
      "SIZE")
      ->transform(byte_size(0))
      ->excludes(budget)
      ->excludes(ratio);
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
  add("--kv-window", policy.window_size,
      "Last tokens of the prompt, which choose what is kept and are always kept", "N")
      ->check(whole_number(1, kMostTokens));
  add("--kv-kernel", policy.kernel_size, "Pooling width, odd: a fact must fit into it", "N")
      ->check(whole_number(1, kMostKernel));
  add("--kv-pooling", settings.pooling, "How votes of neighbours combine", "NAME")
      ->check(CLI::IsMember({"max", "avg"}));
  add("--kv-group", settings.group, "How query heads of one KV head combine their votes", "NAME")
      ->check(CLI::IsMember({"mean", "max"}));
  add("--kv-sinks", policy.sinks,
      "First positions that are always kept; -1: the policy's own (4 for streaming-llm)", "N")
      ->check(whole_number(-1, kMostTokens));
  add("--kv-chunk-length", policy.chunk_length, "chunkkv: rows kept or dropped together", "N")
      ->check(whole_number(1, kMostTokens));
  add("--kv-future", policy.n_future, "expected-attention: coming positions that count", "N")
      ->check(whole_number(1, 1 << 16));
  add("--kv-head-floor", policy.head_floor,
      "ada-snapkv: share of a head's budget that other heads can't take", "X")
      ->check(real_number(0, 1));
  add("--kv-pyramid-beta", policy.pyramid_beta,
      "pyramidkv: the last layer keeps about budget / beta", "N")
      ->check(whole_number(1, kMostTokens));
  add("--kv-seed", policy.seed, "random: another seed, other rows", "N")
      ->check(seed_number());
  command
      .add_flag("--kv-critical", policy.critical,
                "Choose half of the rows by attention times the size of what they add (CriticalKV)")
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

void add_sampler_options(CLI::App& command, SamplerConfig& config, int64_t& seed) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return command.add_option(name, value, help)
        ->type_name(type)
        ->capture_default_str()
        ->group(kSamplingGroup);
  };
  add("--temp", config.temperature, "Temperature; 0: always the likeliest token", "T")
      ->check(real_number(0, SamplerConfig::kMostTemperature));
  add("--top-k", config.top_k, "Only the k likeliest tokens; 0: off", "N")
      ->check(whole_number(0, kMostTokens));
  add("--top-p", config.top_p, "Only the likeliest tokens that make up this probability; 1: off",
      "P")
      ->check(real_number(0, 1));
  add("--min-p", config.min_p, "Only tokens with this share of the best one's probability; 0: off",
      "P")
      ->check(real_number(0, 1));
  add("--repeat-penalty", config.repeat_penalty, "Makes recent tokens less likely; 1: off", "X")
      ->check(real_number(SamplerConfig::kLeastPenalty, SamplerConfig::kMostPenalty));
  add("--repeat-last-n", config.repeat_last_n, "Recent tokens for the penalty; 0: off, -1: all",
      "N")
      ->check(whole_number(-1, kMostTokens));
  add("--seed", seed, "The same seed gives the same answer; -1: another one each time", "N")
      ->check(whole_number(-1, std::numeric_limits<int64_t>::max()));
}

Compute compute_of(const ModelSettings& settings) {
  if (settings.compute == "f32") return Compute::f32;
  if (settings.compute == "bf16") return Compute::bf16;
  return Compute::automatic;
}

WeightMemory weights_of(const ModelSettings& settings) {
  if (settings.weights == "mapped") return WeightMemory::mapped;
  if (settings.weights == "huge") return WeightMemory::huge_pages;
  return WeightMemory::automatic;
}

SessionOptions session_options(const CacheSettings& settings, int64_t n_ctx) {
  SessionOptions options;
  options.n_ctx = n_ctx;
  options.kv = settings.policy;
  options.kv.pooling = settings.pooling == "avg" ? Pooling::avg : Pooling::max;
  options.kv.group = settings.group == "max" ? GroupReduce::max : GroupReduce::mean;
  options.kv_type = settings.type == "f32"    ? DType::f32
                    : settings.type == "bf16" ? DType::bf16
                    : settings.type == "q8_0" ? DType::q8_0
                                              : DType::f16;
  options.chunk = settings.chunk;
  options.memory_limit = static_cast<size_t>(settings.memory_limit);
  options.spill_dir = settings.spill_dir;
  options.kv_memory = static_cast<size_t>(settings.memory);
  if (options.kv_memory > 0 && options.kv.name == "full") {
    fail(ErrorCode::kUsage, "--kv-memory makes a budget, and --kv-policy full keeps every row");
  }
  options.kv_refresh = settings.refresh;
  options.kv_decode_limit = settings.decode_limit;
  if (options.kv_decode_limit > 0 && options.kv.name == "full") {
    fail(ErrorCode::kUsage, "--kv-decode-limit compresses, and --kv-policy full keeps every row");
  }
  PolicyConfig checked = options.kv;
  if (options.kv_memory > 0) checked.budget = std::numeric_limits<int32_t>::max();  // not yet known
  validate(checked);
  return options;
}

void require_model(const ModelSettings& settings) {
  if (!settings.path.empty()) return;
  fail(ErrorCode::kUsage,
       "no model: name one with -m FILE, SNAPKV_MODEL or in the configuration file");
}

std::shared_ptr<const Model> load_model(const ModelSettings& settings, ProgressFn progress) {
  require_model(settings);
  return Model::load({.path = settings.path,
                      .device = settings.device == "cuda"  ? Device::cuda
                                : settings.device == "cpu" ? Device::cpu
                                                           : Device::automatic,
                      .compute = compute_of(settings),
                      .weights = weights_of(settings),
                      .n_threads = settings.n_threads,
                      .progress = std::move(progress)});
}

}  // namespace snapkv::cli
