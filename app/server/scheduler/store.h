// SPDX-License-Identifier: MIT
// Store: the memory for caches, and what is kept there for later requests: conversations that may
// continue, and the beginnings of prompts. Requests come first: for them, all that is kept is
// dropped, the least valuable first. For the scheduler's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/request_engine.h"
#include "server/scheduler/kept_sessions.h"
#include "server/scheduler/memory_account.h"
#include "server/scheduler/prefix_store.h"

namespace snapkv::server {

class Store {
 public:
  /// `limit`: bytes for everything; `prefix_limit`: the part of them that prefixes may take.
  Store(size_t limit, size_t prefix_limit) : memory_(limit), prefixes_(prefix_limit) {}

  /// Reserves bytes for a request, for which kept sessions are dropped, and then prefixes, as long
  /// as too few are free. Returns false if that is not enough; nothing is reserved then.
  bool reserve(Reservation& request, const RequestBytes& bytes);
  /// Counts bytes that the request already has, whether or not that many are free.
  void hold(Reservation& request, const RequestBytes& bytes) { request.add(memory_, bytes); }
  /// Bytes that are free, or taken by what would be dropped for a request.
  size_t free_for_requests() const;

  // prefixes

  /// Whether a prefix of this size could be kept.
  bool may_keep_prefix(size_t bytes) const { return bytes <= prefixes_.limit(); }
  void add_prefix(std::shared_ptr<const KvPrefix> prefix, int64_t n_ctx);
  /// As PrefixStore::find().
  PrefixStore::Match find_prefix(std::span<const int32_t> tokens, int64_t n_ctx) {
    return prefixes_.find(tokens, n_ctx);
  }

  // conversations

  /// Keeps a conversation, unless it does not fit even alone beside what requests have reserved.
  void keep(KeptSession kept);
  /// As KeptSessions::take(): the caller has reserved what the request needs.
  std::optional<Continuation> take(const Model& model, const Request& request);
  /// Frees a kept session. Throws kUsage if there is none with this id.
  void erase(int64_t id);

  // conversations in files, which other threads read and write

  /// Takes a kept session out while its file is written; its bytes stay reserved. Throws kUsage.
  KeptSession lend(int64_t id);
  void take_back(KeptSession kept);
  /// Reserves the bytes of a session that will be read from a file. Throws kDoesNotFit, which names
  /// `path`.
  void reserve_file(size_t bytes, const std::string& path);
  void release_file(size_t bytes);
  /// Keeps the session that was read, in place of the bytes reserved for it. Throws kDoesNotFit.
  void add_restored(KeptSession kept, size_t reserved, const std::string& path);
  /// Whether bytes are in use by other threads, which will give them back.
  bool has_lent() const { return lent_bytes_ > 0; }

  /// Adds the kept sessions, and those that were lent.
  void list(std::vector<SlotInfo>& slots) const;
  /// Sets the gauges that are the store's.
  void count(SchedulerStats& stats) const;

 private:
  bool make_room(size_t bytes);
  void require_room(size_t bytes, const std::string& path);

  MemoryAccount memory_;
  PrefixStore prefixes_;
  KeptSessions kept_;
  std::list<SlotInfo> lent_;  // kept sessions that other threads are writing to files
  size_t lent_bytes_ = 0;     // their bytes, and those of sessions being read from files
};

}  // namespace snapkv::server
