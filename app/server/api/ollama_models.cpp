// SPDX-License-Identifier: MIT
// /api/version, /api/tags, /api/ps and /api/show: what Ollama's clients ask of the server and its
// model.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "server/api/report.h"
#include "server/api/tools.h"
#include "snapkv/fill_in.h"

namespace snapkv::server {
namespace {

/// The API of this version of Ollama is what there is here; clients refuse servers that say less.
constexpr const char* kOllamaVersion = "0.12.0";

std::string size_name(int64_t n_params) {
  return n_params >= 1'000'000'000 ? fmt::format("{:.1f}B", static_cast<double>(n_params) / 1e9)
                                   : fmt::format("{:.2f}M", static_cast<double>(n_params) / 1e6);
}

Json details(const ModelInfo& info) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", info.architecture},
          {"families", {info.architecture}},
          {"parameter_size", size_name(info.n_params)},
          {"quantization_level", info.quantization}};
}

Json entry_of(const ApiContext& context) {
  const ModelInfo& info = context.model().info();
  return {{"name", context.options.model_name},
          {"model", context.options.model_name},
          {"modified_at", time_text(context.options.created)},
          {"size", info.weight_bytes},
          {"digest", fmt::format("{:064x}", context.model().fingerprint())},
          {"details", details(info)}};
}

int64_t context_size(const ApiContext& context) {
  const int64_t n_ctx = context.options.session.n_ctx;
  return n_ctx > 0 ? n_ctx : context.model().info().n_ctx_train;
}

}  // namespace

Json ollama_version_json() { return {{"version", kOllamaVersion}, {"snapkv", version()}}; }

Json ollama_tags_json(const ApiContext& context) {
  return {{"models", Json::array({entry_of(context)})}};
}

Json ollama_ps_json(const ApiContext& context) {
  Json model = entry_of(context);
  model.erase("modified_at");
  model["expires_at"] = "2999-12-31T00:00:00Z";  // it is loaded as long as the server runs
  model["size_vram"] = 0;
  model["context_length"] = context_size(context);
  return {{"models", Json::array({model})}};
}

Json ollama_show_json(const Json& json, const ApiContext& context) {
  const Fields body(json);
  if (!body.has("model")) (void)body.needed_text("name");  // the older name of the field
  const ModelInfo& info = context.model().info();
  const auto& tmpl = context.options.chat_template;
  Json capabilities = {"completion"};
  if (context.options.tool_template) capabilities.push_back("tools");
  if (fill_in_tokens(context.model().tokenizer()).complete()) capabilities.push_back("insert");
  if (tmpl && tmpl->source().find("enable_thinking") != std::string::npos) {
    capabilities.push_back("thinking");
  }
  const std::string& arch = info.architecture;
  return {{"license", ""},
          {"modelfile", ""},
          {"parameters", fmt::format("num_ctx {}", context_size(context))},
          {"template", tmpl ? tmpl->source() : ""},
          {"details", details(info)},
          {"model_info",
           {{"general.architecture", arch},
            {"general.basename", context.options.model_name},
            {"general.parameter_count", info.n_params},
            {arch + ".context_length", context_size(context)},
            {arch + ".embedding_length", info.n_embd},
            {arch + ".block_count", info.n_layer},
            {arch + ".attention.head_count", info.n_head},
            {arch + ".attention.head_count_kv", info.n_head_kv}}},
          {"capabilities", capabilities},
          {"modified_at", time_text(context.options.created)}};
}

}  // namespace snapkv::server
