// SPDX-License-Identifier: MIT
#include "eval/common/stored_context.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "snapkv/prefill.h"

namespace snapkv::eval {
namespace {

std::shared_ptr<const KvPrefix> store(const std::shared_ptr<const Model>& model,
                                      const SessionOptions& options,
                                      std::span<const int32_t> context,
                                      const ProgressFn& progress) {
  Session session(model, options);
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens.assign(context.begin(), context.end());
  prompt.options.progress = progress;
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("snapkv-eval-{}.kv", ::getpid());
  prefill.take_prefix()->save(path, stored_kv_type(model->info()));
  auto stored = KvPrefix::load(model, path);
  std::filesystem::remove(path);  // it stays mapped
  return stored;
}

}  // namespace

void prefill_stored(const std::shared_ptr<const Model>& model, std::span<Session* const> sessions,
                    std::span<const int32_t> tokens, int64_t n_context,
                    const ProgressFn& progress) {
  const auto stored =
      store(model, sessions[0]->options(), tokens.first(static_cast<size_t>(n_context)), progress);
  for (Session* session : sessions) {
    const int64_t window = std::max(1, session->options().kv.window_size);
    const int64_t n = std::min(n_context, std::ssize(tokens) - window);
    session->prefill(tokens, {.prefix = stored, .n_from_prefix = n});
  }
}

}  // namespace snapkv::eval
