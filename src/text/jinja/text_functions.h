// SPDX-License-Identifier: MIT
// Python's string operations on Text, which keep track of what came from the conversation. Shared
// by string methods and filters.
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
/// The first character as a title, the rest lower case.
TextPtr capitalize(Budget& budget, const Text& text);
/// str.title(): words are runs of letters with a case.
TextPtr title(Budget& budget, const Text& text);
/// Jinja's `title`: words begin after white space and - ( { [ <.
TextPtr title_words(Budget& budget, const Text& text);

/// str.isupper(), str.islower(): some letters with a case, and all of this one.
bool is_in_case(const Text& text, bool upper_case);

enum class Side { left = 1, right = 2, both = 3 };
/// Without the characters of `chars` at its ends; nullptr: without white space.
TextPtr strip(Budget& budget, const Text& text, const Text* chars, Side side);

/// The first `count` occurrences replaced; negative: all.
TextPtr replace(Budget& budget, const Text& text, const Text& from, const Text& to, int64_t count);

/// Pieces between separators; nullptr: between runs of white space. At most `max_split` splits,
/// negative: all; from the right where `from_right`.
std::vector<TextPtr> split(Budget& budget, const Text& text, const Text* separator,
                           int64_t max_split, bool from_right);
std::vector<TextPtr> split_lines(Budget& budget, const Text& text, bool keep_ends);

/// Padded to `width` characters. `left`, `right`: where padding may go.
TextPtr pad(Budget& budget, const Text& text, int64_t width, std::string_view fill, bool left,
            bool right);

}  // namespace snapkv::jinja
