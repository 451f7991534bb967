// SPDX-License-Identifier: MIT
#include "cli/common/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {

namespace {

/// Before each read of standard input: says once that it waits, so that a pipe which stays open is
/// no riddle. Returns false when a signal ended the waiting.
class StdinPatience {
 public:
  explicit StdinPatience(bool may_be_left_out) : may_be_left_out_(may_be_left_out) {}

  bool wait() {
    const bool has_waited =
        !said_ && !wait_for_input(STDIN_FILENO, is_begun_ ? kPauseMs : kFirstMs);
    if (has_waited && !interrupted()) {
      write_stderr(note());
      said_ = true;
    }
    is_begun_ = true;
    return wait_for_input(STDIN_FILENO);
  }

 private:
  static constexpr int kFirstMs = 2000;
  static constexpr int kPauseMs = 10'000;  // within a text; whoever writes it may be computing

  std::string note() const {
    if (is_begun_) return "snapkv: waiting for the end of standard input\n";
    if (isatty(STDIN_FILENO) != 0) {
      return "snapkv: waiting for text on standard input; Ctrl-D in an empty line ends it\n";
    }
    return std::string("snapkv: waiting for text on standard input, which is open") +
           (may_be_left_out_ ? "; < /dev/null goes on without\n" : "\n");
  }

  bool may_be_left_out_, is_begun_ = false, said_ = false;
};

documents::PagedText read_stdin_document(bool may_be_left_out) {
  StdinPatience patience(may_be_left_out);
  documents::ReadLimits limits;
  limits.keep_going = [&] { return patience.wait(); };
  return documents::read_paged_document("-", limits);
}

bool has_text(const documents::PagedText& document) {
  return document.text.find_first_not_of(" \t\r\n\f") != std::string::npos;
}

namespace fs = std::filesystem;

struct FolderFiles {
  std::vector<std::string> paths;  // sorted
  int64_t n_hidden = 0;            // files and folders
};

FolderFiles files_of_folder(const std::string& folder) {
  constexpr size_t kMostFiles = 1000;
  FolderFiles files;
  std::error_code error;
  fs::recursive_directory_iterator each(folder, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    if (each->path().filename().string().starts_with('.')) {
      ++files.n_hidden;
      each.disable_recursion_pending();
      continue;
    }
    std::error_code unknown;
    if (!each->is_regular_file(unknown)) continue;
    files.paths.push_back(each->path().lexically_normal().string());
    if (files.paths.size() > kMostFiles) {
      fail(ErrorCode::kUsage, "{} has more than {} files: name a folder in it, or files", folder,
           kMostFiles);
    }
  }
  if (error) fail(ErrorCode::kRuntime, "can't read the folder {}: {}", folder, error.message());
  std::sort(files.paths.begin(), files.paths.end());
  return files;
}

FileId file_id(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return {};  // reading it will say why
  return {static_cast<uint64_t>(file.st_dev), static_cast<uint64_t>(file.st_ino)};
}

/// "1 read already, 2 hidden, 3 without text (a.png, b.bin, ...)"; empty where all was read.
std::string left_out(int64_t n_known, int64_t n_hidden, const std::vector<std::string>& others) {
  constexpr size_t kMostNames = 3;
  std::vector<std::string> parts;
  if (n_known > 0) parts.push_back(fmt::format("{} read already", n_known));
  if (n_hidden > 0) parts.push_back(fmt::format("{} hidden", n_hidden));
  if (!others.empty()) {
    const auto last =
        others.begin() + static_cast<std::ptrdiff_t>(std::min(others.size(), kMostNames));
    parts.push_back(fmt::format("{} without text ({}{})", others.size(),
                                fmt::join(others.begin(), last, ", "),
                                others.size() > kMostNames ? ", ..." : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<NamedDocument> read_folder(const std::string& folder, std::set<FileId> known) {
  const FolderFiles files = files_of_folder(folder);
  std::vector<NamedDocument> found;
  std::vector<std::string> others;
  int64_t n_known = 0;
  documents::ReadLimits limits;
  limits.keep_going = [] { return !interrupted(); };
  for (const std::string& path : files.paths) {
    const FileId file = file_id(path);
    if (!known.insert(file).second) {
      ++n_known;
      continue;
    }
    documents::PagedText document;
    try {
      document = documents::read_paged_document(path, limits);
    } catch (const Error& e) {  // kUsage: it is no document
      if (e.code() != ErrorCode::kUsage) throw;
    }
    if (has_text(document)) {
      found.push_back({path, std::move(document), file});
    } else {
      others.push_back(fs::path(path).filename().string());
    }
  }
  const std::string rest = left_out(n_known, files.n_hidden, others);
  if (found.empty() && n_known == 0) {
    fail(ErrorCode::kUsage, "{}: a folder without documents{}", folder,
         rest.empty() ? "" : "; left out: " + rest);
  }
  write_stderr(fmt::format("snapkv: {}: {}{}\n", printable(folder),
                           plural(std::ssize(found), "document"),
                           rest.empty() ? "" : "; left out: " + printable(rest)));
  return found;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<NamedDocument> read_documents(const std::string& path, std::set<FileId> known) {
  if (is_folder(path)) return read_folder(path, std::move(known));
  const FileId file = file_id(path);
  std::vector<NamedDocument> found;
  if (known.count(file) == 0) {
    found.push_back({path, read_paged_document(path), file});
  } else {
    write_stderr(fmt::format("snapkv: {} is read already\n", printable(path)));
  }
  return found;
}

std::vector<NamedDocument> read_documents(const std::vector<std::string>& paths) {
  std::vector<NamedDocument> all;
  std::set<FileId> known;
  for (const std::string& path : paths) {
    for (NamedDocument& document : read_documents(path, known)) {
      known.insert(document.file);
      all.push_back(std::move(document));
    }
  }
  return all;
}

std::string document_opening(std::string_view name) {
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  return "<document title=" + nlohmann::json(name).dump(-1, ' ', false, kReplace) + ">\n";
}

std::string read_document(const std::string& path) { return read_paged_document(path).text; }

documents::PagedText read_paged_document(const std::string& path) {
  const bool is_stdin = path == "-";
  documents::ReadLimits limits;
  limits.keep_going = [] { return !interrupted(); };
  documents::PagedText document = is_stdin ? read_stdin_document(/*may_be_left_out=*/false)
                                           : documents::read_paged_document(path, limits);
  if (has_text(document)) return document;
  fail(ErrorCode::kUsage, "{} is empty: there is no text in it",
       is_stdin ? "standard input" : path);
}

bool stdin_is_piped() {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0) return false;
  return S_ISFIFO(input.st_mode) || S_ISREG(input.st_mode) || S_ISSOCK(input.st_mode);
}

documents::PagedText read_piped_document() { return read_stdin_document(/*may_be_left_out=*/true); }

bool stdin_has_text() {
  struct stat input = {};
  if (!stdin_is_piped() || fstat(STDIN_FILENO, &input) != 0) return false;
  if (S_ISREG(input.st_mode)) return lseek(STDIN_FILENO, 0, SEEK_CUR) < input.st_size;
  pollfd waiting = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLIN) != 0;
}

}  // namespace snapkv::cli
