// SPDX-License-Identifier: MIT
// FileWriter: a thread that writes files one after another while the scheduler's loop goes on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace snapkv::server {

class FileWriter {
 public:
  FileWriter() : thread_([this] { run(); }) {}
  ~FileWriter() { stop(); }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// `write` must not throw, and what it uses must live until it has run or was dropped.
  void add(std::function<void()> write);
  /// Waits for the file that is being written and drops those that have not begun. Nothing is
  /// written afterwards.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> files_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;                       // last: it uses the members above
};

}  // namespace snapkv::server
