// SPDX-License-Identifier: MIT
// Questions about Python and C++ code: defaults of parameters, values of constants, exceptions that
// functions raise, base classes.
#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "eval/common/metrics.h"
#include "eval/make_qa/kinds.h"

namespace snapkv::eval {
namespace {

constexpr size_t kLongestLine = 300;  // std::regex recurses over its input

struct CodeLine {
  std::string text;
  size_t begin = 0;  // byte in the source
};

// A possible question, with the name that it is about.
struct NamedValue {
  std::string name;
  MadeQuestion question;
};

std::vector<CodeLine> lines_of(const std::string& text) {
  std::vector<CodeLine> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin <= kLongestLine) lines.push_back({text.substr(begin, end - begin), begin});
    begin = end + 1;
  }
  return lines;
}

// Adds the questions about names that are defined once. `all` must also have definitions without an
// answer.
void add_unique(const std::vector<NamedValue>& all, std::vector<MadeQuestion>& questions) {
  std::map<std::string, int> n_of_name;
  for (const NamedValue& value : all) ++n_of_name[value.name];
  for (const NamedValue& value : all) {
    if (n_of_name.at(value.name) > 1 || value.question.answers.empty()) continue;
    questions.push_back(value.question);
  }
}

// A question for the text at [at, at + size), without surrounding white space, and its prefix.
MadeQuestion ask_for(const std::string& text, size_t at, size_t size, const std::string& question,
                     const std::string& prefix) {
  while (size > 0 && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at, --size;
  while (size > 0 && std::isspace(static_cast<unsigned char>(text[at + size - 1])) != 0) --size;
  return {at, question, prefix, {text.substr(at, size)}};
}

// Where the parameter at `at` ends: at the next comma outside nested brackets, or where the
// brackets around it close.
size_t end_of_parameter(const std::string& text, size_t at) {
  constexpr size_t kMost = 200;
  int depth = 0;
  char quote = 0;
  for (size_t i = at; i < std::min(text.size(), at + kMost); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (depth > 0 && (c == ')' || c == ']' || c == '}')) {
      --depth;
    } else if (depth == 0 && (c == ',' || c == ')')) {
      return i;
    }
  }
  return std::string::npos;
}

// Adds the defaults, as in "b=3" and "b: int = 3", of the parameters of function `name`, which
// begin at `at`.
void add_defaults(const std::string& text, size_t at, const std::string& name,
                  std::vector<NamedValue>& found) {
  static const std::regex kParameter(R"(^\s*([A-Za-z_]\w*)\s*(?::[^=]*)?=\s*)");
  for (size_t end = at; (end = end_of_parameter(text, at)) != std::string::npos; at = end + 1) {
    const std::string parameter = text.substr(at, end - at);
    std::smatch match;
    if (std::regex_search(parameter, match, kParameter)) {
      const std::string of = match[1].str() + " in " + name;
      const auto value = static_cast<size_t>(match.length(0));
      found.push_back(
          {of, ask_for(text, at + value, parameter.size() - value,
                       "What is the default of " + of + "?", "The default of " + of + " is")});
    }
    if (text[end] == ')') return;
  }
}

// Finds defaults of parameters. A function that is defined twice is left out: it has its parameters
// twice, or may have different ones.
void find_defaults(const std::string& text, const std::vector<CodeLine>& lines,
                   std::vector<MadeQuestion>& questions) {
  static const std::regex kFunction(R"(^\s*(?:async )?def ([A-Za-z_]\w*)\()");
  std::map<std::string, std::vector<size_t>> functions;  // where its parameters begin, by name
  for (const CodeLine& line : lines) {
    std::smatch match;
    if (!std::regex_search(line.text, match, kFunction)) continue;
    functions[match[1]].push_back(line.begin + static_cast<size_t>(match.length(0)));
  }
  std::vector<NamedValue> found;
  for (const auto& [name, places] : functions) {
    if (places.size() == 1) add_defaults(text, places.front(), name, found);
  }
  add_unique(found, questions);
}

void find_constants(const std::string& text, const std::vector<CodeLine>& lines,
                    std::vector<MadeQuestion>& questions) {
  constexpr size_t kLongestValue = 60;
  static const std::regex kConstants[] = {
      std::regex(R"(^([A-Z][A-Z0-9_]{2,})(?:\s*:[^=]*)?\s*=\s*([^=\s].*)$)"),
      std::regex(R"(^#\s*define\s+([A-Za-z_]\w*)\s+(\S.*)$)"),
      std::regex(R"(^\s*(?:static |const |constexpr |inline )+[\w:]+ ([A-Za-z_]\w*)\s*=)"
                 R"(\s*(\S[^;]*);)"),
  };
  std::vector<NamedValue> found;
  for (const CodeLine& line : lines) {
    for (const std::regex& constant : kConstants) {
      std::smatch match;
      if (!std::regex_search(line.text, match, constant)) continue;
      const std::string name = match[1];
      const std::string value = match[2];
      // The value must be neither an expression nor continued on the next line.
      const bool is_string = value[0] == '"' || value[0] == '\'';
      const bool is_whole =
          value.size() <= kLongestValue &&
          value.find_first_of(is_string ? "\\#" : " ([{\\#/+*<>?") == std::string::npos;
      NamedValue& added = found.emplace_back();
      added.name = name;
      if (!is_whole) break;
      added.question =
          ask_for(text, line.begin + static_cast<size_t>(match.position(2)), value.size(),
                  "What is the value of " + name + "?", "The value of " + name + " is");
      break;
    }
  }
  add_unique(found, questions);
}

// Finds functions that raise one exception in one place; functions that share a name are left out.
void find_exceptions(const std::string& text, const std::vector<CodeLine>& lines,
                     std::vector<MadeQuestion>& questions) {
  static const std::regex kFunction(R"(^\s*(?:async )?def ([A-Za-z_]\w*)\()");
  static const std::regex kRaise(R"(^\s+raise ([A-Z]\w*)\b)");
  std::map<std::string, int> n_definitions;
  std::vector<NamedValue> found;
  std::string function;
  for (const CodeLine& line : lines) {
    std::smatch match;
    if (std::regex_search(line.text, match, kFunction)) {
      function = match[1];
      ++n_definitions[function];
    } else if (!function.empty() && std::regex_search(line.text, match, kRaise)) {
      found.push_back({function, ask_for(text, line.begin + static_cast<size_t>(match.position(1)),
                                         static_cast<size_t>(match.length(1)),
                                         "Which exception does " + function + " raise?",
                                         "The exception that " + function + " raises is")});
    }
  }
  std::erase_if(found, [&](const NamedValue& value) { return n_definitions.at(value.name) > 1; });
  add_unique(found, questions);
}

void find_bases(const std::string& text, const std::vector<CodeLine>& lines,
                std::vector<MadeQuestion>& questions) {
  static const std::regex kBases[] = {
      std::regex(R"(^\s*class ([A-Za-z_]\w*)\(([\w.]+)\):)"),
      std::regex(R"(^\s*(?:class|struct) ([A-Za-z_]\w*)(?: final)?\s*:\s*(?:public )?)"
                 R"(([\w:]+)\s*\{)"),
  };
  std::vector<NamedValue> found;
  for (const CodeLine& line : lines) {
    for (const std::regex& base : kBases) {
      std::smatch match;
      if (!std::regex_search(line.text, match, base)) continue;
      const std::string name = match[1];
      found.push_back({name, ask_for(text, line.begin + static_cast<size_t>(match.position(2)),
                                     static_cast<size_t>(match.length(2)),
                                     "What is the base class of " + name + "?",
                                     "The base class of " + name + " is")});
      break;
    }
  }
  add_unique(found, questions);
}

// The parameters of a function whose list of them ends on its line; empty otherwise.
std::string parameters_at(const std::string& text, size_t at) {
  const size_t line_end = std::min(text.find('\n', at), text.size());
  for (size_t i = at, end = at; (end = end_of_parameter(text, i)) < line_end; i = end + 1) {
    if (text[end] == ')') return text.substr(at, end - at);
  }
  return "";
}

}  // namespace

MadeContext make_signature(const SourceText& source, int64_t n, Random& random) {
  constexpr size_t kFewestWords = 3;
  // a model that is asked for the parameters leaves out the object itself
  static const std::regex kFunction(R"(^\s*(?:async )?def ([A-Za-z_]\w*)\(((?:self|cls),)?)");
  std::vector<NamedValue> found;
  for (const CodeLine& line : lines_of(source.text)) {
    std::smatch match;
    if (!std::regex_search(line.text, match, kFunction)) continue;
    const std::string name = match[1];
    const size_t at = line.begin + static_cast<size_t>(match.length(0));
    const std::string parameters = parameters_at(source.text, at);
    NamedValue& added = found.emplace_back();
    added.name = name;
    if (answer_words(parameters).size() < kFewestWords) continue;
    added.question = ask_for(source.text, at, parameters.size(),
                             "With which parameters is the function " + name + " defined?",
                             "def " + name + "(" + match[2].str());
  }
  std::vector<MadeQuestion> all;
  add_unique(found, all);
  const WordIndex index(source.text);
  return {"", choose_questions(source.text, index, std::move(all), n, random)};
}

MadeContext make_code(const SourceText& source, int64_t n, Random& random) {
  const std::vector<CodeLine> lines = lines_of(source.text);
  std::vector<MadeQuestion> all;
  for (const auto find : {find_defaults, find_constants, find_exceptions, find_bases}) {
    find(source.text, lines, all);
  }
  std::erase_if(all, [](const MadeQuestion& question) {
    return answer_words(question.answers.front()).empty();
  });
  const WordIndex index(source.text);
  return {"", choose_questions(source.text, index, std::move(all), n, random)};
}

}  // namespace snapkv::eval
