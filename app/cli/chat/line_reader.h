// SPDX-License-Identifier: MIT
// LineReader: the source of a chat's lines: a terminal, with editing and history, or a pipe or
// file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace snapkv::cli {

/// What a line that is being typed may go on with.
struct Completion {
  size_t begin = 0;                       ///< bytes of the line that stay as they are
  std::vector<std::string> choices = {};  ///< each in place of the rest, as far as the cursor
};

class LineReader {
 public:
  struct Line {
    enum class Kind { text, end, interrupted };
    Kind kind = Kind::text;
    /// The line without its newline. A line pasted at a terminal may hold newlines in the middle.
    std::string text = {};
  };

  virtual ~LineReader() = default;
  /// Reads a line. A terminal shows `prompt`, and lets the user edit `initial` first. The kind is
  /// `interrupted` after Ctrl-C or another signal (signals.h); text typed before it is dropped.
  /// Throws kRuntime when nothing can be read.
  virtual Line read(const std::string& prompt, const std::string& initial = "") = 0;
  /// Called with the line up to the cursor when somebody presses Tab.
  virtual void set_completer(std::function<Completion(const std::string& line)> completer) = 0;
  /// Adds a line to the history that the arrow keys recall.
  virtual void remember(const std::string& line) = 0;
  /// Whether the lines are typed at a terminal.
  virtual bool is_terminal() const = 0;
};

/// Returns an editor if stdin is a terminal and so is stdout or stderr, with its history in
/// `history_path` (empty: this chat only); else a reader of stdin.
std::unique_ptr<LineReader> make_line_reader(const std::string& history_path);

/// $XDG_STATE_HOME/snapkv/chat_history or ~/.local/state/snapkv/chat_history; empty without a home.
std::string default_history_path();

}  // namespace snapkv::cli
