// SPDX-License-Identifier: MIT
// Standard input, output and error: checked writes, terminal detection, colours.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace snapkv::cli {

bool stdout_is_terminal();
bool stderr_is_terminal();
/// Columns of the terminal behind stderr; 80 when unknown.
int terminal_width();
/// Columns of the terminal behind stdout, else the value of COLUMNS, else 80.
int stdout_width();

/// Thrown when the reader of stdout has gone ("| head"). The command ends silently with the exit
/// code of a program that SIGPIPE ended; it is not an error, since that reader had seen enough.
struct StdoutClosed {
  static constexpr int kExitCode = 141;
};

/// Writes the whole text to stdout at once, unbuffered. On a terminal it passes through
/// safe_output(), which needs complete UTF-8 characters, so that text from a model or a file can't
/// control the terminal. A file or a pipe gets it unchanged. Throws Error{kRuntime} when writing
/// fails (a full disk), StdoutClosed when the reader has gone.
void write_stdout(std::string_view text);
/// The same for text with our own escape sequences, whose other parts are printable() already.
void write_styled_stdout(std::string_view text);
/// Closes stdout, which is where some file systems report a failed write. Throws like the above.
void close_stdout();
/// Writes to stderr through safe_output(), wherever it goes: logs are read at terminals.
void write_stderr(std::string_view text);
/// The same for text with our own escape sequences, whose other parts are printable() already.
void write_styled_stderr(std::string_view text);

/// Waits until `fd` has bytes or is at its end. Returns false once interrupted(), or after
/// `limit_ms` milliseconds unless that is negative.
bool wait_for_input(int fd, int limit_ms = -1);
/// Like read() of POSIX, but a signal ends it at any time: with -1 and errno EINTR once
/// interrupted(). One that arrives just before read() waits, or in another thread, would not end
/// that.
ssize_t read_unless_interrupted(int fd, char* data, size_t size);
/// Reads a whole file, or stdin for "-". Throws Error{kRuntime} naming the file, kUsage when it has
/// more than `most` bytes.
std::string read_text(const std::string& path, size_t most = std::string::npos);

/// Whether the terminals show escape sequences as they are (TERM=dumb), as Emacs' shell does.
bool is_dumb_terminal();

enum class Style { bold, dim, red, green };
/// Returns `text` in a style if `enabled` (a terminal, and NO_COLOR is not set), else unchanged.
std::string paint(Style style, std::string_view text, bool enabled);
/// Whether to colour the output to that stream.
bool colour_stdout();
bool colour_stderr();

}  // namespace snapkv::cli
