// SPDX-License-Identifier: MIT
#include "server/scheduler/file_writer.h"

#include <utility>

namespace snapkv::server {

void FileWriter::add(std::function<void()> write) {
  {
    const std::lock_guard lock(mutex_);
    files_.push_back(std::move(write));
  }
  changed_.notify_all();
}

void FileWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FileWriter::run() {
  while (true) {
    std::function<void()> write;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !files_.empty(); });
      if (stopping_) return;
      write = std::move(files_.front());
      files_.pop_front();
    }
    write();
  }
}

}  // namespace snapkv::server
