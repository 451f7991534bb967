// SPDX-License-Identifier: MIT
// Slots, as llama-server calls them: what the scheduler's sessions are, and conversations that are
// kept in files.
#include <fmt/core.h>

#include "server/json.h"
#include "server/loop.h"

namespace snapkv::server {
namespace {

[[noreturn]] void fail_foreign(const std::string& path) {
  throw Error(
      ErrorCode::kBadModel,
      fmt::format("{}: not saved by a server: its notes do not have the conversation", path));
}

std::vector<int32_t> tokens_in(const Json& notes, const char* name, int64_t n_vocab,
                               const std::string& path) {
  const auto found = notes.find(name);
  if (found == notes.end() || !found->is_array()) fail_foreign(path);
  std::vector<int32_t> tokens;
  for (const Json& id : *found) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      throw Error(
          ErrorCode::kBadModel,
          fmt::format("{}: '{}' in its notes has what is no token of the model", path, name));
    }
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

}  // namespace

std::vector<SlotInfo> Scheduler::Loop::slots() const {
  std::vector<SlotInfo> all;
  const auto add = [&](const Jobs& jobs, SlotInfo::State state) {
    for (const auto& job : jobs) {
      SlotInfo info;
      info.id = job->id;
      info.state = state;
      info.request = job->request.id;
      info.policy = job->request.session.kv.name;
      info.n_tokens = std::ssize(job->request.prompt.tokens);
      info.bytes = job->running_bytes + job->reading_bytes;
      all.push_back(std::move(info));
    }
  };
  add(answering_, SlotInfo::State::answering);
  add(reading_, SlotInfo::State::reading);
  add(waiting_, SlotInfo::State::waiting);
  for (const KeptSession& kept : kept_.all()) {
    SlotInfo info;
    info.id = kept.id;
    info.state = SlotInfo::State::kept;
    info.request = kept.request;
    info.policy = kept.options.kv.name;
    info.n_tokens = kept.session->n_past();
    info.bytes = kept.bytes;
    info.idle_seconds = seconds_since(kept.last_used);
    all.push_back(std::move(info));
  }
  return all;
}

void Scheduler::Loop::save_slot(int64_t id, const std::string& path) {
  const KeptSession* kept = kept_.find(id);
  if (kept == nullptr) {
    throw Error(ErrorCode::kUsage,
                fmt::format("slot {} holds no conversation that could be saved", id));
  }
  const Json notes = {{"text", kept->text}, {"tokens", kept->tokens}, {"unread", kept->unread}};
  kept->session->save(path, notes.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int64_t Scheduler::Loop::restore_slot(const std::string& path) {
  const SavedSessionFile file(path);
  const SavedSession& saved = file.saved();
  if (saved.options.kv_type != options_.session.kv_type) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: its cache is of type {}, this server's are {}", path,
                            name(saved.options.kv_type), name(options_.session.kv_type)));
  }
  if (!make_room(file.bytes())) {
    throw Error(ErrorCode::kDoesNotFit, fmt::format("{}: {} MiB; {} MiB are free for caches", path,
                                                    file.bytes() >> 20, memory_.free() >> 20));
  }
  Request request;
  request.session = saved.options;
  complete_options(request);
  KeptSession kept;
  kept.session = std::make_unique<Session>(model_, request.session);
  const Json notes = parse_held(kept.session->load(file));
  if (!notes.is_object() || !notes.contains("text") || !notes["text"].is_string()) {
    fail_foreign(path);
  }
  kept.text = notes["text"];
  kept.tokens = tokens_in(notes, "tokens", model_->info().n_vocab, path);
  kept.unread = tokens_in(notes, "unread", model_->info().n_vocab, path);
  kept.options = request.session;
  kept.bytes = session_bytes(*kept.session);
  memory_.kept() += kept.bytes;
  {
    const std::lock_guard lock(mutex_);
    kept.id = next_id_++;
  }
  const int64_t id = kept.id;
  kept_.add(std::move(kept));
  return id;
}

void Scheduler::Loop::erase_slot(int64_t id) {
  const size_t bytes = kept_.erase(id);
  if (bytes == 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("slot {} holds no conversation that could be erased", id));
  }
  memory_.kept() -= bytes;
}

}  // namespace snapkv::server
