// SPDX-License-Identifier: MIT
#include "server/scheduler/store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace snapkv::server {
namespace {

SlotInfo info_of(const KeptSession& kept) {
  SlotInfo info;
  info.id = kept.id;
  info.state = SlotInfo::State::kept;
  info.request = kept.request;
  info.policy = kept.options.kv.name;
  info.n_tokens = kept.session->n_past();
  info.bytes = kept.bytes;
  info.idle_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - kept.last_used).count();
  return info;
}

}  // namespace

/// Frees kept sessions and prefixes until `bytes` are free; returns whether that succeeded.
bool Store::make_room(size_t bytes) {
  while (memory_.free() < bytes) {
    if (const size_t freed = kept_.drop_one(); freed > 0) {
      memory_.kept() -= freed;
    } else if (prefixes_.drop_one()) {
      memory_.prefixes() = prefixes_.bytes();
    } else {
      return false;
    }
  }
  return true;
}

bool Store::reserve(Reservation& request, const RequestBytes& bytes) {
  if (!make_room(bytes.running + bytes.reading + bytes.prefix)) return false;
  request.add(memory_, bytes);
  return true;
}

size_t Store::free_for_requests() const {
  const size_t taken = memory_.running() + memory_.reading() + lent_bytes_;
  return memory_.limit() - std::min(memory_.limit(), taken);
}

void Store::add_prefix(std::shared_ptr<const KvPrefix> prefix, int64_t n_ctx) {
  prefixes_.add(std::move(prefix), n_ctx);
  memory_.prefixes() = prefixes_.bytes();
}

void Store::keep(KeptSession kept) {
  if (!make_room(kept.bytes)) return;
  memory_.kept() += kept.bytes;
  kept_.add(std::move(kept));
}

std::optional<Continuation> Store::take(const Model& model, const Request& request) {
  std::optional<Continuation> found = kept_.take(model, request);
  if (found) memory_.kept() -= found->kept.bytes;
  return found;
}

void Store::erase(int64_t id) {
  const std::optional<KeptSession> kept = kept_.take(id);
  if (!kept) {
    fail(ErrorCode::kUsage, "slot {} holds no conversation that could be erased", id);
  }
  memory_.kept() -= kept->bytes;
}

KeptSession Store::lend(int64_t id) {
  std::optional<KeptSession> kept = kept_.take(id);
  if (!kept) {
    fail(ErrorCode::kUsage, "slot {} holds no conversation that could be saved", id);
  }
  lent_.push_back(info_of(*kept));
  lent_bytes_ += kept->bytes;
  return std::move(*kept);
}

void Store::take_back(KeptSession kept) {
  lent_.remove_if([&](const SlotInfo& info) { return info.id == kept.id; });
  lent_bytes_ -= kept.bytes;
  kept_.add(std::move(kept));
}

void Store::require_room(size_t bytes, const std::string& path) {
  if (make_room(bytes)) return;
  fail(ErrorCode::kDoesNotFit, "{}: {} MiB; {} MiB are free for caches", path, bytes >> 20,
       memory_.free() >> 20);
}

void Store::reserve_file(size_t bytes, const std::string& path) {
  require_room(bytes, path);
  memory_.kept() += bytes;
  lent_bytes_ += bytes;
}

void Store::release_file(size_t bytes) {
  memory_.kept() -= bytes;
  lent_bytes_ -= bytes;
}

void Store::add_restored(KeptSession kept, size_t reserved, const std::string& path) {
  release_file(reserved);
  require_room(kept.bytes, path);
  memory_.kept() += kept.bytes;
  kept_.add(std::move(kept));
}

void Store::list(std::vector<SlotInfo>& slots) const {
  slots.insert(slots.end(), lent_.begin(), lent_.end());
  for (const KeptSession& kept : kept_.all()) slots.push_back(info_of(kept));
}

void Store::count(SchedulerStats& stats) const {
  stats.n_kept = static_cast<int>(kept_.all().size());
  stats.n_prefixes = prefixes_.size();
  stats.bytes_limit = memory_.limit();
  stats.bytes_running = memory_.running() + memory_.reading();
  stats.bytes_kept = memory_.kept();
  stats.bytes_prefixes = memory_.prefixes();
}

}  // namespace snapkv::server
