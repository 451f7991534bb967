// SPDX-License-Identifier: MIT
// Python's string operations on Text. They keep track of what came from the conversation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/text.h"

namespace snapkv::jinja {

TextPtr upper(Budget& budget, const Text& text);
TextPtr lower(Budget& budget, const Text& text);
TextPtr casefold(Budget& budget, const Text& text);
TextPtr swapcase(Budget& budget, const Text& text);
/// The first character in title case, the others in lower case.
TextPtr capitalize(Budget& budget, const Text& text);
/// str.title(): words are runs of letters that have a case.
TextPtr title(Budget& budget, const Text& text);
/// Jinja's `title`: words begin after white space and - ( { [ <.
TextPtr title_words(Budget& budget, const Text& text);

/// str.isupper(), str.islower(): there are letters with a case, and all of them have this case.
bool is_in_case(const Text& text, bool upper_case);

enum class Side { left = 1, right = 2, both = 3 };
/// Removes the characters of `chars` from the ends; nullptr: removes white space.
TextPtr strip(Budget& budget, const Text& text, const Text* chars, Side side);

/// Replaces the first `count` occurrences; negative: all of them.
TextPtr replace(Budget& budget, const Text& text, const Text& from, const Text& to, int64_t count);

/// The pieces between separators; nullptr: between runs of white space. Splits at most `max_split`
/// times, negative: no limit; starts from the right if `from_right`.
std::vector<TextPtr> split(Budget& budget, const Text& text, const Text* separator,
                           int64_t max_split, bool from_right);
std::vector<TextPtr> split_lines(Budget& budget, const Text& text, bool keep_ends);

/// Pads to `width` characters. `left`, `right`: the sides at which padding may be added.
TextPtr pad(Budget& budget, const Text& text, int64_t width, std::string_view fill, bool left,
            bool right);

}  // namespace snapkv::jinja
