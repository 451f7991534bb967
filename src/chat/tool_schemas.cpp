// SPDX-License-Identifier: MIT
#include "chat/tool_schemas.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {
namespace {

// Schemas are parsed again for every parameter that refers to shared definitions, so both totals
// are limited. The second is also the limit for grammars of requests.
constexpr size_t kMostRead = size_t{8} << 20, kMostMade = size_t{4} << 20;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

}  // namespace

// Literals, sets of characters and numbers of repetitions stay.
std::string with_rules_named(const std::string& gbnf, const std::string& name) {
  constexpr std::string_view kOpening = "\"[{", kClosing = "\"]}";
  std::string text;
  size_t end = 0;
  for (size_t i = 0; i < gbnf.size(); i = end) {
    end = i + 1;
    if (const size_t kind = kOpening.find(gbnf[i]); kind != std::string_view::npos) {
      while (end < gbnf.size() && gbnf[end] != kClosing[kind]) end += gbnf[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, gbnf.size());
      text += gbnf.substr(i, end - i);
    } else if (gbnf[i] == '#') {  // a comment, whose words are none of the grammar's
      while (end < gbnf.size() && gbnf[end] != '\n') ++end;
    } else if (is_name(gbnf[i])) {
      while (end < gbnf.size() && is_name(gbnf[end])) ++end;
      const std::string rule = gbnf.substr(i, end - i);
      text += rule == "root" ? name : name + "-" + rule;
    } else {
      text += gbnf[i];
    }
  }
  return text;
}

std::string relaxation_warning(const std::string& label, const SchemaRelaxation& relaxation) {
  constexpr size_t kMostNamed = 8, kMostBytes = 400;
  std::string text;
  for (size_t i = 0; i < relaxation.left_out.size(); ++i) {
    if (i == kMostNamed || text.size() > kMostBytes) {
      text += ", ...";
      break;
    }
    text += (i > 0 ? ", " : "") + relaxation.left_out[i];
  }
  return text.empty() ? "" : label + ": not part of the grammar: " + text;
}

std::string ToolSchemas::rules(const Json& schema, const std::string& label,
                               const std::string& name) {
  const std::string text = to_text(schema);
  n_read_ += text.size();
  if (n_read_ > kMostRead) {
    fail(ErrorCode::kUsage,
         "{}: too large: the schemas of all tools, those that parameters refer to counted for each "
         "of them, have more than {} MiB",
         label, kMostRead >> 20);
  }
  std::string made = with_rules_named(json_schema_to_gbnf(text, label, &relaxation_), name) + "\n";
  count_made(made.size(), label);
  return made;
}

void ToolSchemas::count_made(size_t n_bytes, const std::string& label) {
  n_made_ += n_bytes;
  if (n_made_ > kMostMade) {
    fail(ErrorCode::kUsage, "{}too large: the rules of all tools have more than {} MiB",
         label.empty() ? "" : label + ": ", kMostMade >> 20);
  }
}

std::string ToolSchemas::take_warning(const std::string& label) {
  std::string text = relaxation_warning(label, relaxation_);
  relaxation_.left_out.clear();
  return text;
}

}  // namespace snapkv::chat
