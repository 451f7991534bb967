// SPDX-License-Identifier: MIT
#include "server/api/generation_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_number.h"
#include "server/api/api_error.h"
#include "server/api/kv_fields.h"
#include "snapkv/options.h"
#include "snapkv/text_stream.h"

namespace snapkv::server {
namespace {

constexpr double kMostBias = SamplerConfig::kMostBias;

std::vector<LogitBias> read_logit_bias(const Fields& body, const Model& model) {
  std::vector<LogitBias> all;
  const Json* biases = body.object("logit_bias");
  if (biases == nullptr) return all;
  const int64_t n_vocab = model.tokenizer().n_vocab();
  for (const auto& [key, value] : biases->items()) {
    const std::optional<int64_t> id = parse_whole(key);
    if (!id || *id < 0 || *id >= n_vocab) {
      body.refuse("logit_bias", fmt::format("'{}' is not a token id; they are 0 to {}",
                                            short_text(key), n_vocab - 1));
    }
    if (!value.is_number() || std::abs(value.get<double>()) > kMostBias) {
      body.refuse("logit_bias", fmt::format("the bias of {} must be a number from {} to {}, not {}",
                                            key, -kMostBias, kMostBias, short_text(value)));
    }
    all.push_back({static_cast<int32_t>(*id), value.get<double>()});
  }
  return all;
}

void read_sampler(const Fields& body, const ApiContext& context, SamplerConfig& sampler) {
  const OptionTable<SamplerConfig>& table = sampler_option_table();
  for (const OptionInfo& info : table.infos()) {
    if (const auto value = body.option(info)) table.set(sampler, info.name, *value);
  }
  sampler.logit_bias = read_logit_bias(body, context.model());
}

void read_draft(const Fields& body, SessionOptions& session) {
  for (const char* name : {"draft", "draft_max", "draft_min"}) {
    const OptionInfo& info = *session_option_table().find(name);
    if (const auto value = body.option(info)) session_option_table().set(session, name, *value);
  }
  if (session.draft_min > session.draft_max) {
    body.refuse("draft_min", fmt::format("at most draft_max, which is {}", session.draft_max),
                Json(session.draft_min));
  }
}

}  // namespace

void note_unread(const Fields& body, Request& request) {
  constexpr size_t kMostNamed = 20;
  std::string names;
  size_t n = 0;
  for (const std::string& name : body.unread()) {
    if (name == "model" || ++n > kMostNamed) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (n > kMostNamed) names += ", ...";
  if (!names.empty()) request.notes.push_back("ignored fields: " + names);
}

std::string random_id(size_t n) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string text(n, 0);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(text.data()), static_cast<int>(n)) != 1) {
    fail(ErrorCode::kRuntime, "the system has no random numbers");
  }
  for (char& c : text) c = kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return text;
}

std::vector<std::string> read_stops(const Fields& body, const char* name) {
  const Json* value = body.find(name);
  if (value == nullptr) return {};
  std::vector<std::string> stops;
  const bool is_list = value->is_array();
  if (!is_list && !value->is_string()) body.refuse(name, "a string or an array of strings", *value);
  if (is_list && value->size() > kMostStops) {
    body.refuse(name,
                fmt::format("at most {} strings are possible, not {}", kMostStops, value->size()));
  }
  for (const Json& stop : is_list ? *value : Json::array({*value})) {
    if (!stop.is_string()) body.refuse(name, "an array of strings", stop);
    if (!stop.get_ref<const std::string&>().empty()) stops.push_back(stop.get<std::string>());
  }
  return stops;
}

int64_t read_max_tokens(const Fields& body, std::initializer_list<const char*> names,
                        int64_t least) {
  for (const char* name : names) {
    const auto n = body.whole(name, -1, kMostTokens);
    if (!n) continue;
    if (*n >= 0 && *n < least) {
      body.refuse(name,
                  fmt::format("an answer has at least {} token; -1: no limit; not {}", least, *n));
    }
    return *n;
  }
  return -1;
}

void read_effort(const Fields& owner, const char* name, Json& template_variables) {
  const auto effort = owner.text(name);
  if (!effort) return;
  static const std::vector<std::string> kEfforts = {"none", "minimal", "low", "medium",
                                                    "high", "xhigh",   "max"};
  if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end()) {
    owner.refuse(name, fmt::format("{}", fmt::join(kEfforts, ", ")), Json(*effort));
  }
  const auto set = [&](const char* variable, const Json& value) {
    if (!template_variables.contains(variable)) template_variables[variable] = value;
  };
  set("reasoning_effort", *effort);
  if (*effort == "none") set("enable_thinking", false);
}

bool read_splits_reasoning(const Fields& body) {
  const std::string format = body.text("reasoning_format").value_or("auto");
  if (format == "none") return false;
  if (format == "auto" || format == "deepseek") return true;
  body.refuse("reasoning_format", "auto, deepseek or none", Json(format));
}

LongMode read_long_mode(const Fields& body, LongMode default_mode) {
  const auto name = body.text("long");
  if (!name) return default_mode;
  const auto mode = long_documents::long_mode(*name);
  if (!mode) body.refuse("long", long_documents::kLongModes, Json(*name));
  return *mode;
}

Request read_request(const Fields& body, const ApiContext& context, const char* id_prefix) {
  Request request;
  request.id = id_prefix + random_id();
  request.session = context.options.session;
  request.sampler = context.options.sampler;
  request.timeout = context.options.timeout;
  read_sampler(body, context, request.sampler);
  const int most_answers = context.engine.options().n_parallel;
  if (const auto n = body.whole("n", 1, std::numeric_limits<int32_t>::max())) {
    if (*n > most_answers) {
      body.refuse("n", fmt::format("this server writes at most {} answers at a time, not {}",
                                   most_answers, *n));
    }
    request.n = static_cast<int>(*n);
  }
  request.ignore_eos = body.boolean("ignore_eos").value_or(false);
  request.reports_progress = body.boolean("return_progress").value_or(false);
  request.reuses = body.boolean("cache_prompt").value_or(true);  // llama-server's; kv.reuse wins
  request.long_mode = read_long_mode(body, context.options.long_mode);
  read_draft(body, request.session);
  read_kv(body, context, request);
  return request;
}

}  // namespace snapkv::server
