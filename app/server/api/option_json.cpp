// SPDX-License-Identifier: MIT
#include "server/api/option_json.h"

#include <nlohmann/json.hpp>

namespace snapkv::server {

Json value_json(const OptionValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json option_json(const OptionInfo& info) {
  Json row = {{"name", info.name}, {"type", name(info.type)}};
  if (info.type == OptionInfo::Type::word) row["words"] = info.words;
  if (info.type == OptionInfo::Type::integer || info.type == OptionInfo::Type::real) {
    row["least"] = info.least;
    row["most"] = info.most;
    row["odd"] = info.odd;
  }
  row["default"] = value_json(info.default_value);
  row["help"] = info.help;
  return row;
}

}  // namespace snapkv::server
