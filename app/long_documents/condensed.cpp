// SPDX-License-Identifier: MIT
#include "long_documents/condensed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace snapkv::long_documents {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBlanks = " \t\r\n\f\v";

/// The same part without the white space around it.
TextPart trimmed(std::string_view text, TextPart part) {
  while (part.begin < part.end && kBlanks.find(text[part.begin]) != std::string_view::npos) {
    ++part.begin;
  }
  while (part.begin < part.end && kBlanks.find(text[part.end - 1]) != std::string_view::npos) {
    --part.end;
  }
  return part;
}

/// What a document has of a part that has bytes of it.
TextPart clipped(const LongDocument& document, TextPart part, const DocumentMark& mark) {
  part.begin = std::max(part.begin, mark.begin);
  part.end = std::min(part.end, mark.end);
  if (part.begin == part.end) return part;
  part.first_page = page_at(document.pages, part.begin);
  part.last_page = page_at(document.pages, part.end - 1);
  return part;
}

/// Passages that follow one another become one.
std::vector<TextPart> without_seams(const std::vector<TextPart>& parts) {
  std::vector<TextPart> result;
  for (const TextPart& part : parts) {
    if (!result.empty() && result.back().end == part.begin) {
      result.back().end = part.end;
      result.back().last_page = part.last_page;
      result.back().n_tokens += part.n_tokens;
    } else {
      result.push_back(part);
    }
  }
  return result;
}

std::string page_place(const std::string& name, const std::string& page) {
  return page.empty() ? name : name + ", " + page;
}

/// "handbook.md, page 3": the document, where there are several, and its pages, where it has them;
/// "a.md to b.pdf, page 2" for a part of several documents.
std::string place_of(const LongDocument& document, const TextPart& part) {
  if (document.documents.empty()) return page_text(part.first_page, part.last_page);
  const auto among = documents_in(document.documents, part.begin, part.end);
  if (among.empty()) return document_at(document.documents, part.begin)->name;
  const TextPart first = clipped(document, part, among.front());
  const TextPart last = clipped(document, part, among.back());
  const std::string& name = among.front().name;
  if (among.size() == 1) return page_place(name, page_text(first.first_page, first.last_page));
  return page_place(name, page_text(first.first_page, first.first_page)) + " to " +
         page_place(among.back().name, page_text(last.last_page, last.last_page));
}

void add_excerpts(const LongDocument& document, const std::vector<TextPart>& parts,
                  Condensed& condensed) {
  const bool is_one = parts.size() == 1 && parts.front().begin == 0;
  for (const TextPart& each : without_seams(parts)) {
    const TextPart part = trimmed(document.text, each);
    if (part.begin == part.end) continue;
    if (!condensed.text.empty()) condensed.text += "\n\n";
    const std::string place = place_of(document, part);
    // its beginning needs no mark; after a gap there must be one
    if (!is_one) condensed.text += fmt::format("[{}]\n", place.empty() ? "..." : place);
    condensed.excerpts.push_back({condensed.text.size(), part.begin, part.end - part.begin,
                                  part.first_page, part.last_page});
    condensed.text += document.text.substr(part.begin, part.end - part.begin);
  }
}

/// The attention that each passage gets from the answers, the most of its sources.
std::vector<double> attention_of(const std::vector<TextPart>& passages,
                                 const std::vector<PartAnswer>& answers) {
  std::vector<double> attention(passages.size(), 0.0);
  for (const PartAnswer& answer : answers) {
    if (answer.text.empty()) continue;
    for (const PartSource& source : answer.sources) {
      for (size_t i = 0; i < passages.size(); ++i) {
        if (source.begin >= passages[i].end || source.end <= passages[i].begin) continue;
        attention[i] = std::max<double>(attention[i], source.attention);
      }
    }
  }
  return attention;
}

/// The bytes and pages of a part, or of its piece in one of several documents, whose bytes they
/// are then.
Json range_json(const TextPart& part, const DocumentMark* mark) {
  Json json;
  if (mark != nullptr) json["document"] = mark->name;
  const size_t begin = mark == nullptr ? 0 : mark->begin;
  json["begin"] = part.begin - begin;
  json["end"] = part.end - begin;
  if (part.first_page > 0) json["pages"] = {part.first_page, part.last_page};
  return json;
}

/// A range for each document that the part has bytes of.
std::vector<Json> ranges_json(const LongDocument& document, const TextPart& part) {
  if (document.documents.empty()) return {range_json(part, nullptr)};
  std::vector<Json> ranges;
  for (const DocumentMark& mark : documents_in(document.documents, part.begin, part.end)) {
    ranges.push_back(range_json(clipped(document, part, mark), &mark));
  }
  return ranges;
}

TextPart source_part(const LongDocument& document, const PartSource& source) {
  TextPart part = {.begin = source.begin, .end = source.end};
  part.first_page = page_at(document.pages, source.begin);
  part.last_page = page_at(document.pages, std::max(source.end, source.begin + 1) - 1);
  return part;
}

Json part_json(const LongDocument& document, const TextPart& part) {
  std::vector<Json> ranges = ranges_json(document, part);
  Json json = document.documents.empty() ? std::move(ranges.front())
                                         : Json{{"documents", std::move(ranges)}};
  json["tokens"] = part.n_tokens;
  return json;
}

/// The bytes of the document, or of all documents.
size_t document_bytes(const LongDocument& document) {
  if (document.documents.empty()) return document.text.size();
  size_t n = 0;
  for (const DocumentMark& mark : document.documents) n += mark.end - mark.begin;
  return n;
}

}  // namespace

Condensed condense(const LongDocument& document, const LongPlan& plan) {
  Condensed condensed;
  add_excerpts(document, plan.parts, condensed);
  return condensed;
}

Condensed condense(const LongDocument& document, const LongPlan& plan,
                   const std::vector<PartAnswer>& answers, bool in_chat, int64_t most_tokens,
                   const CountTokens& count) {
  std::string said;
  std::vector<QuotedAnswer> quoted;
  for (size_t i = 0; in_chat && i < answers.size(); ++i) {
    if (answers[i].text.empty()) continue;
    const TextPart& part = plan.parts[answers[i].part];
    std::string place = place_of(document, part);
    if (place.empty()) place = fmt::format("part {}", answers[i].part + 1);
    said += fmt::format("\n\nAnswer from {}{}: ", place,
                        document.documents.empty() ? " of the document" : "");
    quoted.push_back({said.size(), answers[i].text.size(), i});
    said += answers[i].text;
  }
  const int64_t n_said = said.empty() ? 0 : count(said);
  if (n_said > most_tokens) {
    fail(ErrorCode::kContextExceeded,
         "the document is too long even in parts: the answers of its {} parts have {} tokens "
         "together, and there is room for {}",
         plan.parts.size(), n_said, most_tokens);
  }
  Condensed condensed;
  std::vector<TextPart> chosen;
  for (const size_t i :
       best_passages(plan.passages, attention_of(plan.passages, answers), most_tokens - n_said)) {
    chosen.push_back(plan.passages[i]);
  }
  add_excerpts(document, chosen, condensed);
  for (QuotedAnswer& each : quoted) each.begin += condensed.text.size();
  condensed.text += said;
  condensed.quoted = std::move(quoted);
  return condensed;
}

Condensed condense_to_fit(const LongDocument& document, const LongPlan& plan,
                          const std::vector<PartAnswer>& answers, bool in_chat, int64_t most_tokens,
                          const CountTokens& count,
                          const std::function<int64_t(const Condensed&)>& excess) {
  while (true) {  // until it fits, or there is no room for the answers
    Condensed condensed = condense(document, plan, answers, in_chat, most_tokens, count);
    const int64_t n = excess(condensed);
    if (n <= 0 || condensed.text.empty()) return condensed;
    most_tokens = less_room(most_tokens, n);
  }
}

Json long_json(const LongDocument& document, const LongPlan& plan,
               const std::vector<PartAnswer>& answers, const Condensed& condensed) {
  Json json = {{"way", name(plan.way)},
               {"document_bytes", document_bytes(document)},
               {"document_tokens", plan.n_document},
               {"read_tokens", plan.n_read}};
  if (!plan.words.empty()) json["words"] = plan.words;
  if (plan.way == Way::parts) {
    json["parts"] = Json::array();
    for (const TextPart& part : plan.parts) json["parts"].push_back(part_json(document, part));
    for (const PartAnswer& answer : answers) {
      Json& part = json["parts"][answer.part];
      part["answer"] = answer.text.empty() ? Json() : Json(answer.text);
      part["seconds"] = answer.seconds;
      part["sources"] = Json::array();
      for (const PartSource& source : answer.sources) {
        for (Json& range : ranges_json(document, source_part(document, source))) {
          range["attention"] = source.attention;
          part["sources"].push_back(std::move(range));
        }
      }
    }
  }
  json["passages"] = Json::array();
  for (const Excerpt& excerpt : condensed.excerpts) {
    const TextPart passage = {.begin = excerpt.document_begin,
                              .end = excerpt.document_begin + excerpt.n_bytes,
                              .first_page = excerpt.first_page,
                              .last_page = excerpt.last_page};
    for (Json& range : ranges_json(document, passage)) json["passages"].push_back(std::move(range));
  }
  return json;
}

}  // namespace snapkv::long_documents
