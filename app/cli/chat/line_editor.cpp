// SPDX-License-Identifier: MIT
#include "cli/chat/line_editor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/chat/shell_completion.h"
#include "cli/common/chat_settings.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

constexpr int kHistoryLines = 1000;
// A terminal asked for bracketed paste puts these marks around pasted text, so that newlines in it
// do not end the message.
constexpr const char* kAskForPasteMarks = "\x1b[?2004h";
constexpr const char* kNoPasteMarks = "\x1b[?2004l";
constexpr std::string_view kPasteEnd = "\x1b[201~";
// poll() misses a signal that arrives just before it; this is how often that is checked for.
constexpr int kSignalCheckMs = 500;
// Ctrl-^, which is hardly ever typed: LineEditor itself "presses" it to insert the initial text.
constexpr wchar_t kInsertKey = 0x1e;

std::atomic<bool> g_resized = false;  // set in the thread that receives the signal
std::atomic<bool> g_continued = false;
void on_window_change(int) { g_resized = true; }
void on_continue(int) { g_continued = true; }

void catch_signal(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;  // without SA_RESTART, so that poll() returns
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

/// libedit measures characters by the locale, and without one it knows only ASCII. Only LC_CTYPE is
/// set: numbers keep the C locale's form.
void use_utf8_locale() {
  const bool is_known = std::setlocale(LC_CTYPE, "") != nullptr;
  if (is_known && std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return;
  std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// Rows from the line's first one to the place of `end`, in a terminal of `width` columns: as
/// libedit writes it, and as terminals wrap it anew when their width changes.
int rows_before(std::wstring_view line, size_t end, int prompt_columns, int width) {
  int row = 0, column = prompt_columns;
  for (const wchar_t c : line.substr(0, end)) {
    if (c == L'\n') {
      ++row;
      column = 0;
      continue;
    }
    const int size = c == L'\t' ? 8 - column % 8 : std::max(wcwidth(c), 0);
    if (column + size > width) {  // wide characters are not cut in two
      ++row;
      column = 0;
    }
    column += size;
    if (column < width) continue;
    ++row;
    column = 0;
  }
  return row;
}

std::wstring line_text(EditLine* edit) {
  const LineInfoW* line = el_wline(edit);
  return {line->buffer, line->lastchar};
}

size_t cursor_of(EditLine* edit) {
  const LineInfoW* line = el_wline(edit);
  return static_cast<size_t>(line->cursor - line->buffer);
}

/// What all of them begin with, in whole characters.
std::string common_beginning(const std::vector<std::string>& texts) {
  std::string common = texts.front();
  for (const std::string& text : texts) {
    const size_t n = std::min(common.size(), text.size());
    common.resize(static_cast<size_t>(
        std::mismatch(common.begin(), common.begin() + static_cast<std::ptrdiff_t>(n), text.begin())
            .first -
        common.begin()));
  }
  while (!utf8::is_valid(common)) common.pop_back();
  return common;
}

/// Opens a file for rewriting, readable by its owner alone because it holds what people wrote. On
/// failure returns -1 with errno set and leaves the file's content as it was.
int open_private(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  struct stat info = {};
  bool is_ready = fstat(fd, &info) == 0;
  if (is_ready && S_ISREG(info.st_mode)) {
    const bool is_private = (info.st_mode & 077) == 0 || fchmod(fd, info.st_mode & 0700) == 0;
    is_ready = is_private && ftruncate(fd, 0) == 0;
  }
  if (is_ready) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

class LineEditor final : public LineReader {
 public:
  explicit LineEditor(std::string history_path);
  ~LineEditor() override;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Line read(const std::string& prompt, const std::string& initial) override;
  void set_completer(std::function<Completion(const std::string&)> completer) override {
    completer_ = std::move(completer);
  }
  void remember(const std::string& line) override;
  bool is_terminal() const override { return true; }

 private:
  static LineEditor& of(EditLine* edit);
  static char* show_prompt(EditLine* edit);
  static int read_character(EditLine* edit, wchar_t* character);
  static unsigned char insert_paste(EditLine* edit, wint_t);
  static unsigned char insert_initial(EditLine* edit, wint_t);
  static unsigned char complete(EditLine* edit, wint_t);
  /// Writes the choices below the line, and the line again below them.
  void list(const std::vector<std::string>& choices);
  /// Draws the line for the terminal's new width.
  void redraw_resized();
  /// Returns the terminal's next byte; -1 at its end or, with errno EINTR, when interrupted().
  int read_byte();
  /// Reads the UTF-8 character that begins with `first`. Returns 1, or -1 as read_byte().
  int read_rest(unsigned char first, wchar_t* character);
  void save_history() const;

  std::string history_path_;
  std::string prompt_;
  std::string initial_;
  bool insert_next_ = false;  // `initial_` is still to be inserted
  int pushed_back_ = -1;      // a byte that was read too early; -1: none
  std::function<Completion(const std::string&)> completer_;
  FILE* screen_;  // stdout, or stderr if only that is a terminal
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

LineEditor::LineEditor(std::string history_path)
    : history_path_(std::move(history_path)), screen_(stdout_is_terminal() ? stdout : stderr) {
  use_utf8_locale();
  edit_ = el_init("snapkv", stdin, screen_, stderr);
  history_ = history_init();
  if (edit_ == nullptr || history_ == nullptr) {
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_end(history_);
    fail(ErrorCode::kRuntime, "the terminal can't be used to type lines: {}", std::strerror(errno));
  }
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_SIGNAL, 0);  // signals.h handles signals
  el_set(edit_, EL_PROMPT, &LineEditor::show_prompt);
  el_set(edit_, EL_GETCFN, &LineEditor::read_character);
  el_wset(edit_, EL_ADDFN, L"snapkv-paste", L"Insert pasted text", &LineEditor::insert_paste);
  el_wset(edit_, EL_ADDFN, L"snapkv-initial", L"Insert a text", &LineEditor::insert_initial);
  el_wset(edit_, EL_ADDFN, L"snapkv-complete", L"Complete", &LineEditor::complete);
  el_set(edit_, EL_BIND, "^I", "snapkv-complete", NULL);
  el_set(edit_, EL_BIND, "\\033[200~", "snapkv-paste", NULL);
  el_set(edit_, EL_BIND, "^^", "snapkv-initial", NULL);
  el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(edit_, EL_BIND, "\\033[3~", "ed-delete-next-char", NULL);
  el_set(edit_, EL_BIND, "\\033[1;5C", "em-next-word", NULL);
  el_set(edit_, EL_BIND, "\\033[1;5D", "ed-prev-word", NULL);
  HistEvent event;
  history(history_, &event, H_SETSIZE, kHistoryLines);
  history(history_, &event, H_SETUNIQUE, 1);
  if (!history_path_.empty()) history(history_, &event, H_LOAD, history_path_.c_str());
  el_set(edit_, EL_HIST, history, history_);
  catch_signal(SIGWINCH, on_window_change);
  catch_signal(SIGCONT, on_continue);
}

LineEditor::~LineEditor() {
  save_history();
  history_end(history_);
  el_end(edit_);
}

LineEditor& LineEditor::of(EditLine* edit) {
  void* self = nullptr;
  el_get(edit, EL_CLIENTDATA, &self);
  return *static_cast<LineEditor*>(self);
}

char* LineEditor::show_prompt(EditLine* edit) { return of(edit).prompt_.data(); }

int LineEditor::read_byte() {
  if (pushed_back_ >= 0) return std::exchange(pushed_back_, -1);
  while (true) {
    if (interrupted()) {
      errno = EINTR;
      return -1;
    }
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, kSignalCheckMs);
    if (ready < 0 && errno != EINTR) return -1;
    if (g_continued.exchange(false)) {  // after Ctrl-Z and fg: the shell has changed the terminal
      el_set(edit_, EL_PREP_TERM, 1);
      el_set(edit_, EL_REFRESH);
    }
    if (g_resized.exchange(false)) redraw_resized();
    if (ready <= 0) continue;
    unsigned char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n == 1) return byte;
    if (n == 0) errno = 0;
    if (n == 0 || errno != EINTR) return -1;
  }
}

int LineEditor::read_rest(unsigned char first, wchar_t* character) {
  constexpr wchar_t kReplacement = 0xfffd;
  const int n = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : -1;
  uint32_t code = n < 0 ? kReplacement : n == 0 ? first : first & (0x3f >> n);
  for (int i = 0; i < n; ++i) {
    const int byte = read_byte();
    if (byte < 0) return -1;
    if ((byte & 0xc0) != 0x80) {  // start of the next character, or Enter
      pushed_back_ = byte;
      *character = kReplacement;
      return 1;
    }
    code = code << 6 | (static_cast<uint32_t>(byte) & 0x3f);
  }
  *character = static_cast<wchar_t>(code);
  return 1;
}

int LineEditor::read_character(EditLine* edit, wchar_t* character) {
  LineEditor& self = of(edit);
  if (self.insert_next_) {
    self.insert_next_ = false;
    *character = kInsertKey;
    return 1;
  }
  const int byte = self.read_byte();
  if (byte < 0) return errno == 0 ? 0 : -1;
  return self.read_rest(static_cast<unsigned char>(byte), character);
}

unsigned char LineEditor::insert_paste(EditLine* edit, wint_t) {
  LineEditor& self = of(edit);
  std::string text;
  while (!text.ends_with(kPasteEnd)) {
    const int byte = self.read_byte();
    if (byte < 0) return CC_EOF;
    text += byte == '\r' ? '\n' : static_cast<char>(byte);
  }
  text.resize(text.size() - kPasteEnd.size());
  while (text.ends_with('\n')) text.pop_back();  // the user presses Enter
  return el_insertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::insert_initial(EditLine* edit, wint_t) {
  return el_insertstr(edit, of(edit).initial_.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

// Terminals wrap what they show anew when their width changes, and the cursor stays at its
// character: the line then begins as many rows above it as it would if it had been written so.
void LineEditor::redraw_resized() {
  winsize size = {};
  const bool is_known = ioctl(fileno(screen_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  if (is_known && !is_dumb_terminal()) {
    const int up = rows_before(line_text(edit_), cursor_of(edit_),
                               static_cast<int>(n_columns(prompt_)), size.ws_col);
    if (up > 0) fmt::print(screen_, "\x1b[{}A", up);
    std::fputs("\r\x1b[J", screen_);
  }
  el_resize(edit_);
  el_set(edit_, EL_REFRESH);  // as if nothing had been drawn yet
}

void LineEditor::list(const std::vector<std::string>& choices) {
  const int width = terminal_width();
  const std::wstring line = line_text(edit_);
  const int prompt = static_cast<int>(n_columns(prompt_));
  const int down = rows_before(line, line.size(), prompt, width) -
                   rows_before(line, cursor_of(edit_), prompt, width);
  std::string text(static_cast<size_t>(down), '\n');
  for (const std::string& row : completion_rows(choices, width)) text += "\r\n" + row;
  std::fputs((text + "\r\n").c_str(), screen_);
  el_set(edit_, EL_REFRESH);
}

unsigned char LineEditor::complete(EditLine* edit, wint_t) {
  LineEditor& self = of(edit);
  const LineInfo* line = el_line(edit);
  const std::string typed(line->buffer, line->cursor);
  if (!self.completer_ || !utf8::is_valid(typed)) return CC_ERROR;
  const Completion found = self.completer_(typed);
  if (found.choices.empty()) return CC_ERROR;
  const std::string common = common_beginning(found.choices);
  const std::string replaced = typed.substr(found.begin);
  if (common != replaced && common.size() >= replaced.size()) {
    const size_t n = std::mbstowcs(nullptr, replaced.c_str(), 0);
    el_deletestr(edit, static_cast<int>(n));
    return el_insertstr(edit, common.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }
  if (found.choices.size() == 1) return CC_NORM;
  self.list(found.choices);
  return CC_NORM;
}

LineReader::Line LineEditor::read(const std::string& prompt, const std::string& initial) {
  prompt_ = prompt;
  initial_ = initial;
  insert_next_ = !initial.empty();
  el_set(edit_, EL_PREP_TERM, 1);  // before the prompt, so that what is typed is not echoed twice
  if (!is_dumb_terminal()) std::fputs(kAskForPasteMarks, screen_);
  int n = 0;
  errno = 0;
  const char* text = el_gets(edit_, &n);
  const int error = errno;
  if (!is_dumb_terminal()) std::fputs(kNoPasteMarks, screen_);
  std::fflush(screen_);
  if (interrupted()) {
    write_stderr("\n");
    return {Line::Kind::interrupted};
  }
  if (text == nullptr || n <= 0) {
    if (n < 0 && error != 0) {
      fail(ErrorCode::kRuntime, "can't read the terminal: {}", std::strerror(error));
    }
    write_stderr("\n");
    return {Line::Kind::end};
  }
  Line line{Line::Kind::text, std::string(text, n)};
  if (line.text.ends_with('\n')) line.text.pop_back();
  return line;
}

void LineEditor::remember(const std::string& line) {
  HistEvent event;
  history(history_, &event, H_ENTER, line.c_str());
}

void LineEditor::save_history() const {
  if (history_path_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(history_path_).parent_path(), error);
  const int fd = open_private(history_path_.c_str());
  FILE* file = fd >= 0 ? fdopen(fd, "w") : nullptr;
  HistEvent event;
  const bool saved = file != nullptr && history(history_, &event, H_SAVE_FP, file) >= 0;
  const bool closed = file == nullptr || std::fclose(file) == 0;
  if (saved && closed) return;
  write_stderr("snapkv: warning: can't write the chat's history to " + history_path_ + ": " +
               std::strerror(errno) + "\n");
}

}  // namespace

std::unique_ptr<LineReader> make_line_editor(const std::string& history_path) {
  return std::make_unique<LineEditor>(history_path);
}

}  // namespace snapkv::cli
