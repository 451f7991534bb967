// SPDX-License-Identifier: MIT
// Porter's stemmer (M. F. Porter, An algorithm for suffix stripping, 1980), for ROUGE-1:
// "sandwiches" -> "sandwich".
#pragma once

#include <string>

namespace snapkv::eval {

/// The stem of a lower-case word. A word with other characters than a-z stays as it is.
std::string porter_stem(const std::string& word);

}  // namespace snapkv::eval
