// SPDX-License-Identifier: MIT
// A model that is fetched from Hugging Face into its programs' cache.
#pragma once

#include <memory>

#include "cli/pull/pull.h"

namespace snapkv::cli {

/// Asks the hub what the repository has. Throws as list_hub_files() and choose_model() do.
std::unique_ptr<Pull> plan_hub_pull(const HubSource& source, const PullSettings& settings);

}  // namespace snapkv::cli
