// SPDX-License-Identifier: MIT
// /v1/kv/snapshots: documents that are read and compressed once, and continued by requests that
// name them (kv.snapshot).
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "server/api/generation_fields.h"
#include "server/api/snapshot_names.h"

namespace snapkv::server {
namespace {

namespace fs = std::filesystem;

int64_t unix_seconds(fs::file_time_type time) {
  const auto age = fs::file_time_type::clock::now() - time;
  const auto system = std::chrono::system_clock::now() -
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(age);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

void need_folder(const ApiContext& context) {
  (void)snapshot_path(context.options.snapshot_dir, "any", "name");
}

}  // namespace

Json snapshots_json(const ApiContext& context) {
  need_folder(context);
  std::vector<Json> all;
  std::error_code error;
  for (fs::directory_iterator at(context.options.snapshot_dir, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;  // a file that goes meanwhile is left out
    const std::string name = at->path().filename().string();
    if (name.front() == '.' || !name.ends_with(kSnapshotEnding) || !at->is_regular_file(ignored)) {
      continue;
    }
    const uintmax_t bytes = at->file_size(ignored);
    if (ignored) continue;
    all.push_back({{"name", at->path().stem().string()},
                   {"bytes", bytes},
                   {"created", unix_seconds(at->last_write_time(ignored))}});
  }
  if (error) {
    throw ApiError(500, fmt::format("the folder of snapshots can't be read: {}", error.message()));
  }
  std::sort(all.begin(), all.end(),
            [](const Json& a, const Json& b) { return a["name"] < b["name"]; });
  return {{"object", "list"}, {"data", all}};
}

Json erase_snapshot(const std::string& name, const ApiContext& context) {
  const std::string path = snapshot_path(context.options.snapshot_dir, name, "name");
  std::error_code error;
  if (!fs::remove(path, error)) {
    if (error) throw ApiError(500, fmt::format("'{}' can't be removed: {}", name, error.message()));
    throw ApiError(404, fmt::format("there is no snapshot '{}'", name), "not_found", "name");
  }
  return {{"name", name}, {"deleted", true}};
}

SnapshotRequest read_snapshot_request(const Json& json, const ApiContext& context) {
  const Fields body(json);
  SnapshotRequest snapshot;
  snapshot.name = body.needed_text("name");
  snapshot.path = snapshot_path(context.options.snapshot_dir, snapshot.name, "name");
  snapshot.request = read_request(body, context, "snapshot-");
  Prompt& prompt = snapshot.request.prompt;
  if (body.has("text") == body.has("messages")) {
    body.refuse("text", "either 'text' or 'messages' must be there");
  }
  if (body.has("text")) {
    prompt.chat.text = *body.text("text");
    prompt.tokens = context.model().tokenize(prompt.chat.text);
  } else {
    prompt.chat = read_chat_prompt(json, context);
    prompt.tokens = context.model().tokenize(prompt.chat);
  }
  if (prompt.tokens.empty()) body.refuse("text", "it is empty");
  snapshot.notes = body.text("notes").value_or("");
  return snapshot;
}

}  // namespace snapkv::server
