// SPDX-License-Identifier: MIT
// A GGUF file that is fetched from any server into snapkv's folder of models.
#pragma once

#include <memory>

#include "cli/pull/pull.h"

namespace snapkv::cli {

/// Asks the server for the sizes of the file, or of a split one's parts. Throws Error{kRuntime} for
/// servers that do not say them.
std::unique_ptr<Pull> plan_url_pull(const UrlSource& source, const PullSettings& settings);

}  // namespace snapkv::cli
