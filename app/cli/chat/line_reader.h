// SPDX-License-Identifier: MIT
// LineReader: where the lines of a chat come from: typed at a terminal, with editing and history,
// or read from a pipe or file. Used by the chat's shell.
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
    /// Without its newline. A terminal's line may hold newlines in the middle, which were pasted.
    std::string text = {};
  };

  virtual ~LineReader() = default;
  /// Reads a line. A terminal shows `prompt`, and lets the user edit `initial` first. `interrupted`
  /// is Ctrl-C or its like (signals.h); what was typed before it is dropped. Throws kRuntime when
  /// nothing can be read.
  virtual Line read(const std::string& prompt, const std::string& initial = "") = 0;
  /// Called with the line up to the cursor when somebody presses Tab.
  virtual void set_completer(std::function<Completion(const std::string& line)> completer) = 0;
  /// Adds a line to what the arrow keys bring back.
  virtual void remember(const std::string& line) = 0;
  /// Whether somebody types.
  virtual bool is_terminal() const = 0;
};

/// An editor if stdin and stdout or stderr are terminals, with the history of `history_path`
/// (empty: of this chat alone); else a reader of stdin.
std::unique_ptr<LineReader> make_line_reader(const std::string& history_path);

/// $XDG_STATE_HOME/snapkv/chat_history or ~/.local/state/snapkv/chat_history; empty without a home.
std::string default_history_path();

}  // namespace snapkv::cli
