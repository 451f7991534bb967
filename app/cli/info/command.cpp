// SPDX-License-Identifier: MIT
// snapkv info: what a model file says of itself, and the memory that a prompt would need with a
// full cache and with a compressed one. Reads the header only.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoSettings {
  ModelSettings model;
  CacheSettings cache;
  int64_t n_ctx = 0;
  bool metadata = false;
  bool tensors = false;
  bool json = false;
};

// The plans for one prompt that fills the context: everything kept, and the chosen policy.
struct Plans {
  int64_t n_tokens = 0;
  SessionOptions options;  // of the policy, its budget as --kv-memory makes it
  DType compute = DType::bf16;
  MemoryPlan full, kept;
};

struct PlanRow {
  const char* key;  // in JSON
  const char* label;
  size_t full, kept;
};

std::vector<PlanRow> plan_rows(const Plans& p) {
  const MemoryPlan &f = p.full, &k = p.kept;
  return {{"weights", "weights, mapped from the file", f.weights, k.weights},
          {"packed_weights", "one layer's weights, packed", f.packed_weights, k.packed_weights},
          {"hidden_states", "hidden states", f.hidden_states, k.hidden_states},
          {"activations", "activations of a chunk", f.activations, k.activations},
          {"kv_scratch", "KV of one layer, uncompressed", f.kv_scratch, k.kv_scratch},
          {"kv_kept", "KV kept, all layers", f.kv_kept, k.kv_kept},
          {"queries", "queries for --kv-decode-limit", f.queries, k.queries},
          {"total", "total", f.total(), k.total()},
          {"kv_peak", "of it KV, at most", f.kv_peak(), k.kv_peak()}};
}

Plans make_plans(const InfoSettings& s, const ModelInfo& info) {
  Plans plans;
  SessionOptions options = resolve_options(session_options(s.cache, s.n_ctx), info);
  plans.n_tokens = s.n_ctx > 0 ? s.n_ctx : info.n_ctx_train;
  if (plans.n_tokens <= 0) {
    fail(ErrorCode::kUsage, "{} names no context length: give one with --ctx-size", info.path);
  }
  plans.options = options;
  const Compute compute = compute_of(s.model);
  plans.compute = compute == Compute::f32    ? DType::f32
                  : compute == Compute::bf16 ? DType::bf16
                                             : cpu_compute_dtype();
  plans.kept = plan_memory(info, options, plans.n_tokens, plans.compute);
  options.kv = {.name = "full"};
  options.kv_decode_limit = 0;
  plans.full = plan_memory(info, options, plans.n_tokens, plans.compute);
  return plans;
}

std::string facts(const ModelInfo& m) {
  std::string text;
  const auto add = [&](const char* label, const std::string& value) {
    text += fmt::format("{:<14} {}\n", label, value);
  };
  add("model", m.name.empty() ? "(no name)" : m.name);
  add("file", m.path);
  add("architecture", m.architecture);
  add("weights", fmt::format("{} parameters, {}, mostly {}", format_count(m.n_params),
                             format_bytes(m.weight_bytes), m.file_type));
  add("layers", fmt::format("{}, {} wide, feed-forward {}", m.n_layer, m.n_embd, m.n_ff));
  add("heads", fmt::format("{} query, {} KV, {} wide", m.n_head, m.n_head_kv, m.head_dim));
  add("vocabulary", fmt::format("{} tokens, {}", m.n_vocab, m.tokenizer));
  add("context", plural(m.n_ctx_train, "token"));
  return text;
}

std::string decode_limit_line(const Plans& p) {
  const size_t row = p.kept.kv_full / static_cast<size_t>(p.n_tokens);  // of all layers
  const int64_t limit = p.options.kv_decode_limit;
  return fmt::format(
      "--kv-decode-limit {}: generated tokens make it at most {}, and one layer while that is "
      "compressed\n",
      limit, format_bytes(row * static_cast<size_t>(limit)));
}

std::string plan_table(const Plans& p) {
  std::string text =
      fmt::format("\nMemory for a prompt of {} (KV {}, compute {}):\n", plural(p.n_tokens, "token"),
                  name(p.options.kv_type), name(p.compute));
  text += fmt::format("{:<32}{:>12}{:>12}\n", "", "full cache", p.options.kv.name);
  for (const PlanRow& row : plan_rows(p)) {
    if (row.key == std::string_view("queries") && row.kept == 0) continue;
    text += fmt::format("{:<32}{:>12}{:>12}\n", row.label, format_bytes(row.full),
                        format_bytes(row.kept));
  }
  if (p.kept.kv_kept > 0) {
    text += fmt::format("{:<32}{:>12}{:>11.1f}x\n", "KV kept, compression", "1.0x",
                        static_cast<double>(p.kept.kv_full) / static_cast<double>(p.kept.kv_kept));
  }
  text += fmt::format("{}: {}\n", p.options.kv.name, describe_policy(p.options.kv));
  if (p.options.kv_memory > 0) text += describe_memory_budget(p.options) + "\n";
  if (p.options.kv_decode_limit > 0) text += decode_limit_line(p);
  return text;
}

std::string metadata_list(const std::vector<MetadataEntry>& entries) {
  std::string text = fmt::format("\nMetadata, {}:\n", plural(std::ssize(entries), "key"));
  for (const MetadataEntry& e : entries) {
    text += fmt::format("  {}  {}  {}\n", e.key, e.type, e.value);
  }
  return text;
}

std::string tensor_list(const std::vector<TensorEntry>& tensors) {
  size_t width = 0;
  for (const TensorEntry& t : tensors) width = std::max(width, t.name.size());
  std::string text = fmt::format("\nTensors, {}:\n", std::ssize(tensors));
  for (const TensorEntry& t : tensors) {
    text += fmt::format("  {:<{}}  {:<5} {:<20} {:>10}\n", t.name, width, name(t.dtype),
                        format_shape(t.shape), format_bytes(t.bytes));
  }
  return text;
}

Json to_json(const ModelDescription& d, const Plans& p, const InfoSettings& s) {
  const ModelInfo& m = d.info;
  Json full, kept;
  for (const PlanRow& row : plan_rows(p)) {
    full[row.key] = row.full;
    kept[row.key] = row.kept;
  }
  Json json = {{"path", m.path},
               {"name", m.name},
               {"architecture", m.architecture},
               {"file_type", m.file_type},
               {"tokenizer", m.tokenizer},
               {"n_params", m.n_params},
               {"weight_bytes", m.weight_bytes},
               {"n_layer", m.n_layer},
               {"n_embd", m.n_embd},
               {"n_ff", m.n_ff},
               {"n_vocab", m.n_vocab},
               {"n_ctx_train", m.n_ctx_train},
               {"n_head", m.n_head},
               {"n_head_kv", m.n_head_kv},
               {"head_dim", m.head_dim},
               {"memory",
                {{"n_tokens", p.n_tokens},
                 {"kv_type", name(p.options.kv_type)},
                 {"compute", name(p.compute)},
                 {"full", full},
                 {"policy", kept},
                 {"policy_description", describe_policy(p.options.kv)},
                 {"budget", p.kept.budget},
                 {"kv_memory", p.options.kv_memory},
                 {"kv_decode_limit", p.options.kv_decode_limit},
                 {"decode_reserve", p.options.decode_reserve}}}};
  if (s.metadata) {
    for (const MetadataEntry& e : d.metadata) {
      json["metadata"][e.key] = {{"type", e.type}, {"value", e.value}};
    }
  }
  if (s.tensors) {
    for (const TensorEntry& t : d.tensors) {
      json["tensors"].push_back(
          {{"name", t.name}, {"type", name(t.dtype)}, {"shape", t.shape}, {"bytes", t.bytes}});
    }
  }
  return json;
}

int run_info(const InfoSettings& s) {
  require_model(s.model);
  const ModelDescription description = describe_model(s.model.path);
  const Plans plans = make_plans(s, description.info);
  if (s.json) {
    const Json json = to_json(description, plans, s);
    write_stdout(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return 0;
  }
  std::string text = facts(description.info) + plan_table(plans);
  if (s.metadata) text += metadata_list(description.metadata);
  if (s.tensors) text += tensor_list(description.tensors);
  write_stdout(text);
  return 0;
}

}  // namespace

Command add_info_command(CLI::App& root, const CommonSettings&) {
  auto s = std::make_shared<InfoSettings>();
  CLI::App* app = root.add_subcommand(
      "info", "Show what a model is and the memory that a prompt needs, without loading it");
  app->add_option("-c,--ctx-size", s->n_ctx, "Tokens to plan for; 0: the model's own context")
      ->check(whole_number(0, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--metadata", s->metadata, "List the file's metadata");
  app->add_flag("--tensors", s->tensors, "List the tensors");
  app->add_flag("--json", s->json, "Print one JSON object instead of text");
  add_model_options(*app, s->model);
  add_cache_options(*app, s->cache);
  return {app, [s] { return run_info(*s); }};
}

}  // namespace snapkv::cli
