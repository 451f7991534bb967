// SPDX-License-Identifier: MIT
// The text of documents: PDF, EPUB, Word (.docx), HTML, and plain text in UTF-8, UTF-16 or Latin-1.
// Anything else is refused by its name. Damaged and hostile files end in an error.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::documents {

struct ReadLimits {
  /// Of the file, and of what an archive in it expands to.
  size_t most_bytes = size_t{1} << 30;
  /// Of a document other than plain text; the Bible has 4 MiB.
  size_t most_text_bytes = size_t{256} << 20;
  /// What pdftotext may take: seconds of the processor, and bytes of memory.
  int pdf_seconds = 120;
  size_t pdf_memory = size_t{2} << 30;
  /// Asked now and then; false ends the reading with Error{kCancelled}.
  std::function<bool()> keep_going = {};
};

struct PagedText {
  std::string text;
  /// Where each page begins in it, in bytes: those of a PDF, or of a text with form feeds. Empty
  /// where there are no pages.
  std::vector<size_t> pages = {};
};

/// The text of the document at `path` ("-": standard input), as UTF-8. Throws Error{kRuntime} where
/// the file or its reader fails, kUsage for what is not a document, is damaged or exceeds a limit;
/// both name the file.
std::string read_document(const std::string& path, const ReadLimits& limits = {});
/// The same with its pages.
PagedText read_paged_document(const std::string& path, const ReadLimits& limits = {});

/// The same for a document's bytes. `name` is what messages call it, and its ending tells HTML that
/// does not begin like it.
std::string document_text(std::string bytes, const std::string& name,
                          const ReadLimits& limits = {});
/// The same with its pages.
PagedText paged_document_text(std::string bytes, const std::string& name,
                              const ReadLimits& limits = {});

}  // namespace snapkv::documents
