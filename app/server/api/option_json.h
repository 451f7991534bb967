// SPDX-License-Identifier: MIT
// Options of the engine as JSON, for clients that offer them.
#pragma once

#include "server/json.h"
#include "snapkv/option_table.h"

namespace snapkv::server {

Json value_json(const OptionValue& value);
/// {"name": "top_k", "type": "integer", "least": 0, "most": 100, "odd": false, "default": 40,
///  "help": "..."}; words have "words" instead of a range.
Json option_json(const OptionInfo& info);

}  // namespace snapkv::server
