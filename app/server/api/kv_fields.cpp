// SPDX-License-Identifier: MIT
#include "server/api/kv_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "chat/document.h"
#include "server/api/api_error.h"
#include "server/api/option_json.h"
#include "server/api/snapshot_names.h"
#include "snapkv/options.h"
#include "snapkv/prefill.h"

namespace snapkv::server {
namespace {

std::shared_ptr<const Document> open_snapshot(const std::string& path, const ApiContext& context) {
  try {
    return context.engine.documents().open(path);
  } catch (const Error& e) {
    throw snapshot_error(e, context.options.snapshot_dir);
  }
}

void read_params(const Fields& kv, PolicyConfig& config) {
  const PolicyInfo& info = policy_info(config.name);
  static const std::vector<std::string> kOthers = {"policy", "memory", "snapshot", "reuse", "read"};
  for (const auto& [name, value] : kv.json().items()) {
    if (value.is_null() || std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end())
      continue;
    const PolicyParam* param = info.find(name);
    if (param == nullptr) {
      std::vector<std::string> names;
      for (const PolicyParam& each : info.params) names.push_back(each.name);
      kv.refuse(name.c_str(),
                fmt::format("policy {} has no such parameter; it has: {}", config.name,
                            names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "))));
    }
    if (name == "budget" && value == kAutoBudget) {
      if (info.find("least_attention") == nullptr) {
        kv.refuse("budget", fmt::format("\"auto\" is for policy {}; {} needs a number of rows",
                                        kDefaultPolicy, config.name));
      }
      set_param(config, name, std::string(kAutoBudget));
      continue;
    }
    set_param(config, name, *kv.option(*param));
  }
}

/// The member of `kv` that sets an option.
std::string field_name(std::string_view option) {
  return std::string(option.starts_with("kv_") ? option.substr(3) : option);
}

KvReportLevel read_level(const Fields& body) {
  const std::string level = body.text("kv_report").value_or("summary");
  if (level == "none") return KvReportLevel::none;
  if (level == "summary") return KvReportLevel::summary;
  if (level == "positions") return KvReportLevel::positions;
  if (level == "sources") return KvReportLevel::sources;
  if (level == "all") return KvReportLevel::all;
  body.refuse("kv_report", "none, summary, positions, sources or all", Json(level));
}

}  // namespace

void read_kv(const Fields& body, const ApiContext& context, Request& request) {
  request.kv_report = read_level(body);
  const Json* object = body.object("kv");
  if (object == nullptr) return;
  const Fields kv(*object, "kv.");
  SessionOptions& session = request.session;
  if (const auto policy = kv.text("policy"); policy && *policy != session.kv.name) {
    try {
      session.kv = context.options.policy(*policy);
      if (!policy_info(*policy).has_budget) session.kv_memory = 0;
    } catch (const Error& e) {
      kv.refuse("policy", e.what());
    }
  }
  read_params(kv, session.kv);
  if (kv.has("budget") || kv.has("ratio")) session.kv_memory = 0;
  if (kv.has("budget") && !kv.has("ratio")) session.kv.ratio = 0;
  if (kv.has("memory")) {
    OptionInfo memory = *session_option_table().find("kv_memory");
    memory.name = "memory";
    session.kv_memory = static_cast<size_t>(std::get<int64_t>(*kv.option(memory)));
    session.kv.ratio = 0;
  }
  if (const auto reuses = kv.boolean("reuse")) request.reuses = *reuses;
  if (kv.has("snapshot") && kv.find("snapshot")->is_array()) {
    kv.refuse("snapshot", "one document can be continued: each begins at the position 0");
  }
  if (const auto snapshot = kv.text("snapshot")) {
    request.document = context.engine.documents().lent_document(*snapshot);
    request.snapshot = snapshot_name(*snapshot);
  }
  if (const auto snapshot = kv.text("snapshot"); snapshot && !request.document) {
    const std::string path = snapshot_path(context.options.snapshot_dir, *snapshot, "kv.snapshot");
    if (std::error_code error; !std::filesystem::exists(path, error)) {
      throw ApiError(404, fmt::format("there is no snapshot '{}'", *snapshot), "not_found",
                     "kv.snapshot");
    }
    request.document = open_snapshot(path, context);
  }
  if (const auto read = kv.text("read")) {
    request.read = context.engine.documents().lent_prompt(*read);
    if (!request.read) {
      throw ApiError(404, fmt::format("no prompt '{}' was lent to this server", *read), "not_found",
                     "kv.read");
    }
    if (request.document) kv.refuse("read", "a prompt that continues no snapshot", Json(*read));
  }
  try {
    (void)resolve_options(session, context.model().info());
  } catch (const Error& e) {
    throw bad_request("kv", fmt::format("'kv': {}", e.message(field_name)));
  }
}

void cite_snapshot(const Model& model, Request& request) {
  const Document& document = *request.document;
  if (document.rows == nullptr) {
    throw bad_request("kv_report",
                      fmt::format("'kv_report': the snapshot '{}' holds what was chosen of its "
                                  "document, and not its text; one that was made with 'keep_full' "
                                  "has sources",
                                  request.snapshot));
  }
  request.citable.push_back(
      {kSnapshotText, chat::document_text(model, document.file.form, document.rows->tokens())});
}

Json kv_json(const KvReport& report) {
  Json json = {{"policy", report.policy},
               {"tokens_before", report.tokens_before},
               {"tokens_kept", report.tokens_kept},
               {"bytes_before", report.bytes_before},
               {"bytes_after", report.bytes_after},
               {"compress_ms", report.compress_seconds * 1e3},
               {"reused_tokens", report.reused_tokens}};
  if (!report.positions.empty()) json["positions"] = report.positions;
  return json;
}

Json policy_values(const PolicyConfig& config) {
  Json json = {{"policy", config.name}};
  for (const PolicySetting& setting : policy_settings(config)) {
    json[setting.param->name] = value_json(setting.value);
  }
  return json;
}

Json policies_json() {
  Json all = Json::array();
  for (const PolicyInfo& info : all_policies()) {
    Json params = Json::array();
    for (const PolicyParam& param : info.params) params.push_back(option_json(param));
    all.push_back({{"name", info.name},
                   {"score", info.score},
                   {"paper", info.paper},
                   {"has_budget", info.has_budget},
                   {"params", params}});
  }
  return all;
}

}  // namespace snapkv::server
