// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "cli/common/units.h"
#include "cli/info/report.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Appends a field whose key is new. Json's own operator would search all existing fields, and a
/// file may have hundreds of thousands of keys.
void append(Json& object, const std::string& key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
}

Json layers_json(const ModelInfo& m) {
  Json layers = Json::array();
  for (const LayerInfo& layer : m.layers) {
    Json json = {{"attention", name(layer.attention)},
                 {"compressed", layer.compressed},
                 {"rotated", layer.rotated}};
    if (layer.window > 0) json["window"] = layer.window;
    if (layer.rows_of >= 0) json["rows_of"] = layer.rows_of;
    layers.push_back(std::move(json));
  }
  return layers;
}

Json memory_json(const InfoPlans& p) {
  Json full, kept;
  for (const InfoPlanRow& row : plan_rows(p)) {
    full[row.key] = row.full;
    kept[row.key] = row.kept;
  }
  return {{"n_tokens", p.n_tokens},
          {"kv_type", name(p.options.kv_type)},
          {"compute", name(p.compute)},
          {"full", full},
          {"policy", kept},
          {"policy_description", describe_policy(p.options.kv)},
          {"budget", p.kept.budget},
          {"kv_memory", p.options.kv_memory},
          {"kv_decode_limit", p.options.kv_decode_limit},
          {"decode_reserve", p.options.decode_reserve},
          {"free_memory", p.free_memory},
          {"longest_prompt", {{"full", p.longest_full}, {"policy", p.longest_kept}}}};
}

Json types_json(const std::vector<TypeShare>& types) {
  Json json = Json::array();
  for (const TypeShare& share : types) {
    json.push_back({{"type", share.type},
                    {"n_tensors", share.n_tensors},
                    {"n_params", share.n_params},
                    {"bytes", share.bytes}});
  }
  return json;
}

}  // namespace

std::string info_json(const InfoReport& r) {
  const ModelDescription& d = r.model;
  const ModelInfo& m = d.info;
  Json json = {{"runs", d.problems.empty()},
               {"problems", d.problems},
               {"path", m.path},
               {"name", m.name},
               {"architecture", m.architecture},
               {"family", d.family},
               {"file_type", m.file_type},
               {"tokenizer", m.tokenizer},
               {"has_chat_template", !d.chat_template.empty()},
               {"n_params", m.n_params},
               {"weight_bytes", m.weight_bytes},
               {"types", types_json(d.types)},
               {"n_layer", m.n_layer},
               {"n_embd", m.n_embd},
               {"n_ff", m.n_ff},
               {"n_expert", m.n_expert},
               {"n_expert_used", m.n_expert_used},
               {"n_active_params", m.n_active_params},
               {"n_vocab", m.n_vocab},
               {"n_ctx_train", m.n_ctx_train},
               {"yarn_factor", m.yarn_factor},
               {"yarn_orig_ctx", m.yarn_orig_ctx},
               {"n_head", m.n_head},
               {"n_head_kv", m.n_head_kv},
               {"head_dim", m.head_dim},
               {"layers", layers_json(m)}};
  if (r.plans) {
    json["kv_bytes_per_token"] = kv_bytes_per_token(m, r.plans->options.kv_type);
    json["memory"] = memory_json(*r.plans);
  }
  if (r.metadata) {
    Json metadata = Json::object();
    for (const MetadataEntry& e : d.metadata) {
      append(metadata, e.key, {{"type", e.type}, {"value", e.value}});
    }
    json["metadata"] = std::move(metadata);
  }
  if (r.tensors) {
    Json tensors = Json::array();
    for (const TensorEntry& t : d.tensors) {
      tensors.push_back(
          {{"name", t.name}, {"type", t.type}, {"shape", t.shape}, {"bytes", t.bytes}});
    }
    json["tensors"] = std::move(tensors);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace snapkv::cli
