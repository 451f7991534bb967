// SPDX-License-Identifier: MIT
// SlotFiles: conversations that clients keep in files. The calling thread, which may be any, reads
// and writes the files; the scheduler's thread lends it a session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/scheduler/queue.h"
#include "server/scheduler/request_rules.h"
#include "server/scheduler/store.h"

namespace snapkv::server {

class SlotFiles {
 public:
  /// The references must outlive this. Only tasks of the queue touch the store.
  SlotFiles(std::shared_ptr<const Model> model, const RequestRules& rules, RequestQueue& queue,
            Store& store)
      : model_(std::move(model)), rules_(rules), queue_(queue), store_(store) {}

  // as those of RequestEngine
  void save(int64_t id, const std::string& path);
  int64_t restore(const std::string& path);
  void erase(int64_t id);

 private:
  /// Runs a task that reads or writes a session's rows while other sessions are decoded. Sessions
  /// in a device's memory may only be used in the scheduler's thread.
  template <typename F>
  auto use_session(F task) {
    return model_->on_device() ? queue_.run(std::move(task)) : task();
  }

  const std::shared_ptr<const Model> model_;
  const RequestRules& rules_;
  RequestQueue& queue_;
  Store& store_;
};

}  // namespace snapkv::server
