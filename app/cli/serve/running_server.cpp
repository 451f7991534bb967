// SPDX-License-Identifier: MIT
#include "cli/serve/running_server.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/common/progress.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "server/scheduler/scheduler.h"

namespace snapkv::cli {
namespace {

constexpr const char* kNoTemplate =
    "snapkv: the model has no chat template, as a base model: it continues texts (/v1/completions),"
    " and\n        requests of the chat endpoints are errors; --chat-template NAME says in which "
    "format to chat\n";

/// The thread that serves HTTP; whatever happens, it has ended when this has.
class Serving {
 public:
  explicit Serving(server::HttpServer& http) : http_(http), thread_([&http] { http.serve(); }) {
    while (!http_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Serving() {
    http_.close();
    thread_.join();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  server::HttpServer& http_;
  std::thread thread_;
};

/// Makes the folder where it is not there: its owner's alone, since documents end up in it. The
/// folder that it is in must be there, so that a misspelt path is noticed.
void make_snapshot_dir(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return;
  if (mkdir(folder.c_str(), S_IRWXU) == 0) {
    write_stderr(fmt::format("snapkv: --snapshot-dir: made the folder {}\n", folder));
    return;
  }
  fail(ErrorCode::kUsage, "--snapshot-dir '{}': no folder can be made there: {}", folder,
       std::strerror(errno));
}

std::string address_of(const ServeSettings& s, int port) {
  if (!s.http.socket.empty()) return s.http.socket;
  const bool is_ipv6 = s.http.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", s.http.tls_cert.empty() ? "http" : "https",
                     is_ipv6 ? "[" + s.http.host + "]" : s.http.host, port);
}

std::string memory_lines(const server::SchedulerOptions& options, uint64_t bodies,
                         size_t most_body) {
  std::string line = "snapkv: --kv-memory: " + format_bytes(options.kv_memory) + " for caches";
  if (*options.prefix_cache > 0) {
    line += ", of which " + format_bytes(*options.prefix_cache) +
            " (--prefix-cache) may keep what prompts begin with";
  }
  return line +
         fmt::format("\nsnapkv: --body-memory: {} for the bodies of requests; one may have {}\n",
                     format_bytes(bodies), format_bytes(most_body));
}

void remove_abandoned(const std::string& folder) {
  if (folder.empty()) return;
  const int n = remove_abandoned_files(folder);
  if (n == 0) return;
  write_stderr(
      fmt::format("snapkv: --snapshot-dir: removed {} unfinished file{} of servers that "
                  "were killed\n",
                  n, n > 1 ? "s" : ""));
}

server::ServiceOptions logging(server::ServiceOptions options, const CommonSettings& common) {
  options.log = {.write = [](const std::string& line) { write_stderr("snapkv: " + line + "\n"); },
                 .verbose = common.verbose,
                 .shows_progress = !common.no_progress};
  return options;
}

/// Refuses invalid settings before a port is opened or a model loaded.
const ServeSettings& checked(const ServeSettings& s) {
  session_options(s.cache, s.n_ctx);
  Sampler{s.sampler};
  require_model(s.model);
  make_snapshot_dir(s.snapshot_dir);
  remove_abandoned(s.snapshot_dir);
  return s;
}

}  // namespace

/// In the order in which they are made; the engine ends after the thread that serves.
struct RunningServer::Parts {
  Parts(const ServeSettings& s, const CommonSettings& common)
      : settings(checked(s)),
        common_settings(common),
        http(http_options(s)),
        service(http, logging(service_options(s), common)),
        address(address_of(s, http.open())) {
    write_stderr(fmt::format("snapkv: listening on {}\n", address));
    serving.emplace(http);  // before the model is loaded, so that /health can report it
  }

  const ServeSettings settings;
  const CommonSettings common_settings;
  server::HttpServer http;
  server::Service service;
  const std::string address;
  std::unique_ptr<ProgressDisplay> progress;  // receives the library's log
  std::unique_ptr<server::Scheduler> scheduler;
  std::optional<Serving> serving;
};

RunningServer::RunningServer(const ServeSettings& settings, const CommonSettings& common)
    : parts_(std::make_unique<Parts>(settings, common)) {}
RunningServer::~RunningServer() = default;

void RunningServer::load() {
  Parts& parts = *parts_;
  const ServeSettings& s = parts.settings;
  parts.progress = std::make_unique<ProgressDisplay>(!parts.common_settings.no_progress,
                                                     parts.common_settings.verbose);
  const std::shared_ptr<const Model> model = load_model(s.model, parts.progress->callback());
  parts.progress->clear();
  warn_beyond_training(s.n_ctx, model->info());
  parts.scheduler = std::make_unique<server::Scheduler>(model, scheduler_options(s, model->info()));
  const server::SchedulerOptions& options = parts.scheduler->options();
  check_kv_memory(*model, options);
  const uint64_t bodies = body_memory(s, options.kv_memory);
  parts.http.bodies().set_limit(bodies);
  write_stderr(memory_lines(options, bodies, parts.http.most_body()));
  server::ApiOptions api = api_options(s, *model);
  if (!api.chat_template) write_stderr(kNoTemplate);
  parts.service.begin(*parts.scheduler, std::move(api));
  write_stderr(fmt::format("snapkv: ready: {}\n", parts.address));
}

void RunningServer::drain() { parts_->service.drain(); }
bool RunningServer::idle() const { return parts_->service.idle(); }
server::DocumentStore& RunningServer::documents() { return parts_->scheduler->documents(); }

}  // namespace snapkv::cli
