// SPDX-License-Identifier: MIT
// /v1/kv/prompts: reads the prompt of another endpoint's request and saves the session, so that
// another server can answer it (kv.read).
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/snapshot_names.h"
#include "server/read_prompt.h"

namespace snapkv::server {
namespace {

/// The ending of these files, so that no list of snapshots has them.
constexpr const char* kPromptEnding = ".prompt";

using ReadBody = Exchange (*)(const Json&, const ApiContext&);

ReadBody reader_of(const std::string& path) {
  static const std::map<std::string, ReadBody> kReaders = {
      {"/v1/chat/completions", read_chat_completion}, {"/v1/completions", read_completion},
      {"/v1/responses", read_response},               {"/v1/messages", read_messages},
      {"/api/chat", read_ollama_chat},                {"/api/generate", read_ollama_generate}};
  const auto found = kReaders.find(path);
  if (found != kReaders.end()) return found->second;
  throw bad_request("path", fmt::format("'path': requests of '{}' have no prompt to read",
                                        path.substr(0, 60)));
}

}  // namespace

SnapshotRequest read_prompt_request(const std::string& path, const std::string& name,
                                    const Json& body, const ApiContext& context) {
  Exchange exchange = reader_of(path)(body, context);
  SnapshotRequest prompt;
  prompt.name = name;
  prompt.path = slot_path(context.options.snapshot_dir, name + kPromptEnding, "name");
  Request& request = prompt.request = std::move(exchange.request);
  const auto refuse = [](const char* what) {
    throw ApiError(400, fmt::format("a prompt that another server answers can't have {}", what),
                   "not_supported");
  };
  if (!exchange.others.empty()) refuse("others beside it in one request");
  if (request.long_reading != nullptr) refuse("a document that is longer than the context");
  if (request.document != nullptr) refuse("a snapshot before it: any server continues that");
  if (request.scores_prompt) refuse("the probabilities of its own tokens (echo with logprobs)");
  if (!request.citable.empty()) refuse("sources or citations");
  request.n = 1;
  request.max_tokens = 0;
  request.grammar = request.call_grammar = nullptr;
  request.make_watch = nullptr;
  request.is_for_others = true;
  request.session.draft = Draft::off;
  prompt.notes = prompt_notes(request.prompt.tokens);
  return prompt;
}

}  // namespace snapkv::server
