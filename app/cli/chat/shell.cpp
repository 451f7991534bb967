// SPDX-License-Identifier: MIT
#include "cli/chat/shell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/chat/shell_completion.h"
#include "cli/common/chat_settings.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kNextLinePrompt = ". ";
constexpr int kCancelled = static_cast<int>(ErrorCode::kCancelled);

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\n\r") == std::string::npos;
}

}  // namespace

ChatShell::ChatShell(ChatSession& session, LineReader& reader, ProgressDisplay& progress,
                     CacheSettings cache, int64_t n_ctx)
    : session_(session),
      reader_(reader),
      progress_(progress),
      display_(progress),
      cache_(std::move(cache)),
      n_ctx_(n_ctx) {
  reader_.set_completer([](const std::string& line) {
    return complete_line(line, {command_names(), {"file", "save", "load"}, policy_names()});
  });
}

void ChatShell::add_document(const std::string& path) {
  try {
    file(path);
  } catch (const Error& e) {
    document_failed_ = !reader_.is_terminal();
    report(e);
  }
}

int ChatShell::run() {
  bool warned = false;  // the user has just pressed Ctrl-C at the prompt
  while (!done_) {
    const LineReader::Line line = read_input();
    if (line.kind == LineReader::Line::Kind::end) break;
    if (line.kind == LineReader::Line::Kind::interrupted) {
      if (!reader_.is_terminal() || warned || !forget_interrupt()) return kCancelled;
      warned = true;
      note("Ctrl-C again, Ctrl-D or /exit leaves the chat");
      continue;
    }
    warned = false;
    try {
      handle(line.text);
    } catch (const Error& e) {
      const bool is_message = !line.text.starts_with('/') || line.text.starts_with("//");
      const bool is_full = e.code() == ErrorCode::kContextExceeded;
      if (is_message && is_full && reader_.is_terminal()) draft_ = line.text;
      report(e);
    }
    if (interrupted() && !(reader_.is_terminal() && forget_interrupt())) return kCancelled;
  }
  return reader_.is_terminal() ? 0 : first_error_;
}

LineReader::Line ChatShell::read_input() {
  LineReader::Line line = reader_.read(kPrompt, std::exchange(draft_, ""));
  while (line.kind == LineReader::Line::Kind::text && line.text.ends_with('\\')) {
    line.text.back() = '\n';
    LineReader::Line next = reader_.read(kNextLinePrompt);
    if (next.kind == LineReader::Line::Kind::interrupted) return next;
    line.text += next.text;
    if (next.kind == LineReader::Line::Kind::end) break;
  }
  if (line.kind == LineReader::Line::Kind::text && !is_blank(line.text)) {
    reader_.remember(line.text);
  }
  return line;
}

void ChatShell::handle(const std::string& line) {
  if (is_blank(line)) return;
  if (line.starts_with("//")) return send(line.substr(1));
  if (line.starts_with('/')) return run_command(line);
  send(line);
}

void ChatShell::send(const std::string& text) {
  if (!utf8::is_valid(text)) fail(ErrorCode::kUsage, "the message is not valid UTF-8");
  if (document_failed_) {
    fail(ErrorCode::kUsage,
         "not sent: the document before this message could not be read; /file off goes on without");
  }
  check_room(text);
  const std::string files = files_.text();
  const size_t n_before = session_.conversation().turns().size();
  // the files wait for the next message if this one did not become part of the chat
  const auto drop_sent_files = [&] {
    if (session_.conversation().turns().size() == n_before) return;
    last_files_ = files;
    files_.clear();
  };
  try {
    show_answer(true, [&](const ChatSession::Callbacks& callbacks) -> const ChatSession::Reply& {
      return session_.ask(files + text, callbacks, {files.size(), files_.pages()});
    });
  } catch (const Error&) {
    drop_sent_files();
    throw;
  }
  drop_sent_files();
}

void ChatShell::check_room(const std::string& text) const {
  const int64_t n_ctx = session_.session().n_ctx();
  const int64_t n_tokens = session_.n_tokens_with(files_.text() + text);
  if (n_tokens < n_ctx) return;
  fail(ErrorCode::kContextExceeded,
       "not sent: with this message the chat has {}, and the context is {}; {}",
       plural(n_tokens, "token"), n_ctx,
       files_.empty() ? "/undo or /reset makes room"
                      : "/file off drops the documents before it, /undo or /reset makes room");
}

void ChatShell::show_answer(
    bool is_new,
    const std::function<const ChatSession::Reply&(const ChatSession::Callbacks&)>& ask) {
  const char* const unchanged =
      is_new ? "the message is not part of the chat" : "the chat is as it was";
  const ChatSession::Reply* answer = nullptr;
  try {
    answer = &ask(display_.callbacks());
  } catch (const Error& e) {
    display_.finish();
    if (e.code() == ErrorCode::kContextExceeded)
      fail(e.code(), "{}\n{}", message_of(e), ways_to_room());
    if (e.code() == ErrorCode::kCancelled) fail(e.code(), "{}", unchanged);
    throw;
  }
  display_.finish();
  if (!answer->sources.empty()) write_styled_stderr(sources_text(answer->sources) + "\n");
  const bool is_empty = answer->generation.ids.empty();
  const std::string kept = is_empty ? fmt::format("; {}", unchanged) : "";
  switch (answer->generation.stop_reason) {
    case StopReason::eos:
    case StopReason::stop:
    case StopReason::paragraph:
      if (answer->generation.text.empty()) note("an empty answer");
      break;
    case StopReason::length:
      note(fmt::format("stopped after {}, as --n-predict says{}",
                       plural(std::ssize(answer->generation.ids), "token"), kept));
      break;
    case StopReason::context:
      note(fmt::format("stopped: the context of {} is full; /undo or /reset makes room{}",
                       plural(session_.session().n_ctx(), "token"), kept));
      break;
    case StopReason::cancelled:
      if (is_empty) fail(ErrorCode::kCancelled, "{}", unchanged);
      note(fmt::format("stopped by {}; the answer so far is part of the chat", interruption()));
      break;
  }
}

std::string ChatShell::ways_to_room() const {
  std::vector<std::string> ways;
  if (!files_.empty()) ways.emplace_back("/file off, which leaves out its files");
  if (!session_.conversation().empty()) ways.emplace_back("/undo or /reset");
  ways.emplace_back("a larger --ctx-size");
  return fmt::format("What makes room: {}", fmt::join(ways, ", "));
}

void ChatShell::note_while_reading(const std::string& text) const {
  progress_.clear();
  note(text);
}

void ChatShell::note(const std::string& text) const {
  const std::string shown = message_text(text);
  write_styled_stderr(reader_.is_terminal()
                          ? paint(Style::dim, "[" + shown + "]", colour_stderr()) + "\n\n"
                          : "snapkv: " + shown + "\n");
}

void ChatShell::report(const Error& error) {
  progress_.clear();
  if (error.code() == ErrorCode::kCancelled) {
    note(fmt::format("stopped by {} before an answer began; {}", interruption(), error.what()));
    return;
  }
  write_styled_stderr(fmt::format("snapkv: {} {}\n{}", paint(Style::red, "error:", colour_stderr()),
                                  message_text(message_of(error)),
                                  reader_.is_terminal() ? "\n" : ""));
  if (first_error_ == 0) first_error_ = static_cast<int>(error.code());
}

}  // namespace snapkv::cli
