// SPDX-License-Identifier: MIT
// --cite: the passages of a document that an answer was taken from (snapkv/sources.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/cli_types.h"
#include "long_documents/pages.h"
#include "snapkv/engine.h"
#include "snapkv/sources.h"

namespace snapkv::cli {

struct CitedPassage {
  SourcePassage source;
  std::string text;
  int page = 0;               ///< on which it begins; 0: there are no pages
  std::string document = {};  ///< the name of its document, where there are several
};

void add_cite_option(CLI::App& app, bool& cites);

/// The sources of the answer that `session` has written since trace_answer(), in documents that
/// stand among the prompt's tokens.
std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> prompt,
                                         std::span<const std::string_view> documents);

/// A document, or several as join_documents() writes them, and its pages.
struct CitableText {
  std::string_view text;
  long_documents::PageMarks pages;
};
/// The same with pages, and the names of documents that stand together in one text. Bytes are those
/// of the document.
std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> prompt,
                                         std::span<const CitableText> texts);

/// For people, to follow the answer.
std::string sources_text(const std::vector<CitedPassage>& passages);
/// [{"begin", "end", "attention", "text"}], with "page" where there are pages and "document" where
/// there are several; bytes of the document.
nlohmann::ordered_json sources_json(const std::vector<CitedPassage>& passages);

}  // namespace snapkv::cli
