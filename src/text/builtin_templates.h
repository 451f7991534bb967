// SPDX-License-Identifier: MIT
// The built-in chat templates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

/// The template's Jinja source; nullopt if there is no template of this name.
std::optional<std::string_view> find_builtin_template(std::string_view name);
/// In alphabetical order.
std::vector<std::string> builtin_template_names();

}  // namespace snapkv
