// SPDX-License-Identifier: MIT
#include "cli/generate/cite.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/common/plain_text.h"
#include "cli/common/prompt_settings.h"

namespace snapkv::cli {
namespace {

/// The text on one line.
std::string on_a_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return printable(line);
}

}  // namespace

void add_cite_option(CLI::App& app, bool& cites) {
  app.add_flag("--cite", cites,
               "After the answer, print the sentences of the document that it attended to most");
}

std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> prompt,
                                         std::span<const std::string_view> documents) {
  const std::vector<float> attention = session.answer_attention();
  std::vector<CitedPassage> passages;
  for (const SourcePassage& source : find_sources(session.model(), prompt, attention, documents)) {
    const std::string_view document = documents[source.document];
    passages.push_back(
        {source, std::string(document.substr(source.begin, source.end - source.begin))});
  }
  return passages;
}

std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> prompt,
                                         std::span<const CitableText> texts) {
  struct Place {
    size_t begin;  // in its text
    std::string name;
    const long_documents::PageMarks* pages;
  };
  std::vector<std::string_view> documents;
  std::vector<Place> places;
  for (const CitableText& each : texts) {
    long_documents::DocumentMarks marks = find_documents(each.text);
    if (marks.empty()) marks.push_back({0, each.text.size(), ""});
    for (const long_documents::DocumentMark& mark : marks) {
      documents.push_back(each.text.substr(mark.begin, mark.end - mark.begin));
      places.push_back({mark.begin, mark.name, &each.pages});
    }
  }
  std::vector<CitedPassage> passages = cited_passages(session, prompt, documents);
  for (CitedPassage& passage : passages) {
    const Place& place = places[passage.source.document];
    passage.page = long_documents::page_at(*place.pages, place.begin + passage.source.begin);
    passage.document = place.name;
  }
  return passages;
}

std::string sources_text(const std::vector<CitedPassage>& passages) {
  if (passages.empty()) return "Sources: none, the answer attends to no passage of the document\n";
  std::string text = "Sources, with the attention that the answer gives them:\n";
  for (const CitedPassage& passage : passages) {
    std::string place = passage.document;
    if (passage.page > 0)
      place += fmt::format("{}page {}", place.empty() ? "" : ", ", passage.page);
    if (!place.empty()) place += ": ";
    text += fmt::format("  {:.2f}  {}{}\n", passage.source.attention, printable(place),
                        on_a_line(passage.text));
  }
  return text;
}

nlohmann::ordered_json sources_json(const std::vector<CitedPassage>& passages) {
  auto json = nlohmann::ordered_json::array();
  for (const CitedPassage& passage : passages) {
    json.push_back({{"begin", passage.source.begin},
                    {"end", passage.source.end},
                    {"attention", passage.source.attention},
                    {"text", passage.text}});
    if (passage.page > 0) json.back()["page"] = passage.page;
    if (!passage.document.empty()) json.back()["document"] = passage.document;
  }
  return json;
}

}  // namespace snapkv::cli
