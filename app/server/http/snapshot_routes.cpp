// SPDX-License-Identifier: MIT
// Routes for slots and snapshots, which read and write files below --snapshot-dir.
#include <nlohmann/json.hpp>
#include <optional>

#include "base/parse_number.h"
#include "server/api/endpoints.h"
#include "server/api/kv_fields.h"
#include "server/file_error.h"
#include "server/http/body.h"
#include "server/service.h"

namespace snapkv::server {
namespace {

/// Reads the document and returns a description of the snapshot. If the client goes meanwhile,
/// nothing is stored.
Json make_snapshot(SnapshotRequest snapshot, const ApiContext& context) {
  const auto n_tokens = std::ssize(snapshot.request.prompt.tokens);
  const auto updates =
      context.engine.make_snapshot(std::move(snapshot.request), snapshot.path, snapshot.notes);
  Json json = {{"name", snapshot.name}, {"object", "kv.snapshot"}, {"tokens", n_tokens}};
  Connection* connection = Connection::current();
  std::optional<ApiError> given_up;  // the reason for giving up
  while (true) {
    const auto update = updates->next(std::chrono::milliseconds(100));
    if (!update) {
      if (connection == nullptr || given_up) continue;
      try {
        check_client(*connection);
      } catch (const ApiError& e) {
        given_up = e;
        updates->cancel();
      }
      continue;
    }
    if (const auto* read = std::get_if<PromptRead>(&*update)) {
      json["seconds"] = read->seconds;
      json["kv"] = kv_json(read->kv);
    } else if (const auto* failure = std::get_if<Failure>(&*update)) {
      if (given_up) throw ApiError(*given_up);
      throw api_error(Failure{failure->kind, without_paths(failure->message)});
    } else if (std::holds_alternative<AnswerEnd>(*update)) {
      return json;
    }
  }
}

}  // namespace

void Service::add_slot_routes() {
  get("/slots", [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, slots_json(context()));
  });
  post("/slots/([0-9]{1,18})", [](const ApiContext& all, Body& body,
                                  const httplib::Request& request, httplib::Response& response) {
    const int64_t id = parse_whole(request.matches[1].str()).value_or(-1);
    write_json(response, change_slot(id, request.get_param_value("action"), body.json, all));
  });
  const char* const snapshots = "/v1/kv/snapshots";
  get(snapshots, [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, snapshots_json(context()));
  });
  post(snapshots, [this](const ApiContext& all, Body& body, const httplib::Request&,
                         httplib::Response& response) {
    ++n_active_;
    try {
      SnapshotRequest snapshot = read_snapshot_request(body.json, all);
      body.json = Json();
      body.share.end_parsing();
      write_json(response, make_snapshot(std::move(snapshot), all));
    } catch (...) {
      --n_active_;
      throw;
    }
    --n_active_;
  });
  post("/v1/kv/prompts", [this](const ApiContext& all, Body& body, const httplib::Request& request,
                                httplib::Response& response) {
    ++n_active_;
    try {
      SnapshotRequest prompt = read_prompt_request(request.get_param_value("path"),
                                                   request.get_param_value("name"), body.json, all);
      body.json = Json();
      body.share.end_parsing();
      write_json(response, make_snapshot(std::move(prompt), all));
    } catch (...) {
      --n_active_;
      throw;
    }
    --n_active_;
  });
  const char* const snapshot = "/v1/kv/snapshots/([^/]{1,200})";
  routes_.push_back({"DELETE", std::regex(snapshot)});
  http_.Delete(snapshot,
               [this](const httplib::Request& request, httplib::Response& response,
                      const httplib::ContentReader&) {  // a body means nothing and is not read
                 try {
                   write_json(response, erase_snapshot(request.matches[1], context()));
                 } catch (...) {
                   write_error(request, response, current_error());
                 }
               });
}

}  // namespace snapkv::server
