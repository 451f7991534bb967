// SPDX-License-Identifier: MIT
// Standard input, output and error: checked writes, whether people are watching, colours.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::cli {

bool stdout_is_terminal();
bool stderr_is_terminal();
/// Columns of the terminal behind stderr; 80 when unknown.
int terminal_width();
/// Columns of the terminal behind stdout, else what COLUMNS says, else 80.
int stdout_width();

/// The reader of stdout has gone ("| head"): the command ends without a word, with the exit code of
/// a program that SIGPIPE ended. No error: that reader had seen enough.
struct StdoutClosed {
  static constexpr int kExitCode = 141;
};

/// Writes all of it to stdout at once, unbuffered. A terminal gets it as safe_output() makes it,
/// whole characters of UTF-8 being expected: what a model or a file holds can't command a terminal.
/// A file or a pipe gets it as it is. Throws Error{kRuntime} when that fails (a full disk),
/// StdoutClosed when its reader has gone.
void write_stdout(std::string_view text);
/// The same for text that holds our own escape sequences, all else in it being printable() already.
void write_styled_stdout(std::string_view text);
/// Closes stdout, which is where some file systems report a failed write. Throws like the above.
void close_stdout();
/// As safe_output() makes it, wherever it goes: logs are read at terminals.
void write_stderr(std::string_view text);
/// The same for text that holds our own escape sequences, all else in it being printable() already.
void write_styled_stderr(std::string_view text);

/// Everything in a file, or in stdin for "-". Throws Error{kRuntime} naming the file, kUsage where
/// it has more than `most` bytes.
std::string read_text(const std::string& path, size_t most = std::string::npos);

enum class Style { bold, dim, red, green };
/// `text` in a style where `enabled` (a terminal, and NO_COLOR is not set); else as it is.
std::string paint(Style style, std::string_view text, bool enabled);
/// Whether to colour what goes to that stream.
bool colour_stdout();
bool colour_stderr();

}  // namespace snapkv::cli
