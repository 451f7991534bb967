// SPDX-License-Identifier: MIT
#include "server/generation.h"

#include <utility>

namespace snapkv::server {

std::optional<Update> Generation::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait, [&] { return !updates_.empty(); })) return std::nullopt;
  Update update = std::move(updates_.front());
  updates_.pop_front();
  return update;
}

void Generation::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool Generation::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void Generation::push(Update update) {
  {
    const std::lock_guard lock(mutex_);
    updates_.push_back(std::move(update));
  }
  changed_.notify_one();
}

}  // namespace snapkv::server
