// SPDX-License-Identifier: MIT
// Fetches models: from Hugging Face into its own cache, where its programs and llama.cpp find them
// too, and from other servers into snapkv's folder of models.
#pragma once

#include <memory>
#include <string>

#include "cli/common/settings.h"
#include "cli/pull/hub.h"

namespace snapkv::cli {

struct PullSettings {
  std::string source;
  int64_t n_retries = 5;
};

/// What will be fetched; it has asked the server, and changed nothing.
class Pull {
 public:
  /// Throws as parse_source(), list_hub_files() and choose_model() do.
  static std::unique_ptr<Pull> plan(const PullSettings& settings);
  virtual ~Pull() = default;

  /// "model-Q4_K_M.gguf"
  virtual std::string name() const = 0;
  /// The server: "huggingface.co".
  virtual std::string host() const = 0;
  /// The folder it goes to.
  virtual std::string folder() const = 0;
  virtual uint64_t bytes() const = 0;
  /// Bytes that are not on this machine yet; 0: the model is there.
  virtual uint64_t bytes_to_fetch() const = 0;
  /// Fetches it, unless it is there, and returns the path of the model: of a split one, of its
  /// first part. Throws as download() does, and before it begins if it does not fit on the disk.
  virtual std::string run(const CommonSettings& common) = 0;

 protected:
  Pull() = default;
};

/// plan() and run(), with a line on stderr of what is fetched from where.
std::string pull_model(const PullSettings& settings, const CommonSettings& common);

/// The path of the model that `snapkv run` names: find_model(), or for the name of a model on
/// Hugging Face that is not on this machine, at a terminal, the offer to fetch it.
std::string find_or_pull_model(const std::string& name, const CommonSettings& common);

}  // namespace snapkv::cli
