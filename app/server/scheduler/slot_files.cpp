// SPDX-License-Identifier: MIT
// Slots, as llama-server calls the scheduler's sessions, and conversations kept in files. The
// calling thread reads and writes the files; the loop lends it a session.
#include <fmt/core.h>

#include "server/json.h"
#include "server/scheduler/loop.h"

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

SlotInfo info_of(const KeptSession& kept) {
  SlotInfo info;
  info.id = kept.id;
  info.state = SlotInfo::State::kept;
  info.request = kept.request;
  info.policy = kept.options.kv.name;
  info.n_tokens = kept.session->n_past();
  info.bytes = kept.bytes;
  info.idle_seconds = seconds_since(kept.last_used);
  return info;
}

Json notes_of(const KeptSession& kept) {
  Json input = Json::array();
  for (const ByteRange& range : kept.input) input.push_back({range.begin, range.end});
  return {{"text", kept.text},
          {"prompt_bytes", kept.prompt_bytes},
          {"input", input},
          {"tokens", kept.tokens},
          {"unread", kept.unread}};
}

/// Reads which bytes of the text are input.
void read_input(const Json& notes, const std::string& path, KeptSession& kept) {
  if (!notes.contains("prompt_bytes") || !notes.contains("input")) fail_foreign(path);
  const auto number = [&](const Json& json, size_t most) {
    if (!json.is_number_unsigned() || json.get<size_t>() > most) fail_foreign(path);
    return json.get<size_t>();
  };
  kept.prompt_bytes = number(notes["prompt_bytes"], kept.text.size());
  if (!notes["input"].is_array()) fail_foreign(path);
  for (const Json& range : notes["input"]) {
    if (!range.is_array() || range.size() != 2) fail_foreign(path);
    const size_t end = number(range[1], kept.prompt_bytes);
    kept.input.push_back({number(range[0], end), end});
  }
}

/// Reads the notes that save_slot() wrote beside the session.
void read_notes(const std::string& text, const Model& model, const std::string& path,
                KeptSession& kept) {
  const Json notes = parse_held(text);
  if (!notes.is_object() || !notes.contains("text") || !notes["text"].is_string()) {
    fail_foreign(path);
  }
  kept.text = notes["text"];
  read_input(notes, path, kept);
  kept.tokens = tokens_in(notes, "tokens", model.info().n_vocab, path);
  kept.unread = tokens_in(notes, "unread", model.info().n_vocab, path);
}

}  // namespace

std::vector<SlotInfo> Scheduler::Loop::slots() {
  return run([this] { return list_slots(); });
}

std::vector<SlotInfo> Scheduler::Loop::list_slots() const {
  std::vector<SlotInfo> all;
  const auto add = [&](const Jobs& jobs, SlotInfo::State state) {
    for (const auto& job : jobs) {
      SlotInfo info;
      info.id = job->id;
      info.state = state;
      info.request = job->request.id;
      info.policy = job->request.session.kv.name;
      info.n_tokens = prompt_tokens(job->request);
      info.bytes = job->running_bytes + job->reading_bytes;
      all.push_back(std::move(info));
    }
  };
  add(answering_, SlotInfo::State::answering);
  add(writing_, SlotInfo::State::writing);
  add(reading_, SlotInfo::State::reading);
  add(waiting_, SlotInfo::State::waiting);
  all.insert(all.end(), lent_.begin(), lent_.end());
  for (const KeptSession& kept : kept_.all()) all.push_back(info_of(kept));
  return all;
}

/// Takes a kept session out while its file is written; its bytes stay reserved.
KeptSession Scheduler::Loop::lend(int64_t id) {
  std::optional<KeptSession> kept = kept_.take(id);
  if (!kept) {
    throw Error(ErrorCode::kUsage,
                fmt::format("slot {} holds no conversation that could be saved", id));
  }
  lent_.push_back(info_of(*kept));
  lent_bytes_ += kept->bytes;
  return std::move(*kept);
}

void Scheduler::Loop::take_back(KeptSession kept) {
  lent_.remove_if([&](const SlotInfo& info) { return info.id == kept.id; });
  lent_bytes_ -= kept.bytes;
  kept_.add(std::move(kept));
}

void Scheduler::Loop::save_slot(int64_t id, const std::string& path) {
  use_session([&] {
    KeptSession kept = run([&] { return lend(id); });
    const auto give_back = [&] { run([&] { take_back(std::move(kept)); }); };
    try {
      kept.session->save(path, to_text(notes_of(kept)));
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
  });
}

/// Reserves a file's bytes for the session that will be read from it.
void Scheduler::Loop::reserve_for(const SavedSessionFile& file, const std::string& path) {
  if (!make_room(file.bytes())) {
    throw Error(ErrorCode::kDoesNotFit, fmt::format("{}: {} MiB; {} MiB are free for caches", path,
                                                    file.bytes() >> 20, memory_.free() >> 20));
  }
  memory_.kept() += file.bytes();
  lent_bytes_ += file.bytes();
}

void Scheduler::Loop::release_lent(size_t bytes) {
  memory_.kept() -= bytes;
  lent_bytes_ -= bytes;
}

int64_t Scheduler::Loop::add_restored(KeptSession kept, size_t reserved, const std::string& path) {
  release_lent(reserved);
  if (!make_room(kept.bytes)) {
    throw Error(ErrorCode::kDoesNotFit, fmt::format("{}: {} MiB; {} MiB are free for caches", path,
                                                    kept.bytes >> 20, memory_.free() >> 20));
  }
  memory_.kept() += kept.bytes;
  {
    const std::lock_guard lock(mutex_);
    kept.id = next_id_++;
  }
  const int64_t id = kept.id;
  kept_.add(std::move(kept));
  return id;
}

int64_t Scheduler::Loop::restore_slot(const std::string& path) {
  const SavedSessionFile file(path);
  const SavedSession& saved = file.saved();
  if (saved.options.kv_type != options_.session.kv_type) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: its cache is of type {}, this server's are {}", path,
                            name(saved.options.kv_type), name(options_.session.kv_type)));
  }
  KeptSession kept;
  read_notes(saved.notes, *model_, path, kept);
  Request request;
  request.session = saved.options;
  complete_options(request);
  kept.options = request.session;
  return use_session([&] {
    run([&] { reserve_for(file, path); });
    try {
      kept.session = std::make_unique<Session>(model_, request.session);
      kept.session->load(file);
      kept.bytes = session_bytes(*kept.session);
    } catch (...) {
      run([&] { release_lent(file.bytes()); });
      throw;
    }
    return run([&] { return add_restored(std::move(kept), file.bytes(), path); });
  });
}

void Scheduler::Loop::erase_slot(int64_t id) {
  run([&] {
    const std::optional<KeptSession> kept = kept_.take(id);
    if (!kept) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("slot {} holds no conversation that could be erased", id));
    }
    memory_.kept() -= kept->bytes;
  });
}

}  // namespace snapkv::server
