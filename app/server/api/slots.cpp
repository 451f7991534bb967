// SPDX-License-Identifier: MIT
// /slots: sessions that are answering or kept, in llama-server's format where it has one.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/regular_file.h"
#include "base/timer.h"
#include "server/api/endpoints.h"
#include "server/api/fields.h"
#include "server/api/snapshot_names.h"
#include "server/file_error.h"

namespace snapkv::server {
namespace {

const char* state_name(SlotInfo::State state) {
  switch (state) {
    case SlotInfo::State::waiting:
      return "waiting";
    case SlotInfo::State::reading:
      return "reading";
    case SlotInfo::State::answering:
      return "answering";
    case SlotInfo::State::writing:
      return "writing";
    default:
      return "kept";
  }
}

int64_t tokens_of(const ApiContext& context, int64_t id) {
  for (const SlotInfo& slot : context.engine.slots()) {
    if (slot.id == id) return slot.n_tokens;
  }
  throw ApiError(404, fmt::format("there is no slot {}", id), "not_found");
}

uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

Json changed_slot(int64_t id, const std::string& action, const Json& json,
                  const ApiContext& context) {
  const Fields body(json);
  const Timer timer;
  if (action == "erase") {
    const int64_t n_tokens = tokens_of(context, id);
    context.engine.erase_slot(id);
    return {{"id_slot", id}, {"n_erased", n_tokens}};
  }
  if (action != "save" && action != "restore") {
    throw bad_request("action",
                      "'action' must be save, restore or erase, not " + short_text(Json(action)));
  }
  const std::string filename = body.needed_text("filename");
  const std::string path = slot_path(context.options.snapshot_dir, filename, "filename");
  if (action == "save") {
    const int64_t n_tokens = tokens_of(context, id);
    context.engine.save_slot(id, path);
    return {{"id_slot", id},
            {"filename", filename},
            {"n_saved", n_tokens},
            {"n_written", size_of(path)},
            {"timings", {{"save_ms", timer.seconds() * 1e3}}}};
  }
  require_regular_file(path);
  // the session gets a new id, which need not be the one in the request
  const int64_t restored = context.engine.restore_slot(path);
  return {{"id_slot", restored},
          {"filename", filename},
          {"n_restored", tokens_of(context, restored)},
          {"n_read", size_of(path)},
          {"timings", {{"restore_ms", timer.seconds() * 1e3}}}};
}

}  // namespace

Json slots_json(const ApiContext& context) {
  const int64_t n_ctx = context.options.session.n_ctx > 0 ? context.options.session.n_ctx
                                                          : context.model().info().n_ctx_train;
  Json all = Json::array();
  for (const SlotInfo& slot : context.engine.slots()) {
    all.push_back({{"id", slot.id},
                   {"n_ctx", n_ctx},
                   {"is_processing", slot.state != SlotInfo::State::kept},
                   {"state", state_name(slot.state)},
                   {"request", slot.request},
                   {"policy", slot.policy},
                   {"n_tokens", slot.n_tokens},
                   {"kv_bytes", slot.bytes},
                   {"idle_seconds", slot.idle_seconds}});
  }
  return all;
}

Json change_slot(int64_t id, const std::string& action, const Json& body,
                 const ApiContext& context) {
  try {
    return changed_slot(id, action, body, context);
  } catch (const Error& e) {
    throw snapshot_error(e, context.options.snapshot_dir);
  }
}

}  // namespace snapkv::server
