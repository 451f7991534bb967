// SPDX-License-Identifier: MIT
// Documents that commands read (documents/document_reader.h), from files and from pipes.
#pragma once

#include <string>

namespace snapkv::cli {

/// The text of a document, "-" for stdin. A signal (signals.h) stops the reading. Throws as
/// documents::read_document().
std::string read_document(const std::string& path);

/// Whether stdin is a pipe or a file, not a terminal or a device.
bool stdin_is_piped();

/// What is piped into stdin, which may be nothing; says on stderr that it waits when nothing comes.
std::string read_piped_document();

}  // namespace snapkv::cli
