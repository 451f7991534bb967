// SPDX-License-Identifier: MIT
// Fetches one file: continues what an earlier run has left, tries again when the connection breaks,
// and checks the SHA-256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/common/progress.h"
#include "cli/pull/http_client.h"

namespace snapkv::cli {

/// What is fetched, and what to say of it.
struct Download {
  std::string url;
  std::string name;                  ///< for messages: "model-Q4_K_M.gguf"
  std::string command;               ///< that continues it: "snapkv pull org/repo:Q4_K_M"
  std::filesystem::path incomplete;  ///< where the bytes go until all are there
  std::filesystem::path target;      ///< the file's name then
  uint64_t bytes = 0;
  std::string sha256;  ///< empty: not known, so that only the size is checked
  /// Throws what an answer of the server means that is neither the file nor a passing failure.
  std::function<void(const HttpReply&)> fail_for = {};
};

/// How it is shown, and how often it is tried.
struct DownloadDisplay {
  ProgressDisplay& progress;
  int n_retries = 5;          ///< in a row, without progress between them
  uint64_t bytes_before = 0;  ///< of the same model's parts that are there already
  uint64_t bytes_of_all = 0;
};

/// Fetches the file and returns its SHA-256. Throws Error{kRuntime} when tries are used up, the
/// disk is full or the hash is wrong (which deletes what was fetched), kCancelled after a signal;
/// but for a wrong hash, what is there stays for the next run.
std::string download(HttpClient& client, const Download& wanted, const DownloadDisplay& display);

/// What is there of a file that an earlier run began, in bytes.
uint64_t bytes_there(const std::filesystem::path& incomplete);

/// Throws Error{kRuntime} with both figures if `bytes` more do not fit on the disk of `folder`,
/// which need not be there yet.
void check_disk_space(const std::filesystem::path& folder, uint64_t bytes, const std::string& name);

/// Waits, unless a signal comes, which throws Error{kCancelled}.
void wait_before_retry(double seconds);

}  // namespace snapkv::cli
