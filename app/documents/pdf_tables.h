// SPDX-License-Identifier: MIT
// Tables of PDFs. pdftotext's reading order tears them: each cell becomes a paragraph, and nobody
// can tell which cells are empty. Its -layout keeps their rows, but mixes the columns of papers.
// So a page with a table and without columns of text is taken from -layout.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snapkv::documents {

/// Whether a page in reading order has what is left of a table: short lines, each a paragraph.
bool may_have_table(std::string_view page);

/// The same page as -layout prints it, with tabs between the cells of its tables and one blank
/// elsewhere. Nothing where it has columns of text, or no table. `page` is valid UTF-8.
std::optional<std::string> page_with_tables(std::string_view page);

}  // namespace snapkv::documents
