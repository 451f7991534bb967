// SPDX-License-Identifier: MIT
// /v1/models and /props.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/kv_fields.h"
#include "server/api/option_json.h"
#include "server/api/report.h"
#include "server/api/tools.h"
#include "snapkv/options.h"

namespace snapkv::server {
namespace {

Json entry(const ApiContext& context) {
  const ModelInfo& info = context.model().info();
  const int64_t n_ctx =
      context.options.session.n_ctx > 0 ? context.options.session.n_ctx : info.n_ctx_train;
  return {{"id", context.options.model_name},
          {"object", "model"},
          {"created", context.options.created},
          {"owned_by", "snapkv"},
          {"type", "model"},  // Anthropic's members
          {"display_name", context.options.model_name},
          {"created_at", time_text(context.options.created)},
          {"meta",
           {{"n_vocab", context.model().tokenizer().n_vocab()},
            {"n_ctx", n_ctx},
            {"n_ctx_train", info.n_ctx_train},
            {"n_embd", info.n_embd}}}};
}

/// Returns the policies' tables with the values that a request gets which only names the policy.
Json policies_in_force(const ApiContext& context) {
  Json all = policies_json();
  for (Json& policy : all) {
    const auto name = policy["name"].get<std::string>();
    const PolicyConfig& own = context.options.session.kv;
    Json values = policy_values(own.name == name ? own : context.options.policy(name));
    values.erase("policy");
    policy["values"] = values;
  }
  return all;
}

}  // namespace

Json models_json(const ApiContext& context) {
  const std::string& name = context.options.model_name;
  return {{"object", "list"},
          {"data", Json::array({entry(context)})},
          {"has_more", false},
          {"first_id", name},
          {"last_id", name}};
}

Json model_json(const ApiContext& context, const std::string& id) {
  if (id.starts_with("claude-")) {  // Anthropic's clients have names of their own
    Json claude = entry(context);
    claude["id"] = id;
    return claude;
  }
  if (id != context.options.model_name) {
    throw ApiError(404,
                   fmt::format("there is no model '{}', only '{}'", id, context.options.model_name),
                   "model_not_found", "model");
  }
  return entry(context);
}

namespace {

/// The options of the sampler that a client may set, with the values in force.
Json sampler_json(const SamplerConfig& config) {
  Json all = Json::array();
  for (OptionInfo info : sampler_option_table().infos()) {
    info.default_value = sampler_option_table().get(config, info.name);
    all.push_back(option_json(info));
  }
  return all;
}

Json sampler_values(const SamplerConfig& config) {
  Json values = Json::object();
  for (const Json& option : sampler_json(config)) {
    values[option["name"].get<std::string>()] = option["default"];
  }
  return values;
}

}  // namespace

Json props_json(const ApiContext& context) {
  const ApiOptions& options = context.options;
  const Json model = entry(context);
  const auto variable = [&](const char* name) {
    return options.template_variables.value(name, "");
  };
  return {
      {"default_generation_settings",
       {{"n_ctx", model["meta"]["n_ctx"]}, {"params", sampler_values(options.sampler)}}},
      {"sampling", sampler_json(options.sampler)},
      {"total_slots", context.engine.options().n_parallel},
      {"model_alias", options.model_name},
      {"model_path", std::filesystem::path(context.model().info().path).filename().string()},
      {"chat_template", options.chat_template ? options.chat_template->source() : ""},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"bos_token", variable("bos_token")},
      {"eos_token", variable("eos_token")},
      {"tool_format", options.tool_template ? chat::format_name(chat::tool_format_or_generic(
                                                  options.tool_template->source()))
                                            : "none"},
      {"build_info", fmt::format("snapkv {}", version())},
      {"backend", context.model().backend_description()},
      {"kv",
       {{"defaults", policy_values(options.session.kv)}, {"policies", policies_in_force(context)}}},
      {"has_snapshots", !options.snapshot_dir.empty()}};
}

}  // namespace snapkv::server
