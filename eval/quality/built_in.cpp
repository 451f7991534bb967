// SPDX-License-Identifier: MIT
// The questions of eval/texts/questions.jsonl, which are embedded in the program.
#include <filesystem>
#include <sstream>
#include <string>

#include "base/error.h"
#include "eval/common/json_field.h"
#include "eval/quality/quality.h"

namespace snapkv::eval {

extern const char* const kTextQuestions;  // generated from texts/questions.jsonl

std::vector<QaQuestion> built_in_questions(const std::string& texts, const std::string& half) {
  const std::string name = "built-in questions";
  std::istringstream lines(kTextQuestions);
  std::string line;
  while (std::getline(lines, line)) {
    const auto json = parse_json(line);
    const std::string path =
        (std::filesystem::path(texts) / JsonField(json, name).at("text").text()).string();
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) continue;
    fail(
        ErrorCode::kUsage,
        "{} is missing: `make texts` in the sources of snapkv fetches the texts that the questions "
        "are about, into texts/; --texts names another folder, --data questions of your own",
        path);
  }
  std::istringstream content(kTextQuestions);
  return parse_qa(content, name, texts, half);
}

}  // namespace snapkv::eval
