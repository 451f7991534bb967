// SPDX-License-Identifier: MIT
// snapkv serve: serves OpenAI's and Anthropic's APIs, with compressed caches for long
// conversations.
#include <fmt/core.h>
#include <malloc.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/serve/options.h"
#include "server/scheduler/scheduler.h"

namespace snapkv::cli {
namespace {

constexpr std::chrono::milliseconds kPoll(20);

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

/// Makes the C library give freed memory back to the system rather than keep it for later: large
/// blocks at once, and the rest not in a heap for every thread.
void return_memory_early() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 4);
#endif
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

void wait_for_signal_and_drain(server::Service& service) {
  while (!interrupted()) std::this_thread::sleep_for(kPoll);
  write_stderr(
      fmt::format("snapkv: {}: finishing what runs; once more ends at once\n", interruption()));
  service.drain();
  while (!service.idle()) std::this_thread::sleep_for(kPoll);
}

int run_serve(const ServeSettings& s, const CommonSettings& common) {
  return_memory_early();
  session_options(s.cache, s.n_ctx);  // refuses invalid options before a model is loaded
  Sampler{s.sampler};
  require_model(s.model);
  make_snapshot_dir(s.snapshot_dir);
  remove_abandoned(s.snapshot_dir);
  server::HttpServer http(http_options(s));
  server::ServiceOptions service_settings = service_options(s);
  service_settings.log = {.write = [](const std::string& line) { write_stderr("snapkv: " + line + "\n"); },
                          .verbose = common.verbose,
                          .shows_progress = !common.no_progress};
  server::Service service(http, std::move(service_settings));
  const std::string address = address_of(s, http.open());
  write_stderr(fmt::format("snapkv: listening on {}\n", address));
  std::unique_ptr<server::Scheduler> scheduler;  // destroyed after the HTTP thread has ended
  // the port opens before the model is loaded, so that /health can report it
  const Serving serving(http);
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_model(s.model, progress.callback());
  progress.clear();
  warn_beyond_training(s.n_ctx, model->info());
  scheduler = std::make_unique<server::Scheduler>(model, scheduler_options(s, model->info()));
  check_kv_memory(*model, scheduler->options());
  const uint64_t bodies = body_memory(s, scheduler->options().kv_memory);
  http.bodies().set_limit(bodies);
  write_stderr(memory_lines(scheduler->options(), bodies, http.most_body()));
  server::ApiOptions api = api_options(s, *model);
  if (!api.chat_template) write_stderr(kNoTemplate);
  service.begin(*scheduler, std::move(api));
  write_stderr(fmt::format("snapkv: ready: {}\n", address));
  wait_for_signal_and_drain(service);
  return 0;
}

}  // namespace

Command add_serve_command(CLI::App& root, const CommonSettings& common) {
  auto settings = std::make_shared<ServeSettings>();
  CLI::App* app =
      root.add_subcommand("serve", "Answer requests of OpenAI's and Anthropic's APIs over HTTP");
  add_serve_options(*app, *settings);
  return {app, [settings, &common] { return run_serve(*settings, common); }};
}

}  // namespace snapkv::cli
