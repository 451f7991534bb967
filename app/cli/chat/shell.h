// SPDX-License-Identifier: MIT
// ChatShell: reads lines, sends messages and runs the commands that begin with a slash. Answers go
// to stdout, everything else to stderr.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/chat/chat_session.h"
#include "cli/chat/display.h"
#include "cli/chat/line_reader.h"
#include "cli/chat/pending_documents.h"
#include "cli/common/progress.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

class ChatShell {
 public:
  /// The session's options were made from `cache` and `n_ctx`; /policy changes them.
  ChatShell(ChatSession& session, LineReader& reader, ProgressDisplay& progress,
            CacheSettings cache, int64_t n_ctx);

  /// As /file does; what goes wrong is shown.
  void add_document(const std::string& path);
  /// Writes a line for the user to stderr, in place of the progress of a prompt.
  void note_while_reading(const std::string& text) const;
  /// Reads lines until they end. The exit code: what stopped it, or where nobody types the first
  /// error's.
  int run();

 private:
  struct CommandRow;
  static const std::vector<CommandRow>& commands();
  static std::vector<std::string> command_names();

  /// Reads a message, which may have several lines, or a command with its arguments.
  LineReader::Line read_input();
  void handle(const std::string& line);
  void run_command(const std::string& line);
  void send(const std::string& text);
  /// Throws kContextExceeded for a message that the context has no room for.
  void check_room(const std::string& text) const;
  /// Adds a document's text to the next message. Throws kContextExceeded where it does not fit.
  void add_text(const std::string& name, const documents::PagedText& document);
  /// Whether a document fits into the context as a whole.
  bool fits(const std::string& name, const std::string& text) const;
  /// Adds as much as fits of the last document that was too long.
  void add_first_part();
  /// As much of a text's beginning, up to a line's or word's end, as the context has room for.
  std::string fitting_part(const std::string& name, const std::string& text) const;
  /// Shows the answer that `ask` makes with the callbacks that it is given.
  /// `is_new`: a message that is not part of the chat yet.
  void show_answer(
      bool is_new,
      const std::function<const ChatSession::Reply&(const ChatSession::Callbacks&)>& ask);
  /// Says what makes room for a message that does not fit.
  std::string ways_to_room() const;
  /// Writes a line for the user to stderr, apart from the answers.
  void note(const std::string& text) const;
  void report(const Error& error);

  // the commands; `text` is what follows the command's name, trimmed
  void help(const std::string& text);
  void regenerate(const std::string& text);
  void edit(const std::string& text);
  void undo(const std::string& text);
  void reset(const std::string& text);
  void system(const std::string& text);
  void save(const std::string& text);
  void load(const std::string& text);
  void file(const std::string& text);
  void stats(const std::string& text);
  void policy(const std::string& text);
  void change_policy(const std::string& text);
  void exit(const std::string& text);

  /// Lets the user edit a text at the terminal; returns an empty text if they gave up.
  std::string edit_at_terminal(const std::string& text);

  ChatSession& session_;
  LineReader& reader_;
  ProgressDisplay& progress_;
  AnswerDisplay display_;
  CacheSettings cache_;
  int64_t n_ctx_;
  PendingDocuments files_;         // of /file, for the next message
  std::string last_files_;         // those that the last message begins with
  documents::PagedText too_long_;  // the last document that did not fit, for /file first
  std::string too_long_name_;
  bool document_failed_ = false;  // so that nobody answers without it, in a pipe
  std::string draft_;             // a message that could not be sent, to be edited
  bool done_ = false;
  int first_error_ = 0;
};

}  // namespace snapkv::cli
