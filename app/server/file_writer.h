// SPDX-License-Identifier: MIT
// FileWriter: a thread that writes files one after the other, while the loop, which hands them to
// it, goes on with its rounds. Used by the scheduler's loop for snapshots.
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

  /// `write` must not throw, and whatever it uses must stay until it has ended or was dropped.
  void add(std::function<void()> write);
  /// Waits for the file that is being written; those that have not begun are dropped. Nothing is
  /// written after this.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> files_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;                       // last: it uses all of these
};

}  // namespace snapkv::server
