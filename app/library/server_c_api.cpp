// SPDX-License-Identifier: MIT
// The C API of libsnapkv_server.so (snapkv/snapkv_server.h).
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bindings/c_api_support.h"
#include "cli/command_line.h"
#include "cli/common/settings.h"
#include "cli/serve/options.h"
#include "cli/serve/running_server.h"
#include "snapkv/lent_file.h"
#include "snapkv/snapkv.h"
#include "snapkv/snapkv_server.h"

struct snapkv_server {
  std::unique_ptr<snapkv::cli::RunningServer> running;
};

namespace snapkv::cli {
namespace {

std::unique_ptr<RunningServer> start_server(int n_words, const char* const* words,
                                            const char* socket) {
  std::vector<std::string> typed = {"serve", "--no-progress"};
  for (int i = 0; i < n_words; ++i) typed.emplace_back(&given(words[i], "an option"));
  CommandLine line;
  try {
    const Command* command = line.parse(typed);
    if (command == nullptr) fail(ErrorCode::kUsage, "the options ask for help, not for a server");
    ServeSettings settings = line.serve();
    settings.http.socket = &given(socket, "socket");
    auto running = std::make_unique<RunningServer>(settings, line.common());
    running->load();
    return running;
  } catch (const Error& e) {
    throw Error(e.code(), message_of(e));
  }
}

/// Calls `release` when the last user of lent bytes has gone, unless it was let off before.
struct Release {
  void (*release)(void*) = nullptr;
  void* user = nullptr;
  ~Release() {
    if (release != nullptr) release(user);
  }
};

}  // namespace
}  // namespace snapkv::cli

using namespace snapkv;  // NOLINT(google-build-using-namespace)

int snapkv_server_start(int n_words, const char* const* words, const char* socket,
                        snapkv_server** server, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    snapkv_server*& result = given(server, "server");
    if (n_words > 0) (void)given(words, "words");
    result = new snapkv_server{cli::start_server(n_words, words, socket)};
  });
}

void snapkv_server_stop(snapkv_server* server, double seconds) {
  if (server == nullptr) return;
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  server->running->drain();
  while (!server->running->idle() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  delete server;
}

int snapkv_server_lend(snapkv_server* server, const char* name, const void* data, size_t size,
                       void (*release)(void* user), void* user, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    server::DocumentStore& documents = given(server, "server").running->documents();
    const std::string named = &given(name, "name");
    const auto owner = std::make_shared<cli::Release>();
    const auto* const bytes = static_cast<const std::byte*>(data);
    (void)given(bytes, "data");
    documents.lend(named, {.name = named, .bytes = {bytes, size}, .owner = owner});
    owner->user = user;
    owner->release = release;  // only now: after an error the bytes stay the caller's
  });
}

int snapkv_server_withdraw(snapkv_server* server, const char* name, char* error,
                           size_t error_size) {
  return guarded(error, error_size, [&] {
    const std::string named = &given(name, "name");
    if (!given(server, "server").running->documents().withdraw(named)) {
      fail(ErrorCode::kUsage, "nothing was lent as '{}'", named);
    }
  });
}
