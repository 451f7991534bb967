// SPDX-License-Identifier: MIT
#include "text/jinja/filters.h"

#include <unordered_map>

namespace snapkv::jinja {

FilterCode find_filter(std::string_view name) {
  static const auto* filters = [] {
    auto* map = new std::unordered_map<std::string_view, FilterCode>();
    for (const auto& group :
         {text_filters(), number_filters(), sequence_filters(), selecting_filters()}) {
      for (const NamedFilter& filter : group) map->emplace(filter.name, filter.code);
    }
    return map;
  }();
  const auto at = filters->find(name);
  return at != filters->end() ? at->second : nullptr;
}

std::string unknown_filter(std::string_view name) {
  return fmt::format("the filter '{}' is not supported", name);
}

}  // namespace snapkv::jinja
