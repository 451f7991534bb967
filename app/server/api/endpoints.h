// SPDX-License-Identifier: MIT
// The endpoints that only look things up or compute without the engine's thread, in llama-server's
// and OpenAI's shapes, and those of slots and snapshots. Each throws ApiError and Error.
#pragma once

#include "server/api/context.h"
#include "server/api/exchange.h"

namespace snapkv::server {

// models.cpp
Json models_json(const ApiContext& context);
/// Throws ApiError (404) where `id` is another model.
Json model_json(const ApiContext& context, const std::string& id);
Json props_json(const ApiContext& context);

// tokens.cpp
/// JSON as text: an object for each token would take hundreds of times the body's bytes.
std::string tokenize(const Json& body, const ApiContext& context);
Json detokenize(const Json& body, const ApiContext& context);
Json apply_template(const Json& body, const ApiContext& context);

// fit.cpp
/// Whether a body of /v1/chat/completions or /v1/completions fits, and how long its prompt may be.
Json fit_json(const Json& body, const ApiContext& context);

// slots.cpp
Json slots_json(const ApiContext& context);
/// `action`: save, restore or erase.
Json change_slot(int64_t id, const std::string& action, const Json& body,
                 const ApiContext& context);

// snapshots.cpp
Json snapshots_json(const ApiContext& context);
Json erase_snapshot(const std::string& name, const ApiContext& context);
/// A text or a conversation to be read and stored.
struct SnapshotRequest {
  Request request;
  std::string name, path, notes;
};
SnapshotRequest read_snapshot_request(const Json& body, const ApiContext& context);

}  // namespace snapkv::server
