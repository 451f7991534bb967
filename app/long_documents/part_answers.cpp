// SPDX-License-Identifier: MIT
#include "long_documents/part_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace snapkv::long_documents {

std::string part_question(std::string_view question, size_t i, size_t n, bool in_chat) {
  if (!in_chat) return std::string(question);
  return fmt::format(
      "This was part {} of {} of a long document. Answer the question below from this part alone, "
      "in one to three sentences, in its own words where you can. If this part does not say it, "
      "answer with the one word NONE.\n\nQuestion: {}",
      i + 1, n, question);
}

bool is_none(std::string_view answer) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  const auto first = std::find_if(answer.begin(), answer.end(), is_letter);
  if (first == answer.end()) {
    // no letters of English; those of other scripts are an answer
    return std::all_of(answer.begin(), answer.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }
  const auto last = std::find_if_not(first, answer.end(), is_letter);
  const std::string_view word(&*first, static_cast<size_t>(last - first));
  // "None of the options ..." is an answer, "None." and "NONE: this part ..." are none
  if (word == "NONE") return true;
  const bool is_alone = std::none_of(last, answer.end(), is_letter);
  return is_alone && (word == "None" || word == "none");
}

}  // namespace snapkv::long_documents
