// SPDX-License-Identifier: MIT
// OpenAI's custom tools, whose input is a text. To the model they are functions with one string
// parameter, `input`.
#pragma once

#include <string>

#include "server/api/fields.h"

namespace snapkv::server {

/// The function that the model sees for a custom tool. `grammar`: the object with the `syntax` and
/// `definition` of the tool's format, which becomes a part of the description.
Json custom_function(const Fields& tool, const Fields& grammar);

/// A call of a custom tool as one of a function, and the text that the arguments of such a call
/// hold: as they are, where they are not an object with `input`.
Json custom_arguments(const std::string& input);
std::string custom_input(const std::string& arguments);

}  // namespace snapkv::server
