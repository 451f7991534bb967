// SPDX-License-Identifier: MIT
// OptionTable: the one row that each option of the engine has: its name, its range, its line of
// help, and the member of a struct that it sets. options.h is made from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/options.h"

namespace snapkv {

struct OptionRow {
  OptionInfo info;
  std::function<void(EngineOptions& options, std::string_view text)> set;
  std::function<std::string(const EngineOptions& options)> get;
};

/// Every option but the parameters of policies, in the order in which they are listed.
const std::vector<OptionRow>& option_table();

}  // namespace snapkv
