// SPDX-License-Identifier: MIT
#include "eval/make_qa/make_qa.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  std::ostringstream content;
  if (in.peek() != std::istream::traits_type::eof()) content << in.rdbuf();
  if (in.bad() || content.bad()) fail(ErrorCode::kRuntime, "{}: can't be read", path);
  return content.str();
}

bool is_text(const std::string& content) {
  return content.find_first_not_of(" \t\r\n") != std::string::npos &&
         content.find('\0') == std::string::npos && to_utf8(content) == content;
}

bool is_code_name(const std::string& name) {
  constexpr std::string_view kEndings[] = {".py", ".c",  ".h",  ".cc", ".cpp", ".cxx", ".hpp",
                                           ".js", ".ts", ".go", ".rs", ".cu",  ".java"};
  const std::string ending = std::filesystem::path(name).extension().string();
  return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

// The first line, if it is a name that fits "the area of Malta" and occurs in the text again.
std::string title_of(const std::string& text) {
  constexpr size_t kLongest = 40;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const std::string line = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  const bool is_name = line.size() <= kLongest && std::count(line.begin(), line.end(), ' ') < 4 &&
                       line.find_first_of(".:;!?=()[]{}<>/\"#*_0123456789") == std::string::npos &&
                       std::isupper(static_cast<unsigned char>(line[0])) != 0;
  const bool is_named = is_name && text.find(line, begin + line.size()) != std::string::npos;
  return is_named ? line : "";
}

std::vector<MadeKind> chosen_kinds(const MakeQaOptions& options) {
  std::vector<MadeKind> kinds;
  for (const MadeKind& kind : made_kinds()) {
    const auto& wanted = options.kinds;
    const bool is_named = std::find(wanted.begin(), wanted.end(), kind.name) != wanted.end();
    if (is_named || (wanted.empty() && !kind.by_name_only)) kinds.push_back(kind);
  }
  return kinds;
}

// The lines of the file for one text and kind: a context with its questions, or, as a context ends
// where a gap begins, one for each question with a gap.
class QaLine {
 public:
  QaLine(const SourceText& source, const TextPart& part, uint64_t seed)
      : source_(source), part_(part), seed_(seed) {}

  Json json(const char* kind, const MadeContext& made) const {
    Json line = Json::object();
    const bool is_changed = !made.changed.empty();
    if (is_changed) {
      line["context"] = made.changed;
      line["source_begin"] = part_.begin;
      line["source_end"] = part_.end;
    } else {
      line["text"] = source_.name;
      line["begin"] = part_.begin;
      line["end"] = part_.end;
    }
    line["source"] = source_.name;
    line["kind"] = kind;
    line["seed"] = seed_;
    const size_t begin = is_changed ? 0 : part_.begin;
    const size_t size = is_changed ? made.changed.size() : source_.text.size();
    line["questions"] = Json::array();
    for (const MadeQuestion& question : made.questions) {
      const double depth = static_cast<double>(question.at) / static_cast<double>(size);
      line["questions"].push_back(
          {{"id", fmt::format("{}:{}-{}", source_.name, kind, line["questions"].size() + 1)},
           {"question", question.question},
           {"answers", question.answers},
           {"prefix", question.prefix},
           {"at", begin + question.at},
           {"depth", std::round(depth * 1000) / 1000}});
    }
    return line;
  }

  Json json(const char* kind, const MadeQuestion& question, size_t number) const {
    const MadeGap& gap = question.gap;
    return {{"id", fmt::format("{}:{}-{}", source_.name, kind, number)},
            {"text", source_.name},
            {"begin", part_.begin},
            {"end", part_.begin + question.at},
            {"suffix", gap.suffix},
            {"answers", question.answers},
            {"metric", "begins"},
            {"name", gap.name},
            {"defined", part_.begin + gap.defined},
            {"rest", part_.begin + gap.rest},
            {"source", source_.name},
            {"kind", kind},
            {"seed", seed_}};
  }

  std::string lines(const char* kind, const MadeContext& made) const {
    if (made.questions.front().gap.suffix.empty()) return to_line(json(kind, made)) + "\n";
    std::string lines;
    size_t number = 0;
    for (const MadeQuestion& question : made.questions) {
      lines += to_line(json(kind, question, ++number)) + "\n";
    }
    return lines;
  }

 private:
  const SourceText& source_;
  TextPart part_;
  uint64_t seed_;
};

}  // namespace

MadeQa make_qa(const MakeQaFiles& texts, const MakeQaOptions& options) {
  const std::vector<MadeKind> kinds = chosen_kinds(options);
  MadeQa made;
  for (const MadeKind& kind : kinds) made.counts.push_back({kind.name});
  for (const MakeQaFile& file : texts.files) {
    const std::string content = read_file(file.path);
    if (!is_text(content)) {
      made.skipped.push_back(file.name);
      continue;
    }
    // Every text and kind has its own random numbers, so that others do not change them.
    const auto random_of = [&](const std::string& what) {
      return Random(options.seed * 0x9E3779B97F4A7C15ULL ^ hash64(file.name + '\n' + what));
    };
    SourceText source{file.name, "", title_of(content), is_code_name(file.name)};
    Random of_part = random_of("part");
    const TextPart part = cut_text(content, source.is_code, options, of_part);
    source.text = content.substr(part.begin, part.end - part.begin);
    made.n_cut += source.text.size() < content.size() ? 1 : 0;
    const QaLine line(source, part, options.seed);
    for (size_t i = 0; i < kinds.size(); ++i) {
      Random random = random_of(kinds[i].name);
      const MadeContext context = kinds[i].make(source, options.per_text, random);
      if (context.questions.empty()) continue;
      made.lines += line.lines(kinds[i].name, context);
      made.counts[i].n_questions += std::ssize(context.questions);
      ++made.counts[i].n_texts;
    }
  }
  if (made.lines.empty()) {
    fail(ErrorCode::kUsage, "{}: {} files, {} of them no UTF-8 text: nothing to ask for in any",
         texts.folder, texts.files.size(), made.skipped.size());
  }
  return made;
}

std::string make_qa_table(const MadeQa& made) {
  std::string table = "| kind | questions | texts |\n|---|---|---|\n";
  int64_t n_questions = 0;
  for (const MadeQa::KindCount& count : made.counts) {
    table += fmt::format("| {} | {} | {} |\n", count.kind, count.n_questions, count.n_texts);
    n_questions += count.n_questions;
  }
  return table + fmt::format("\n{} questions. Texts that were cut: {}.\n", n_questions, made.n_cut);
}

}  // namespace snapkv::eval
