// SPDX-License-Identifier: MIT
// Endpoints that only look things up or compute without the engine's thread, in llama-server's and
// OpenAI's formats, and those for slots and snapshots. Each throws ApiError and Error.
#pragma once

#include <optional>
#include <string>

#include "server/api/context.h"
#include "server/api/exchange.h"

namespace snapkv::server {

// models.cpp
Json models_json(const ApiContext& context);
/// Throws ApiError (404) if `id` is another model.
Json model_json(const ApiContext& context, const std::string& id);
Json props_json(const ApiContext& context);

// ollama_models.cpp
Json ollama_version_json();
Json ollama_tags_json(const ApiContext& context);
Json ollama_ps_json(const ApiContext& context);
Json ollama_show_json(const Json& body, const ApiContext& context);

// ollama.cpp
/// The answer to a request without a prompt or messages, which loads or unloads a model; nothing
/// for others.
std::optional<Json> ollama_load_answer(const Json& body, const ApiContext& context, bool chats);

// tokens.cpp
/// JSON as text: an object for each token would take hundreds of times as many bytes as the body.
std::string tokenize(const Json& body, const ApiContext& context);
Json detokenize(const Json& body, const ApiContext& context);
/// Texts of the special tokens, and the chat template.
Json tokenizer_info_json(const ApiContext& context);
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
/// A text or a conversation that is to be read and stored.
struct SnapshotRequest {
  Request request;
  std::string name, path, notes;
};
SnapshotRequest read_snapshot_request(const Json& body, const ApiContext& context);

// prompts.cpp
/// The prompt of a body of `path`, to be read and saved for another server.
SnapshotRequest read_prompt_request(const std::string& path, const std::string& name,
                                    const Json& body, const ApiContext& context);

}  // namespace snapkv::server
