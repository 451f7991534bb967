// SPDX-License-Identifier: MIT
// Porter's stemmer (M. F. Porter, An algorithm for suffix stripping, 1980), for ROUGE-1:
// "sandwiches"
// -> "sandwich". Used by metrics.cpp.
#pragma once

#include <string>

namespace snapkv::eval {

/// Stem of a lower-case word; what is not plain a-z stays as it is.
std::string porter_stem(const std::string& word);

}  // namespace snapkv::eval
