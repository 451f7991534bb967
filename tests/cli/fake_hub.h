// SPDX-License-Identifier: MIT
// FakeHub: a server on this machine that answers as Hugging Face's hub does, and a second one to
// which it redirects for contents, as the hub does to its storage. It can fail in the ways in which
// servers and connections do.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace snapkv::test {

/// SHA-256 in hexadecimal digits.
std::string sha256_of(const std::string& bytes);

class FakeHub {
 public:
  struct File {
    std::string content;
    std::string said_sha256 = {};  ///< empty: the right one
    uint64_t said_bytes = 0;       ///< 0: the right number
    bool is_large = true;          ///< has a SHA-256 in the listing
  };
  struct Request {
    bool to_hub = false;  ///< else to the storage
    std::string path, authorization, range;
  };

  FakeHub();
  ~FakeHub();
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  std::string endpoint() const;
  /// The storage's address for a file that is not of a repository.
  std::string url(const std::string& file_name) const;
  /// A new home folder's environment: HOME and HF_ENDPOINT.
  std::map<std::string, std::string> environment() const;

  /// Where a repository's files are in that home: models--ORG--NAME of Hugging Face's cache.
  static std::string folder(const std::map<std::string, std::string>& env, const std::string& repo);

  std::vector<Request> requests() const;
  /// Requests for contents that reached the storage.
  int n_fetches() const;
  void forget_requests();

  /// org/name -> path -> file; change them between runs only.
  std::map<std::string, std::map<std::string, File>> repos;
  std::map<std::string, File> files;         ///< of url()
  std::map<std::string, std::string> moved;  ///< repository -> its new name
  std::string commit = std::string(40, 'a');
  int page_size = 1000;     ///< of listings
  std::string needs_token;  ///< of a gated repository; empty: none is needed
  bool is_private = false;  ///< without the token, as if the repository were not there
  bool ignores_ranges = false;
  std::string retry_after = "0";  ///< sent with `failing_status`

  std::atomic<int> n_failures{0};  ///< so many requests of contents get `failing_status`
  std::atomic<int> failing_status{503};
  std::atomic<int> n_breaks{0};  ///< so many connections break after `break_after` bytes
  std::atomic<int64_t> break_after{0};
  std::atomic<bool> is_slow{false};  ///< contents never end after their first MiB

 private:
  struct Servers;
  std::unique_ptr<Servers> servers_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
};

}  // namespace snapkv::test
