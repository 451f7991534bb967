// SPDX-License-Identifier: MIT
#include "documents/document_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "documents/archive_documents.h"
#include "documents/document_kind.h"
#include "documents/encoding.h"
#include "documents/html.h"
#include "documents/pdf.h"

namespace snapkv::documents {
namespace {

void refuse_other(std::string_view bytes, const std::string& name) {
  const FoundKind found = find_kind(bytes, name);
  if (found.kind != Kind::other) return;
  fail(ErrorCode::kUsage, "{}: {}, not a document snapkv can read", name, found.what);
}

std::string read_file(int fd, const std::string& name, const ReadLimits& limits) {
  std::string bytes;
  struct stat file = {};
  if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) {
    fail(ErrorCode::kRuntime, "can't read {}: a folder, not a document", name);
  }
  std::string block(65536, '\0');  // not on the stack, which may be small
  while (bytes.size() <= limits.most_bytes) {
    if (limits.keep_going && !limits.keep_going()) {
      fail(ErrorCode::kCancelled, "cancelled while reading {}", name);
    }
    const ssize_t n = read(fd, block.data(), block.size());
    if (n == 0) return bytes;
    if (n > 0) {
      const bool is_first = bytes.empty();
      bytes.append(block.data(), static_cast<size_t>(n));
      if (is_first) refuse_other(bytes, name);  // before all of a large model is read
    } else if (errno != EINTR) {
      fail(ErrorCode::kRuntime, "can't read {}: {}", name, std::strerror(errno));
    }
  }
  fail(ErrorCode::kUsage, "{}: larger than {} bytes, the most that a document may have", name,
       limits.most_bytes);
}

/// Where the pages of a plain text begin; empty if it has no form feed.
std::vector<size_t> pages_of(std::string_view text) {
  std::vector<size_t> pages;
  for (size_t at = text.find('\f'); at != std::string_view::npos; at = text.find('\f', at + 1)) {
    if (pages.empty()) pages.push_back(0);
    if (at + 1 < text.size()) pages.push_back(at + 1);
  }
  return pages;
}

}  // namespace

std::string read_document(const std::string& path, const ReadLimits& limits) {
  return read_paged_document(path, limits).text;
}

PagedText read_paged_document(const std::string& path, const ReadLimits& limits) {
  const bool from_stdin = path == "-";
  const std::string name = from_stdin ? "standard input" : path;
  const int fd = from_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && limits.keep_going && !limits.keep_going()) {
    fail(ErrorCode::kCancelled, "cancelled while opening {}", name);
  }
  if (fd < 0) fail(ErrorCode::kRuntime, "can't read {}: {}", name, std::strerror(errno));
  std::string bytes;
  try {
    bytes = read_file(fd, name, limits);
  } catch (...) {
    if (!from_stdin) close(fd);
    throw;
  }
  if (!from_stdin) close(fd);
  return paged_document_text(std::move(bytes), name, limits);
}

std::string document_text(std::string bytes, const std::string& name, const ReadLimits& limits) {
  return paged_document_text(std::move(bytes), name, limits).text;
}

PagedText paged_document_text(std::string bytes, const std::string& name,
                              const ReadLimits& limits) {
  switch (find_kind(bytes, name).kind) {
    case Kind::pdf:
      return pdf_text(bytes, name, limits);
    case Kind::zip:
      return {archive_text(bytes, name, limits)};
    case Kind::html:
      return {html_text(std::move(bytes), name, limits)};
    case Kind::other:
      refuse_other(bytes, name);
      break;
    case Kind::text:
      break;
  }
  PagedText document = {to_utf8(std::move(bytes), "", name, limits)};
  document.pages = pages_of(document.text);
  return document;
}

}  // namespace snapkv::documents
