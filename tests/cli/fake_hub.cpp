// SPDX-License-Identifier: MIT
#include "fake_hub.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "run_process.h"

namespace snapkv::test {
namespace {

using Json = nlohmann::json;

/// A server on a free port, and the thread that runs it.
struct Listening {
  httplib::Server server;
  int port = 0;
  std::thread thread;

  void start() {
    port = server.bind_to_any_port("127.0.0.1");
    EXPECT_GT(port, 0);
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void stop() {
    server.stop();
    if (thread.joinable()) thread.join();
  }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port); }
};

void answer_error(httplib::Response& res, int status, const std::string& code) {
  res.status = status;
  res.set_header("X-Error-Code", code);
  res.set_content(R"({"error":")" + code + "\"}", "application/json");
}

bool takes_one(std::atomic<int>& count) {
  int n = count;
  while (n > 0) {
    if (count.compare_exchange_weak(n, n - 1)) return true;
  }
  return false;
}

}  // namespace

std::string sha256_of(const std::string& bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest = {};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string text;
  for (const unsigned char byte : digest) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

struct FakeHub::Servers {
  explicit Servers(FakeHub& owner) : hub_(owner) {
    api.server.Get(R"(/api/models/([^/]+/[^/]+)/revision/(.+))",
                   [this](const auto& req, auto& res) { revision(req, res); });
    api.server.Get(R"(/api/models/([^/]+/[^/]+)/tree/([^/]+))",
                   [this](const auto& req, auto& res) { tree(req, res); });
    api.server.Get(R"(/([^/]+/[^/]+)/resolve/([^/]+)/(.+))",
                   [this](const auto& req, auto& res) { resolve(req, res); });
    storage.server.Get(R"(/repos/([^/]+/[^/]+)/(.+))", [this](const auto& req, auto& res) {
      note(req, false);
      content(hub_.repos[req.matches[1]][req.matches[2]], req, res);
    });
    storage.server.Get(R"(/files/(.+))", [this](const auto& req, auto& res) {
      note(req, false);
      const auto at = hub_.files.find(req.matches[1]);
      if (at == hub_.files.end()) return answer_error(res, 404, "NotFound");
      res.set_header("ETag", "\"" + sha256_of(at->second.content) + "\"");
      content(at->second, req, res);
    });
    api.start();
    storage.start();
  }
  ~Servers() {
    is_ending = true;
    api.stop();
    storage.stop();
  }

  void note(const httplib::Request& req, bool to_hub) {
    const std::lock_guard lock(hub_.mutex_);
    hub_.requests_.push_back(
        {to_hub, req.path, req.get_header_value("Authorization"), req.get_header_value("Range")});
  }

  /// Answers for repositories that are not there, or not for everybody; listings of gated ones are.
  bool is_refused(const httplib::Request& req, httplib::Response& res, bool is_content) {
    note(req, true);
    const std::string repo = req.matches[1];
    if (const auto to = hub_.moved.find(repo); to != hub_.moved.end()) {
      std::string path = req.path;
      path.replace(path.find(repo), repo.size(), to->second);
      res.set_redirect(path + (is_content ? "" : "?recursive=true"), 307);
      return true;
    }
    const bool has_token = req.get_header_value("Authorization") == "Bearer " + hub_.needs_token;
    if (hub_.repos.count(repo) == 0 || (hub_.is_private && !has_token)) {
      answer_error(res, 401, "RepoNotFound");
      return true;
    }
    if (is_content && !hub_.needs_token.empty() && !has_token) {
      answer_error(res, req.has_header("Authorization") ? 403 : 401, "GatedRepo");
      return true;
    }
    return false;
  }

  void revision(const httplib::Request& req, httplib::Response& res) {
    if (is_refused(req, res, false)) return;
    if (req.matches[2] != "main") return answer_error(res, 404, "RevisionNotFound");
    res.set_content(Json{{"sha", hub_.commit}}.dump(), "application/json");
  }

  void tree(const httplib::Request& req, httplib::Response& res) {
    if (is_refused(req, res, false)) return;
    const auto& all = hub_.repos[req.matches[1]];
    Json entries = Json::array({{{"type", "directory"}, {"path", "pictures"}}});
    const int begin = req.has_param("cursor") ? std::stoi(req.get_param_value("cursor")) : 0;
    int n = 0;
    for (const auto& [path, file] : all) {
      if (n++ < begin || n > begin + hub_.page_size) continue;
      const uint64_t bytes = file.said_bytes > 0 ? file.said_bytes : file.content.size();
      Json entry = {{"type", "file"}, {"path", path}, {"size", bytes}, {"oid", "0123"}};
      const std::string sha = file.said_sha256.empty() ? sha256_of(file.content) : file.said_sha256;
      if (file.is_large) entry["lfs"] = {{"oid", sha}, {"size", bytes}, {"pointerSize", 134}};
      entries.push_back(entry);
    }
    if (n > begin + hub_.page_size) {
      res.set_header("Link", "<" + api.address() + req.path + "?recursive=true&cursor=" +
                                 std::to_string(begin + hub_.page_size) + ">; rel=\"next\"");
    }
    res.set_content(entries.dump(), "application/json");
  }

  void resolve(const httplib::Request& req, httplib::Response& res) {
    if (is_refused(req, res, true)) return;
    const std::string repo = req.matches[1], path = req.matches[3];
    if (hub_.repos[repo].count(path) == 0) return answer_error(res, 404, "EntryNotFound");
    res.set_header("X-Repo-Commit", hub_.commit);
    res.set_redirect(storage.address() + "/repos/" + repo + "/" + path, 302);
  }

  void content(const File& file, const httplib::Request& req, httplib::Response& res) {
    if (takes_one(hub_.n_failures)) {
      if (!hub_.retry_after.empty()) res.set_header("Retry-After", hub_.retry_after);
      return answer_error(res, hub_.failing_status, "Failing");
    }
    const bool breaks = takes_one(hub_.n_breaks);
    auto sent = std::make_shared<int64_t>(0);
    const auto send = [this, &file, breaks, sent](size_t offset, size_t length,
                                                  httplib::DataSink& sink) {
      constexpr size_t kMost = 1 << 16;
      if (is_ending || (breaks && *sent >= hub_.break_after)) return false;
      if (hub_.is_slow && *sent >= 1 << 20) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return true;
      }
      const size_t n = std::min({kMost, length, file.content.size() - offset});
      *sent += static_cast<int64_t>(n);
      return sink.write(file.content.data() + offset, n);
    };
    if (hub_.ignores_ranges) {
      res.status = 200;
      const_cast<httplib::Request&>(req).ranges.clear();  // newer versions would answer with 416
      res.set_chunked_content_provider("application/octet-stream",
                                       [send, &file](size_t offset, httplib::DataSink& sink) {
                                         if (offset < file.content.size()) {
                                           return send(offset, file.content.size() - offset, sink);
                                         }
                                         sink.done();
                                         return true;
                                       });
      return;
    }
    res.set_content_provider(file.content.size(), "application/octet-stream", send);
  }

  FakeHub& hub_;
  Listening api, storage;
  std::atomic<bool> is_ending{false};
};

FakeHub::FakeHub() : servers_(std::make_unique<Servers>(*this)) {}
FakeHub::~FakeHub() = default;

std::string FakeHub::endpoint() const { return servers_->api.address(); }

std::string FakeHub::url(const std::string& file_name) const {
  return servers_->storage.address() + "/files/" + file_name;
}

std::map<std::string, std::string> FakeHub::environment() const {
  return {{"HOME", make_folder()}, {"HF_ENDPOINT", endpoint()}};
}

std::string FakeHub::folder(const std::map<std::string, std::string>& env,
                            const std::string& repo) {
  std::string name = "models--" + repo;
  name.replace(name.find('/'), 1, "--");
  return env.at("HOME") + "/.cache/huggingface/hub/" + name;
}

std::vector<FakeHub::Request> FakeHub::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int FakeHub::n_fetches() const {
  const std::vector<Request> all = requests();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const Request& r) { return !r.to_hub; }));
}

void FakeHub::forget_requests() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
}

}  // namespace snapkv::test
