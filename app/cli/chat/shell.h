// SPDX-License-Identifier: MIT
// ChatShell: reads lines, sends messages and runs the commands that begin with a slash. Answers go
// to stdout, all else to stderr. Run by the chat command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/chat/chat_session.h"
#include "cli/chat/display.h"
#include "cli/chat/line_reader.h"
#include "cli/common/progress.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

class ChatShell {
 public:
  /// `cache` and `n_ctx` are what the session's options were made of; /policy changes them.
  ChatShell(ChatSession& session, LineReader& reader, ProgressDisplay& progress,
            CacheSettings cache, int64_t n_ctx);

  /// Reads lines until they end. The exit code: what stopped it, or where nobody types the first
  /// error's.
  int run();

 private:
  struct CommandRow;
  static const std::vector<CommandRow>& commands();
  static std::vector<std::string> command_names();

  /// A message, which may have several lines, or a command with its arguments.
  LineReader::Line read_input();
  void handle(const std::string& line);
  void run_command(const std::string& line);
  void send(const std::string& text);
  /// Shows the answer that `ask` makes with the callbacks that it is given.
  /// `is_new`: a message that is not part of the chat yet.
  void show_answer(
      bool is_new,
      const std::function<const ChatSession::Answer&(const ChatSession::Callbacks&)>& ask);
  std::string ways_to_room() const;
  /// A line for people, beside the answers.
  void note(const std::string& text) const;
  void report(const Error& error);

  // the commands; `text` is what follows the name, without white space around it
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
  void exit(const std::string& text);

  std::string check_room(const std::string& path, const std::string& text) const;
  /// Edits a text at the terminal; empty when that was given up.
  std::string edit_at_terminal(const std::string& text);

  ChatSession& session_;
  LineReader& reader_;
  ProgressDisplay& progress_;
  AnswerDisplay display_;
  CacheSettings cache_;
  int64_t n_ctx_;
  std::string files_;       // texts of /file for the next message
  std::string last_files_;  // those that the last message begins with
  bool file_failed_ = false;  // the last /file could not be added
  bool done_ = false;
  int first_error_ = 0;
};

}  // namespace snapkv::cli
