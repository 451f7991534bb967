// SPDX-License-Identifier: MIT
#include "server/api/completion_answers.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace snapkv::server {
namespace {

constexpr const char* kFingerprint = "snapkv";

}  // namespace

Json CompletionAnswers::head(const char* object) const {
  return {{"id", options().id},
          {"object", object},
          {"created", options().created},
          {"model", options().model},
          {"system_fingerprint", kFingerprint}};
}

Json CompletionAnswers::plain() const {
  Json all = Json::array();
  for (size_t i = 0; i < options().n; ++i) all.push_back(whole_choice(i));
  Json json = head(object_);
  json["choices"] = std::move(all);
  json["usage"] = usage_json(times());
  add_reports(json);
  return json;
}

Json CompletionAnswers::chunk(Json choice) const {
  Json json = head(chunk_object_);
  json["choices"] = Json::array({std::move(choice)});
  // clients that asked for usage expect the field in every chunk
  if (includes_usage_) json["usage"] = nullptr;
  return json;
}

void CompletionAnswers::send_chunk(Json choice) { send(event_text(chunk(std::move(choice)))); }

void CompletionAnswers::on_progress(const PromptProgress& progress) {
  Json json = chunk(empty_choice(0));
  json["prompt_progress"] = progress_json(progress);
  send(event_text(json));
}

void CompletionAnswers::on_end(size_t choice) {
  Json last = empty_choice(choice);
  last["finish_reason"] = finish_reason(choice);
  Json json = chunk(std::move(last));
  if (complete()) add_reports(json);
  send(event_text(json));
}

void CompletionAnswers::on_complete() {
  if (includes_usage_) {
    Json json = head(chunk_object_);
    json["choices"] = Json::array();
    json["usage"] = usage_json(times());
    send(event_text(json));
  }
  send("data: [DONE]\n\n");
}

bool read_includes_usage(const Fields& body, bool stream) {
  const Json* given = body.object("stream_options");
  if (given == nullptr) return false;
  if (!stream) body.refuse("stream_options", "absent, unless 'stream' is true", *given);
  return Fields(*given, "stream_options.").boolean("include_usage").value_or(false);
}

}  // namespace snapkv::server
