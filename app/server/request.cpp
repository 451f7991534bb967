// SPDX-License-Identifier: MIT
#include "server/request.h"

#include <utility>

namespace snapkv::server {

std::optional<Update> RequestUpdates::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [&] { return !updates_.empty(); })) return std::nullopt;
  Update update = std::move(updates_.front());
  updates_.pop_front();
  return update;
}

void RequestUpdates::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool RequestUpdates::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void RequestUpdates::push(Update update) {
  {
    const std::lock_guard lock(mutex_);
    updates_.push_back(std::move(update));
  }
  changed_.notify_one();
}

}  // namespace snapkv::server
