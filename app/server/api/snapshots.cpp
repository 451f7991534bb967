// SPDX-License-Identifier: MIT
// /v1/kv/snapshots: documents that are read and compressed once; requests continue them by name
// (kv.snapshot).
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "chat/document.h"
#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "server/api/generation_fields.h"
#include "server/api/kv_fields.h"
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

bool says_what_is_kept(const Fields& body) { return body.object("kv") != nullptr; }

bool names_policy(const Fields& body) {
  const Json* kv = body.object("kv");
  return kv != nullptr && Fields(*kv, "kv.").has("policy");
}

/// What a snapshot was made of. Reads no rows, and leaves open what requests use.
chat::DocumentFile read_snapshot_file(const ApiContext& context, const std::string& path) {
  if (const auto open = context.engine.documents().find(path)) return open->file;
  return chat::open_document(path, nullptr).file;
}

/// What a snapshot holds; with `problem` where this server can't continue it.
Json content_json(const ApiContext& context, const std::string& path) {
  try {
    const chat::DocumentFile file = read_snapshot_file(context, path);
    Json json = {{"model", file.model}, {"tokens", file.n_tokens}, {"keep_full", file.keeps_all}};
    if (!file.keeps_all) json["kv"] = policy_values(file.options.kv);
    if (file.fingerprint != context.model().fingerprint()) {
      json["problem"] = fmt::format("made with another model, {}",
                                    file.model.empty() ? "which has no name" : file.model);
    }
    return json;
  } catch (const Error& e) {
    return {{"problem", snapshot_error(e, context.options.snapshot_dir).what()}};
  }
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
    std::error_code ignored;  // a file that disappears meanwhile is left out
    const std::string name = at->path().filename().string();
    if (name.front() == '.' || !name.ends_with(kSnapshotEnding) || !at->is_regular_file(ignored)) {
      continue;
    }
    const uintmax_t bytes = at->file_size(ignored);
    if (ignored) continue;
    Json snapshot = {{"name", at->path().stem().string()},
                     {"bytes", bytes},
                     {"created", unix_seconds(at->last_write_time(ignored))}};
    snapshot.update(content_json(context, at->path().string()));
    all.push_back(std::move(snapshot));
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
  context.engine.documents().forget(path);
  if (!fs::remove(path, error)) {
    if (error) throw ApiError(500, fmt::format("'{}' can't be removed: {}", name, error.message()));
    throw ApiError(404, fmt::format("there is no snapshot '{}'", name), "not_found", "name");
  }
  return {{"name", snapshot_name(name)}, {"deleted", true}};
}

SnapshotRequest read_snapshot_request(const Json& json, const ApiContext& context) {
  const Fields body(json);
  SnapshotRequest snapshot;
  snapshot.name = body.needed_text("name");
  snapshot.path = snapshot_path(context.options.snapshot_dir, snapshot.name, "name");
  snapshot.name = snapshot_name(snapshot.name);
  const std::string text = body.needed_text("text");
  if (body.text("long").value_or("refuse") != "refuse") {
    body.refuse("long", "a snapshot holds its whole document, for questions that are not known");
  }
  chat::DocumentForm form;
  if (const auto& tmpl = context.options.chat_template) {
    form.template_source = tmpl->source();
    form.template_name = tmpl->name();
    form.variables = context.options.template_variables;
    form.system = body.text("system").value_or(context.options.system);
  } else if (body.has("system")) {
    body.refuse("system", "the model has no chat template to write it with");
  }
  const RenderedChat part = chat::document_part(form, text);
  std::vector<int32_t> tokens = context.model().tokenize(part);
  if (text.empty() || tokens.empty()) body.refuse("text", "it is empty");
  const std::optional<bool> keep_full = body.boolean("keep_full");
  bool keeps_all = keep_full.value_or(false);
  if (!keep_full && !says_what_is_kept(body)) {
    keeps_all = chat::stores_every_row(context.model(), std::ssize(tokens), chat::kFullLimit);
  }
  Json with_policy = json;
  if (!keeps_all && !names_policy(body)) with_policy["kv"]["policy"] = chat::kUnaskedPolicy;
  snapshot.request = read_request(Fields(with_policy), context, "snapshot-");
  snapshot.request.prompt.chat = part;
  snapshot.request.prompt.tokens = std::move(tokens);
  snapshot.request.keeps_all = keeps_all;
  snapshot.notes =
      chat::document_notes(form, context.model().info().path, body.text("notes").value_or(""));
  return snapshot;
}

}  // namespace snapkv::server
