// SPDX-License-Identifier: MIT
#include "server/api/unsupported_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace snapkv::server {
namespace {

struct Unsupported {
  const char* name;
  Json neutral;  ///< the value that has no effect
  const char* reason;
};

constexpr const char* kNoSampler = "this server has no such sampler";
constexpr const char* kNoThinkingBudget = "how long a model thinks can't be limited";

/// llama-server's samplers and limits that are off at 0 and below.
const std::vector<std::pair<const char*, const char*>>& off_at_zero() {
  static const std::vector<std::pair<const char*, const char*>> kAll = {
      {"dynatemp_range", kNoSampler},
      {"dry_multiplier", kNoSampler},
      {"xtc_probability", kNoSampler},
      {"mirostat", kNoSampler},
      {"top_n_sigma", kNoSampler},
      {"adaptive_target", kNoSampler},
      {"min_keep", "no filter has a least number of tokens here"},
      {"n_probs", "probabilities are what 'logprobs' and 'top_logprobs' ask for"},
      {"n_indent", "lines can't be given an indentation"},
      {"t_max_predict_ms", "the time of an answer can't be limited; the server has --timeout"}};
  return kAll;
}

const std::vector<Unsupported>& of_all() {
  static const std::vector<Unsupported> kAll = {
      {"typ_p", 1, kNoSampler},
      {"lora", Json::array(), "the model has no adapters"},
      {"n_cmpl", 1, "the number of answers is 'n'"},
      {"image_data", Json::array(), "this model reads text only"},
      {"return_tokens", false, "answers are text"}};
  return kAll;
}

const std::vector<Unsupported>& of_one(Api api) {
  static const std::vector<Unsupported> kNone;
  static const std::vector<Unsupported> kChat = {
      {"parse_tool_calls", true, "calls are always read"},
      {"functions", Json::array(), "functions are given as 'tools'"},
      {"function_call", "auto", "'tool_choice' says which function is called"},
      {"thinking_budget_tokens", -1, kNoThinkingBudget},
      {"reasoning_budget_tokens", -1, kNoThinkingBudget},
      {"reasoning_budget", -1, kNoThinkingBudget}};
  static const std::vector<Unsupported> kResponses = {
      {"context_management", Json::array(), "the input is read as it is"}};
  static const std::vector<Unsupported> kMessages = {
      {"container", nullptr, "this server runs no code"},
      {"mcp_servers", Json::array(), "this server calls no others"}};
  switch (api) {
    case Api::chat:
      return kChat;
    case Api::responses:
      return kResponses;
    case Api::messages:
      return kMessages;
    default:
      return kNone;
  }
}

void refuse_others(const Fields& fields, const std::vector<Unsupported>& all) {
  for (const Unsupported& each : all) {
    const Json* value = fields.find(each.name);
    if (value == nullptr || *value == each.neutral) continue;
    const std::string neutral = each.neutral.is_null() ? "left out"
                                : each.neutral.is_array()
                                    ? "empty or left out"
                                    : fmt::format("{} or left out", to_text(each.neutral));
    fields.refuse(each.name, fmt::format("{}; it must be {}, not {}", each.reason, neutral,
                                         short_text(*value)));
  }
}

/// Samplers run here in llama-server's usual order; any other order is refused.
void refuse_other_samplers(const Fields& body) {
  static const Json kOrder = {"penalties", "dry",   "top_n_sigma", "top_k",      "typ_p",
                              "top_p",     "min_p", "xtc",         "temperature"};
  const Json* samplers = body.find("samplers");
  if (samplers == nullptr || samplers->empty() || *samplers == kOrder || *samplers == "" ||
      *samplers == "edskypmxt") {
    return;
  }
  body.refuse("samplers", "samplers have llama-server's usual order, which can't be changed");
}

/// Anthropic's context_management: what the model thought before is never shown to it again, so
/// that edits which take it out change nothing. Others only make long conversations shorter.
void warn_of_other_edits(const Fields& body, std::vector<std::string>& warnings) {
  const Fields management = body.inside("context_management");
  const Json* edits = management.array("edits");
  for (size_t i = 0; edits != nullptr && i < edits->size(); ++i) {
    const Fields edit((*edits)[i], fmt::format("{}[{}].", management.name("edits"), i));
    const std::string type = edit.needed_text("type");
    if (type.starts_with("clear_thinking")) continue;
    warnings.push_back(fmt::format("context_management: {}: messages are read as they are",
                                   short_text(Json(type))));
  }
}

}  // namespace

void refuse_unsupported(const Fields& body, Api api, std::vector<std::string>& warnings) {
  for (const auto& [name, reason] : off_at_zero()) {
    const Json* value = body.find(name);
    if (value == nullptr || (value->is_number() && value->get<double>() <= 0)) continue;
    body.refuse(name,
                fmt::format("{}; it must be 0 or left out, not {}", reason, short_text(*value)));
  }
  refuse_others(body, of_all());
  refuse_others(body, of_one(api));
  refuse_other_samplers(body);
  if (api == Api::messages) warn_of_other_edits(body, warnings);
}

}  // namespace snapkv::server
