// SPDX-License-Identifier: MIT
#include "eval/common/stored_context.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "snapkv/prefill.h"

namespace snapkv::eval {
namespace {

/// A folder of this run's own, which nobody else can have put a link into; it goes with this.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) fail(ErrorCode::kRuntime, "no folder for temporary files: {}", error.message());
    path_ = (parent / "snapkv-eval-XXXXXX").string();
    if (::mkdtemp(path_.data()) != nullptr) return;
    fail(ErrorCode::kRuntime, "{}: no folder can be made: {}", path_, std::strerror(errno));
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

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
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/context.kv";
  prefill.take_prefix()->save(path, stored_kv_type(model->info()));
  return KvPrefix::load(model, path);  // stays mapped when the file goes
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
    // all of it fits into the window, whose queries are computed anyway
    if (n < 1) {
      session->prefill(tokens, {});
    } else {
      session->prefill(tokens, {.prefix = stored, .n_from_prefix = n});
    }
  }
}

}  // namespace snapkv::eval
