// SPDX-License-Identifier: MIT
// Documents that commands read (documents/document_reader.h), from files and from pipes.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "documents/document_reader.h"

namespace snapkv::cli {

/// The text of a document, "-" for stdin; says on stderr that it waits where nothing comes. A
/// signal (signals.h) stops the reading. Throws kUsage naming a document without text, and as
/// documents::read_document().
std::string read_document(const std::string& path);
/// The same with its pages.
documents::PagedText read_paged_document(const std::string& path);

/// Tells whether two paths lead to one file: its device and its number there.
using FileId = std::pair<uint64_t, uint64_t>;

struct NamedDocument {
  std::string name;
  documents::PagedText paged;
  FileId file = {};
};

bool is_folder(const std::string& path);

/// The document at `path`; of a folder, the documents in it and in its folders, ordered by their
/// paths. Hidden files, those that are no documents, and files in `known`, which have been read,
/// are left out, which is said on stderr. Throws as read_paged_document(), and kUsage for a folder
/// without documents or with more than 1000 files.
std::vector<NamedDocument> read_documents(const std::string& path, std::set<FileId> known = {});
/// Those at several paths, each file once.
std::vector<NamedDocument> read_documents(const std::vector<std::string>& paths);

/// What stands before and after the text of each of several documents, as in the server's prompts.
std::string document_opening(std::string_view name);
inline constexpr std::string_view kDocumentClosing = "\n</document>";

/// Whether stdin is a pipe or a file, not a terminal or a device.
bool stdin_is_piped();

/// What is piped into stdin, which may be nothing. Says on stderr that it waits, and how to go on
/// without, where the pipe stays open and nothing comes.
documents::PagedText read_piped_document();

/// Whether there is text in a pipe or file at stdin that nobody has read yet.
bool stdin_has_text();

}  // namespace snapkv::cli
