// SPDX-License-Identifier: MIT
#include "eval/qa/data.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/json_field.h"
#include "eval/common/metrics.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {
namespace {

constexpr QaMetric kMetrics[] = {QaMetric::contains, QaMetric::exact, QaMetric::f1,
                                 QaMetric::rouge_l, QaMetric::begins};
constexpr std::string_view kBlanks = " \t\r\n";

// Field `name`; nullopt if the object does not have it or it is null.
std::optional<JsonField> optional_field(const JsonField& object, const char* name) {
  if (!object.json().is_object() || !object.json().contains(name)) return std::nullopt;
  JsonField field = object.at(name);
  if (field.is_null()) return std::nullopt;
  return field;
}

std::string text_or(const JsonField& object, const char* name, const std::string& otherwise) {
  const auto field = optional_field(object, name);
  return field ? field->text() : otherwise;
}

std::string filled_text(const JsonField& object, const char* name, const std::string& place) {
  const std::string& text = object.at(name).text();
  if (text.find_first_not_of(" \t\r\n") != std::string::npos) return text;
  fail(ErrorCode::kUsage, "{}: field {} is empty", place, name);
}

std::string read_text_file(const std::string& path, const std::string& place) {
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path, error)) {
    fail(ErrorCode::kRuntime, "{}: field text: {} can't be read: {}", place, path,
         in ? "it is a folder" : std::strerror(errno));
  }
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) fail(ErrorCode::kRuntime, "{}: {} can't be read", place, path);
  return text.str();
}

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether an answer can be found: it has words to compare (not only articles), or is a mark.
bool can_be_found(const std::string& answer) {
  if (!answer_words(answer).empty()) return true;
  return answer.find_first_not_of(" \t\r\n") != std::string::npos &&
         std::none_of(answer.begin(), answer.end(), is_word_character);
}

// Whether one of the answers begins at byte `at`, up to differences that answers may have.
bool stands_at(const std::string& text, size_t at, const std::vector<std::string>& answers) {
  if (at >= text.size()) return false;
  if (at > 0 && is_word_character(text[at - 1]) && is_word_character(text[at])) return false;
  return std::any_of(answers.begin(), answers.end(), [&](const std::string& answer) {
    const auto wanted = answer_words(answer);
    if (wanted.empty()) return text.compare(at, answer.size(), answer) == 0;  // "+"
    // Long enough for an answer that is written with other marks and spaces in the text.
    const auto found = answer_words(std::string_view(text).substr(at, 2 * answer.size() + 64));
    return wanted.size() <= found.size() && std::equal(wanted.begin(), wanted.end(), found.begin());
  });
}

class QaReader {
 public:
  QaReader(const std::string& path, const std::string& texts) : path_(path), texts_(texts) {}

  std::vector<QaQuestion> read(std::istream& in);

 private:
  // A context, and where its first byte is in the text in which `at` is counted.
  struct Place {
    std::shared_ptr<const QaContext> context;
    const std::string* text = nullptr;
    int64_t begin = 0, end = 0;
  };

  void read_line(const std::string& line, const std::string& place);
  Place context_of(const JsonField& line, const std::string& place);
  Place part_of_file(const JsonField& line, const std::string& place);
  const std::string& file(const std::string& name, const std::string& place);
  std::shared_ptr<const QaContext> share(const std::string& name, const std::string& text);
  QaQuestion question_of(const JsonField& object, const JsonField& line, const Place& context,
                         const std::string& place);
  QaGap gap_of(const JsonField& object, const Place& context, const std::string& place);

  std::string path_, texts_;
  std::map<std::string, std::string> files_;                       // by name
  std::map<uint64_t, std::shared_ptr<const QaContext>> contexts_;  // by fingerprint of the text
  std::map<std::string, std::string> places_;                      // places of questions, by id
  std::vector<std::shared_ptr<const QaContext>> order_;
  std::vector<QaQuestion> questions_;
};

std::vector<QaQuestion> QaReader::read(std::istream& in) {
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    read_line(line, fmt::format("{}:{}", path_, number));
  }
  if (in.bad()) fail(ErrorCode::kRuntime, "{}: can't be read", path_);
  if (questions_.empty()) fail(ErrorCode::kUsage, "{}: no questions in it", path_);
  const auto rank = [&](const QaQuestion& question) {
    return std::find(order_.begin(), order_.end(), question.context) - order_.begin();
  };
  std::stable_sort(questions_.begin(), questions_.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return std::move(questions_);
}

void QaReader::read_line(const std::string& text, const std::string& place) {
  const Json json = parse_json(text);
  if (json.is_discarded()) fail(ErrorCode::kUsage, "{}: no valid JSON", place);
  if (!json.is_object()) {
    fail(ErrorCode::kUsage, "{}: must be an object, it is of type {}", place, json.type_name());
  }
  const JsonField line(json, place);
  const Place context = context_of(line, place);
  const auto list = optional_field(line, "questions");
  if (!list) {
    questions_.push_back(question_of(line, line, context, place));
    return;
  }
  if (line.json().contains("question")) {
    fail(ErrorCode::kUsage, "{}: fields question and questions exclude each other", place);
  }
  if (list->size() == 0) fail(ErrorCode::kUsage, "{}: field questions is empty", place);
  for (int64_t i = 0; i < list->size(); ++i) {
    questions_.push_back(question_of(list->at(i), line, context, place));
  }
}

QaReader::Place QaReader::context_of(const JsonField& line, const std::string& place) {
  const bool is_inline = line.json().contains("context"), in_file = line.json().contains("text");
  if (is_inline == in_file) {
    fail(ErrorCode::kUsage,
         "{}: expected a field context with a text or a field text with a file's name, found {}",
         place, is_inline ? "both" : "neither");
  }
  if (in_file) return part_of_file(line, place);
  for (const char* field : {"begin", "end"}) {
    if (!line.json().contains(field)) continue;
    fail(ErrorCode::kUsage, "{}: field {} is for a file: it has no meaning with context", place,
         field);
  }
  Place out;
  out.context = share(place, filled_text(line, "context", place));
  out.text = &out.context->text;
  out.end = std::ssize(*out.text);
  return out;
}

QaReader::Place QaReader::part_of_file(const JsonField& line, const std::string& place) {
  const std::string name = filled_text(line, "text", place);
  const std::string& text = file(name, place);
  const auto begin = optional_field(line, "begin"), end = optional_field(line, "end");
  Place out;
  out.text = &text;
  out.begin = begin ? begin->integer(0, std::ssize(text)) : 0;
  out.end = end ? end->integer(out.begin, std::ssize(text)) : std::ssize(text);
  const std::string shown = text.substr(out.begin, out.end - out.begin);
  if (to_utf8(shown) != shown) {
    fail(ErrorCode::kUsage, "{}: bytes [{}, {}) of {} are not whole UTF-8 characters", place,
         out.begin, out.end, name);
  }
  if (shown.find_first_not_of(" \t\r\n") == std::string::npos) {
    fail(ErrorCode::kUsage, "{}: there is no text in bytes [{}, {}) of {}", place, out.begin,
         out.end, name);
  }
  out.context =
      share(begin || end ? fmt::format("{} [{}, {})", name, out.begin, out.end) : name, shown);
  return out;
}

const std::string& QaReader::file(const std::string& name, const std::string& place) {
  if (texts_.empty()) {
    fail(ErrorCode::kUsage, "{}: field text names {}: --texts must say in which folder", place,
         name);
  }
  const std::filesystem::path path(name);
  const bool leaves =
      std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  if (path.is_absolute() || leaves) {
    fail(ErrorCode::kUsage, "{}: field text is {}, expected a file below the folder of --texts",
         place, name);
  }
  const auto found = files_.find(name);
  if (found != files_.end()) return found->second;
  const std::string whole = (std::filesystem::path(texts_) / path).string();
  return files_.emplace(name, read_text_file(whole, place)).first->second;
}

std::shared_ptr<const QaContext> QaReader::share(const std::string& name, const std::string& text) {
  std::shared_ptr<const QaContext>& context = contexts_[hash64(text)];
  if (context == nullptr) {
    context = std::make_shared<const QaContext>(QaContext{name, text, hash64(text)});
    order_.push_back(context);
  }
  return context;
}

QaMetric metric_of(const JsonField& object, const std::string& place) {
  const std::string wanted = text_or(object, "metric", name(QaMetric::contains));
  std::vector<std::string> names;
  for (const QaMetric metric : kMetrics) {
    if (wanted == name(metric)) return metric;
    names.emplace_back(name(metric));
  }
  fail(ErrorCode::kUsage, "{}: field metric is {}, expected one of {}", place, wanted,
       fmt::join(names, ", "));
}

QaQuestion QaReader::question_of(const JsonField& object, const JsonField& line,
                                 const Place& context, const std::string& place) {
  QaQuestion q;
  q.id = filled_text(object, "id", place);
  q.place = place;
  const auto [before, is_new] = places_.emplace(q.id, place);
  if (!is_new) {
    fail(ErrorCode::kUsage, "{}: field id: {} is a question of {} too", place, q.id,
         before->second);
  }
  q.context = context.context;
  if (optional_field(object, "suffix")) {
    q.gap = gap_of(object, context, place);
  } else {
    q.question = filled_text(object, "question", place);
    q.lead = text_or(object, "prefix", "");
  }
  q.metric = metric_of(object, place);
  q.kind = text_or(object, "kind", text_or(line, "kind", "text"));
  q.half = text_or(object, "half", text_or(line, "half", ""));
  q.title = text_or(object, "title", text_or(line, "title", text_or(line, "text", "")));
  if (!q.half.empty() && q.half != "choose" && q.half != "report") {
    fail(ErrorCode::kUsage, "{}: field half is {}, expected choose or report", place, q.half);
  }
  const JsonField answers = object.at("answers");
  if (answers.size() == 0) fail(ErrorCode::kUsage, "{}: field answers is empty", place);
  for (int64_t i = 0; i < answers.size(); ++i) {
    q.answers.push_back(answers.at(i).text());
    if (can_be_found(q.answers.back())) continue;
    fail(ErrorCode::kUsage, "{}: answer '{}' of {} has no words to compare but articles", place,
         q.answers.back(), q.id);
  }
  const auto at = optional_field(object, "at");
  if (!at) return q;
  const int64_t offset = at->integer(context.begin, context.end);
  if (stands_at(context.text->substr(0, context.end), offset, q.answers)) return q;
  fail(ErrorCode::kUsage, "{}: field at: no answer of {} stands at byte {} of {}, there is '{}'",
       place, q.id, offset, context.context->name,
       to_utf8(context.text->substr(offset, std::min<int64_t>(40, context.end - offset))));
}

// The fields of a question with a suffix.
QaGap QaReader::gap_of(const JsonField& object, const Place& context, const std::string& place) {
  for (const char* field : {"question", "prefix"}) {
    if (!optional_field(object, field)) continue;
    fail(ErrorCode::kUsage, "{}: fields {} and suffix exclude each other", place, field);
  }
  QaGap gap;
  gap.suffix = filled_text(object, "suffix", place);
  const std::string& text = context.context->text;
  if (const auto rest = optional_field(object, "rest")) {
    gap.rest = static_cast<size_t>(rest->integer(context.begin, context.end) - context.begin);
    if (gap.rest > 0 && text[gap.rest - 1] != '\n') {
      fail(ErrorCode::kUsage, "{}: field rest: byte {} of {} is not the beginning of a line", place,
           rest->integer(), context.context->name);
    }
  }
  if (!optional_field(object, "name")) return gap;
  gap.name = filled_text(object, "name", place);
  const int64_t defined = object.at("defined").integer(context.begin, context.end);
  gap.defined = static_cast<size_t>(defined - context.begin);
  if (text.compare(gap.defined, gap.name.size(), gap.name) == 0) return gap;
  fail(ErrorCode::kUsage, "{}: field defined: {} does not stand at byte {} of {}, there is '{}'",
       place, gap.name, defined, context.context->name, to_utf8(text.substr(gap.defined, 40)));
}

// 1 if the answer begins with the reference and a name or number that ends the reference ends there
// too; white space before them does not matter. Otherwise 0.
double begins_with(std::string_view answer, std::string_view reference) {
  const auto trim = [](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  };
  trim(answer);
  trim(reference);
  reference = reference.substr(0, reference.find_last_not_of(kBlanks) + 1);
  if (reference.empty() || !answer.starts_with(reference)) return 0;
  const auto in_name = [](char c) { return is_word_character(c) || c == '_'; };
  const std::string_view rest = answer.substr(reference.size());
  return rest.empty() || !in_name(rest[0]) || !in_name(reference.back()) ? 1 : 0;
}

}  // namespace

const char* name(QaMetric metric) {
  switch (metric) {
    case QaMetric::contains:
      return "contains";
    case QaMetric::exact:
      return "exact";
    case QaMetric::f1:
      return "f1";
    case QaMetric::rouge_l:
      return "rouge-l";
    case QaMetric::begins:
      return "begins";
  }
  return "";
}

std::vector<QaQuestion> read_qa(const std::string& path, const std::string& texts,
                                const std::string& half) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  return parse_qa(in, path, texts, half);
}

std::vector<QaQuestion> parse_qa(std::istream& content, const std::string& path,
                                 const std::string& texts, const std::string& half) {
  std::vector<QaQuestion> questions = QaReader(path, texts).read(content);
  std::erase_if(questions, [&](const QaQuestion& q) { return !half.empty() && q.half != half; });
  if (questions.empty()) fail(ErrorCode::kUsage, "{}: no question has half {}", path, half);
  return questions;
}

std::vector<QaQuestion> first_of_each_kind(std::vector<QaQuestion> questions, int64_t n) {
  std::map<std::string, int64_t> n_of_kind;
  std::erase_if(questions, [&](const QaQuestion& q) { return ++n_of_kind[q.kind] > n; });
  return questions;
}

double qa_score(QaMetric metric, const std::vector<std::string>& answers,
                const std::string& answer) {
  double best = 0;
  for (const std::string& reference : answers) {
    const auto compare = metric == QaMetric::contains  ? contains_words
                         : metric == QaMetric::exact   ? same_words
                         : metric == QaMetric::f1      ? qa_f1
                         : metric == QaMetric::rouge_l ? rouge_l
                                                       : begins_with;
    best = std::max(best, compare(answer, reference));
  }
  return best;
}

}  // namespace snapkv::eval
