// SPDX-License-Identifier: MIT
#include "documents/pdf.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/timer.h"
#include "base/utf8.h"
#include "documents/pdf_tables.h"

extern "C" char** environ;

namespace snapkv::documents {
namespace {

/// An open file; closed at the end.
class Descriptor {
 public:
  Descriptor(int fd, const std::string& name) : fd_(fd) {
    if (fd < 0) fail(ErrorCode::kRuntime, "{}: can't read the PDF: {}", name, std::strerror(errno));
  }
  ~Descriptor() { close_now(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }
  void close_now() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

/// The PDF as a file without a name, since its reader jumps to and fro in it.
void fill(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kRuntime, "{}: can't copy the PDF: {}", name, std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

/// pdftotext with `input` as its standard input, and `output` as its standard output.
class PdfToText {
 public:
  PdfToText(int input, int output, bool keeps_layout, const std::string& name,
            const ReadLimits& limits) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<std::string> words = {"pdftotext", "-q", "-enc", "UTF-8", "-eol", "unix"};
    if (keeps_layout) words.emplace_back("-layout");
    words.insert(words.end(), {"/dev/stdin", "-"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error =
        posix_spawnp(&pid_, "pdftotext", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT) {
      fail(ErrorCode::kRuntime,
           "{}: a PDF, and pdftotext, which reads them, is not installed (package poppler-utils)",
           name);
    }
    if (error != 0) {
      fail(ErrorCode::kRuntime, "{}: can't start pdftotext: {}", name, std::strerror(error));
    }
    const auto seconds = static_cast<rlim_t>(limits.pdf_seconds);
    const rlimit time = {seconds, seconds};
    const rlimit memory = {limits.pdf_memory, limits.pdf_memory};
    limit(RLIMIT_CPU, time, name);
    limit(RLIMIT_AS, memory, name);
  }
  ~PdfToText() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait_for_end();
  }
  PdfToText(const PdfToText&) = delete;
  PdfToText& operator=(const PdfToText&) = delete;

  /// How it ended, as waitpid() says it.
  int wait_for_end() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  /// Ends the process if it can't be limited. One that has ended by itself needs no limit.
  void limit(__rlimit_resource resource, const rlimit& most, const std::string& name) {
    if (prlimit(pid_, resource, &most, nullptr) == 0 || errno == ESRCH) return;
    const int error = errno;
    kill(pid_, SIGKILL);
    wait_for_end();
    fail(ErrorCode::kRuntime, "{}: the time and memory of pdftotext can't be limited: {}", name,
         std::strerror(error));
  }

  pid_t pid_ = -1;
};

std::string read_output(int fd, const std::string& name, const ReadLimits& limits) {
  constexpr int kAskInterval = 100;  // milliseconds
  const Timer timer;
  std::string text;
  std::string block(65536, '\0');  // not on the stack, which may be small
  while (true) {
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    poll(&ready, 1, kAskInterval);
    if (limits.keep_going && !limits.keep_going()) {
      fail(ErrorCode::kCancelled, "cancelled while reading {}", name);
    }
    if (timer.seconds() > 2.0 * limits.pdf_seconds) {
      fail(ErrorCode::kUsage, "{}: a PDF that takes longer than {} seconds to read", name,
           2 * limits.pdf_seconds);
    }
    if (ready.revents == 0) continue;
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), static_cast<size_t>(n));
    if (text.size() > limits.most_text_bytes) {
      fail(ErrorCode::kUsage, "{}: more than {} bytes of text", name, limits.most_text_bytes);
    }
  }
}

void check_end(int status, std::string_view bytes, const std::string& name,
               const ReadLimits& limits) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)) {
    fail(ErrorCode::kUsage, "{}: a PDF that takes longer than {} seconds to read", name,
         limits.pdf_seconds);
  }
  const bool is_locked = bytes.find("/Encrypt") != std::string_view::npos;
  fail(ErrorCode::kUsage, "{}: {}", name,
       is_locked ? "a PDF that needs a password, or forbids that its text is copied"
                 : "a damaged PDF, which pdftotext can't read");
}

/// Where a row of dots ends that begins at `at`, as between a title and its page in a table of
/// contents; `at` where fewer than four are there.
size_t leader_end(std::string_view text, size_t at) {
  constexpr int kFewest = 4;
  size_t end = at;
  int n_dots = 0;
  for (size_t i = at; i < text.size() && (text[i] == '.' || text[i] == ' '); ++i) {
    if (text[i] != '.') continue;
    ++n_dots;
    end = i + 1;
  }
  return n_dots >= kFewest ? end : at;
}

/// The bytes at `at` of a mark that readers don't see: a soft hyphen, with the line break after it,
/// or a direction, which pdftotext adds around text that runs from right to left. 0: there is none.
size_t invisible_length(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("\xc2\xad")) return rest.substr(2).starts_with('\n') ? 3 : 2;
  const bool is_mark = rest.size() >= 3 && rest.starts_with("\xe2\x80") &&
                       static_cast<unsigned char>(rest[2]) >= 0xaa &&
                       static_cast<unsigned char>(rest[2]) <= 0xae;
  return is_mark ? 3 : 0;
}

/// Form feeds end pages; page numbers and the like stay where they are. Rows of dots become "...":
/// each dot would be a token.
PagedText tidied(std::string_view text) {
  PagedText document;
  std::string& result = document.text;
  document.pages = {0};
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const size_t end = c == '.' ? leader_end(text, i) : i;
    if (const size_t n = invisible_length(text, i); n > 0) {
      i += n - 1;
    } else if (end > i) {
      result += "...";
      i = end - 1;
    } else if (c != '\f') {
      result += c;
    } else {
      if (!result.ends_with("\n\n")) result += result.ends_with('\n') ? "\n" : "\n\n";
      document.pages.push_back(result.size());
    }
  }
  if (text.ends_with('\f')) document.pages.pop_back();  // no page follows the last one's end
  while (result.ends_with("\n\n")) result.pop_back();
  for (size_t& page : document.pages) page = std::min(page, result.size());
  return document;
}

/// What pdftotext prints of the PDF in `file`, whose bytes these are.
std::string run_pdftotext(int file, std::string_view bytes, bool keeps_layout,
                          const std::string& name, const ReadLimits& limits) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    fail(ErrorCode::kRuntime, "{}: can't read the PDF: {}", name, std::strerror(errno));
  }
  const Descriptor output(ends[0], name);
  Descriptor input(ends[1], name);
  lseek(file, 0, SEEK_SET);
  PdfToText process(file, input.fd(), keeps_layout, name, limits);
  input.close_now();  // its end is the process's
  std::string text = read_output(output.fd(), name, limits);
  check_end(process.wait_for_end(), bytes, name, limits);
  if (!utf8::is_valid(text))
    fail(ErrorCode::kUsage, "{}: pdftotext's text is not valid UTF-8", name);
  return text;
}

/// The pages, each without the form feed at its end.
std::vector<std::string_view> split_pages(std::string_view text) {
  std::vector<std::string_view> pages;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\f', at), text.size());
    pages.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return pages;
}

/// The text in reading order, but that of pages with tables from `laid_out`.
std::string join_pages(std::string_view text, std::string_view laid_out, const std::string& name) {
  const std::vector<std::string_view> pages = split_pages(text), others = split_pages(laid_out);
  if (pages.size() != others.size()) {
    fail(ErrorCode::kRuntime, "{}: pdftotext finds {} pages in the PDF, and {} with -layout", name,
         pages.size(), others.size());
  }
  std::string joined;
  for (size_t i = 0; i < pages.size(); ++i) {
    std::optional<std::string> with_tables;
    if (may_have_table(pages[i])) with_tables = page_with_tables(others[i]);
    joined += with_tables ? *with_tables : pages[i];
    joined += '\f';
  }
  return joined;
}

}  // namespace

PagedText pdf_text(std::string_view bytes, const std::string& name, const ReadLimits& limits) {
  const Descriptor file(memfd_create("snapkv-pdf", MFD_CLOEXEC), name);
  fill(file.fd(), bytes, name);
  std::string text = run_pdftotext(file.fd(), bytes, /*keeps_layout=*/false, name, limits);
  if (text.find_first_not_of(" \t\r\n\f") == std::string::npos) {
    const auto n_pages = std::count(text.begin(), text.end(), '\f');
    fail(ErrorCode::kUsage,
         "{}: a PDF of {} page{} without text, a scanned one perhaps; ocrmypdf adds the text", name,
         n_pages, n_pages == 1 ? "" : "s");
  }
  const std::vector<std::string_view> pages = split_pages(text);
  if (std::any_of(pages.begin(), pages.end(), may_have_table)) {
    text = join_pages(text, run_pdftotext(file.fd(), bytes, /*keeps_layout=*/true, name, limits),
                      name);
  }
  return tidied(text);
}

}  // namespace snapkv::documents
