// SPDX-License-Identifier: MIT
#include "server/scheduler/slot_files.h"

#include "base/error.h"
#include "server/scheduler/slot_notes.h"

namespace snapkv::server {

void SlotFiles::save(int64_t id, const std::string& path) {
  use_session([&] {
    KeptSession kept = queue_.run([&] { return store_.lend(id); });
    const auto give_back = [&] { queue_.run([&] { store_.take_back(std::move(kept)); }); };
    try {
      kept.session->save(path, slot_notes(kept));
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
  });
}

int64_t SlotFiles::restore(const std::string& path) {
  const SavedSessionFile file(path);
  const SavedSession& saved = file.saved();
  Request request;
  request.session = saved.options;
  rules_.complete_saved(request);
  if (saved.options.kv_type != request.session.kv_type) {
    fail(ErrorCode::kUsage, "{}: its cache is of type {}, this server's are {}", path,
         name(saved.options.kv_type), name(request.session.kv_type));
  }
  KeptSession kept;
  read_slot_notes(saved.notes, model_->info().n_vocab, path, kept);
  kept.options = request.session;
  return use_session([&] {
    queue_.run([&] { store_.reserve_file(file.bytes(), path); });
    try {
      kept.session = std::make_unique<Session>(model_, request.session);
      kept.session->load(file);
      kept.bytes = session_bytes(*kept.session);
    } catch (...) {
      queue_.run([&] { store_.release_file(file.bytes()); });
      throw;
    }
    const int64_t id = kept.id = queue_.next_id();
    queue_.run([&] { store_.add_restored(std::move(kept), file.bytes(), path); });
    return id;
  });
}

void SlotFiles::erase(int64_t id) {
  queue_.run([&] { store_.erase(id); });
}

}  // namespace snapkv::server
