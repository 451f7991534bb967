// SPDX-License-Identifier: MIT
// Documents that commands read (documents/document_reader.h), from files and from pipes.
#pragma once

#include <string>

#include "documents/document_reader.h"

namespace snapkv::cli {

/// The text of a document, "-" for stdin; says on stderr that it waits where nothing comes. A
/// signal (signals.h) stops the reading. Throws kUsage naming a document without text, and as
/// documents::read_document().
std::string read_document(const std::string& path);
/// The same with its pages.
documents::PagedText read_paged_document(const std::string& path);

/// Whether stdin is a pipe or a file, not a terminal or a device.
bool stdin_is_piped();

/// What is piped into stdin, which may be nothing. Says on stderr that it waits, and how to go on
/// without, where the pipe stays open and nothing comes.
documents::PagedText read_piped_document();

/// Whether there is text in a pipe or file at stdin that nobody has read yet.
bool stdin_has_text();

}  // namespace snapkv::cli
