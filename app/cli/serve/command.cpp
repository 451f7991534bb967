// SPDX-License-Identifier: MIT
// snapkv serve: serves OpenAI's and Anthropic's APIs, with compressed caches for long
// conversations.
#include <fmt/core.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/serve/options.h"
#include "cli/serve/running_server.h"

namespace snapkv::cli {
namespace {

constexpr std::chrono::milliseconds kPoll(20);

/// Makes the C library give freed memory back to the system rather than keep it for later: large
/// blocks at once, and the rest not in a heap for every thread.
void return_memory_early() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_ARENA_MAX, 4);
#endif
}

int run_serve(const ServeSettings& s, const CommonSettings& common) {
  return_memory_early();
  RunningServer server(s, common);
  server.load();
  while (!interrupted()) std::this_thread::sleep_for(kPoll);
  write_stderr(
      fmt::format("snapkv: {}: finishing what runs; once more ends at once\n", interruption()));
  server.drain();
  while (!server.idle()) std::this_thread::sleep_for(kPoll);
  return 0;
}

}  // namespace

Command add_serve_command(CLI::App& root, const CommonSettings& common,
                          std::shared_ptr<ServeSettings> settings) {
  CLI::App* app =
      root.add_subcommand("serve", "Answer requests of OpenAI's and Anthropic's APIs over HTTP");
  add_serve_options(*app, *settings);
  return {app, [settings, &common] { return run_serve(*settings, common); }};
}

}  // namespace snapkv::cli
