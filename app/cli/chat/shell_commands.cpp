// SPDX-License-Identifier: MIT
// The commands of ChatShell, and their help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "cli/chat/shell.h"
#include "cli/chat/shell_completion.h"
#include "cli/common/chat_settings.h"
#include "cli/common/documents.h"
#include "cli/common/plain_text.h"
#include "cli/common/policy_options.h"
#include "cli/common/prompt_length.h"
#include "cli/common/table_options.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/generate/report.h"

namespace snapkv::cli {

struct ChatShell::CommandRow {
  const char* name;
  const char* arguments;
  const char* help;
  void (ChatShell::*run)(const std::string& text);
};

const std::vector<ChatShell::CommandRow>& ChatShell::commands() {
  static const std::vector<CommandRow> kCommands = {
      {"regenerate", "", "another answer to the last message", &ChatShell::regenerate},
      {"edit", "[TEXT]", "another last message, with its answer", &ChatShell::edit},
      {"undo", "", "forget the last message and its answer", &ChatShell::undo},
      {"reset", "", "forget all messages, but for the system message", &ChatShell::reset},
      {"system", "[TEXT|off]", "show or set the system message", &ChatShell::system},
      {"file", "[first] PATH|off",
       "begin the next message with a document; first: with as much of it as fits",
       &ChatShell::file},
      {"save", "PATH", "write the messages to a JSON file", &ChatShell::save},
      {"load", "PATH", "take the messages of a JSON file instead", &ChatShell::load},
      {"policy", "[NAME] [PARAMETER=VALUE ...]", "show or change what is kept of the chat",
       &ChatShell::policy},
      {"stats", "", "tokens, times and memory", &ChatShell::stats},
      {"help", "", "this list", &ChatShell::help},
      {"exit", "", "leave, as Ctrl-D does", &ChatShell::exit},
  };
  return kCommands;
}

std::vector<std::string> ChatShell::command_names() {
  std::vector<std::string> names;
  for (const CommandRow& command : commands()) names.emplace_back(command.name);
  return names;
}

namespace {

std::string trimmed(const std::string& text) {
  const char* const kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::string required_path(const std::string& text, const char* command) {
  if (text.empty()) fail(ErrorCode::kUsage, "/{} needs a path: /{} PATH", command, command);
  return typed_path(text);
}

void refuse_arguments(const std::string& text, const char* command) {
  if (!text.empty()) fail(ErrorCode::kUsage, "/{} takes nothing after it, not '{}'", command, text);
}

/// What /policy calls an option: "budget" for --kv-budget, "kv-memory" for --kv-memory.
std::string brief_name(std::string_view option) {
  std::string name = flag_of(option);
  if (name.starts_with("--")) name.erase(0, 2);
  const bool is_param =
      std::any_of(shared_params().begin(), shared_params().end(),
                  [&](const SharedParam& shared) { return shared.param->option == option; });
  return is_param && name.starts_with("kv-") ? name.substr(3) : name;
}

/// Finds the parameter by any of its names: kernel_size, kernel or kv-kernel. Throws kUsage.
const PolicyParam& find_param(const PolicyInfo& info, const std::string& name) {
  std::vector<std::string> names;
  for (const PolicyParam& param : info.params) {
    const std::string typed = flag_of(param.option);
    const std::string flag = typed.substr(typed.find_first_not_of('-'));
    const std::string brief = brief_name(param.option);
    if (name == param.name || name == param.label || name == flag || name == brief ||
        name == typed) {
      return param;
    }
    names.push_back(brief);
  }
  if (names.empty()) {
    fail(ErrorCode::kUsage, "policy {} has no parameters: it keeps every row", info.name);
  }
  fail(ErrorCode::kUsage, "policy {} has no parameter '{}', but: {}", info.name, name,
       fmt::join(names, ", "));
}

// What people type who know llama.cpp's chat or ollama's.
constexpr std::pair<std::string_view, std::string_view> kForeignNames[] = {
    {"quit", "exit"}, {"bye", "exit"},         {"clear", "reset"},
    {"?", "help"},    {"regen", "regenerate"}, {"read", "file"},
};

/// What there is in place of a command that is not there.
std::string command_hint(const std::string& name, const std::vector<std::string>& known) {
  if (name == "set") return "; options are given where the chat begins: snapkv chat --help";
  if (name == "show") return "; /stats, /system and /policy show what there is";
  const std::string near = nearest_name(name, known);
  return near.empty() ? "" : fmt::format("; did you mean /{}?", near);
}

/// A document as a message begins with it.
std::string role_counts(const ChatMessages& conversation) {
  std::string text = plural(std::ssize(conversation.turns()), "message");
  if (!conversation.system().empty()) text += " and a system message";
  return text;
}

}  // namespace

void ChatShell::run_command(const std::string& line) {
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string typed = line.substr(1, end - 1);
  std::string name = typed;
  const std::string text = trimmed(line.substr(end));
  for (const auto& [foreign, own] : kForeignNames) {
    if (typed == foreign) name = own;
  }
  for (const CommandRow& command : commands()) {
    if (name == command.name) return (this->*command.run)(text);
  }
  fail(ErrorCode::kUsage,
       "there is no command '/{}'{}\n/help lists them, and // begins a message with a slash", typed,
       command_hint(typed, command_names()));
}

void ChatShell::help(const std::string& text) {
  refuse_arguments(text, "help");
  std::string lines;
  for (const CommandRow& command : commands()) {
    const std::string left = fmt::format("/{} {}", command.name, command.arguments);
    lines += left.size() < 20 ? fmt::format("{:<20}{}\n", left, command.help)
                              : fmt::format("{}\n{:<20}{}\n", left, "", command.help);
  }
  lines += fmt::format("{:<20}{}\n", "\\ at a line's end", "the message goes on in the next line");
  if (reader_.is_terminal()) {
    lines += fmt::format("{:<20}{}\n", "Tab", "complete a command or a path");
  }
  lines += fmt::format("{:<20}{}\n", "Ctrl-C", "stop the answer; the chat goes on");
  write_stderr(lines + (reader_.is_terminal() ? "\n" : ""));
}

void ChatShell::regenerate(const std::string& text) {
  refuse_arguments(text, "regenerate");
  const std::optional<std::string> message = session_.conversation().last_user();
  if (!message) fail(ErrorCode::kUsage, "there is no message yet to answer again");
  show_answer(false, [&](const ChatSession::Callbacks& callbacks) -> const ChatSession::Reply& {
    return session_.ask_instead(*message, callbacks);
  });
}

std::string ChatShell::edit_at_terminal(const std::string& text) {
  if (!reader_.is_terminal()) {
    fail(ErrorCode::kUsage, "/edit needs the new text where nobody types: /edit TEXT");
  }
  const LineReader::Line line = reader_.read("edit> ", text);
  return line.kind == LineReader::Line::Kind::text ? line.text : "";
}

void ChatShell::edit(const std::string& text) {
  std::optional<std::string> message = session_.conversation().last_user();
  if (!message) fail(ErrorCode::kUsage, "there is no message yet to edit");
  const bool has_files = !last_files_.empty() && message->starts_with(last_files_);
  const std::string files = has_files ? last_files_ : "";
  const std::string edited = text.empty() ? edit_at_terminal(message->substr(files.size())) : text;
  if (trimmed(edited).empty()) return note("nothing has changed");
  if (!utf8::is_valid(edited)) fail(ErrorCode::kUsage, "the message is not valid UTF-8");
  reader_.remember(edited);
  show_answer(false, [&](const ChatSession::Callbacks& callbacks) -> const ChatSession::Reply& {
    return session_.ask_instead(files + edited, callbacks);
  });
}

void ChatShell::undo(const std::string& text) {
  refuse_arguments(text, "undo");
  if (!session_.undo()) fail(ErrorCode::kUsage, "there is no message to undo");
  note(role_counts(session_.conversation()) + " left");
}

void ChatShell::reset(const std::string& text) {
  refuse_arguments(text, "reset");
  session_.reset();
  files_.clear();
  document_failed_ = false;
  note("the chat is empty");
}

void ChatShell::system(const std::string& text) {
  if (text.empty()) {
    const std::string& now = session_.conversation().system();
    return note(now.empty() ? "there is no system message" : "system message: " + now);
  }
  if (!utf8::is_valid(text)) fail(ErrorCode::kUsage, "the system message is not valid UTF-8");
  if (session_.document() != nullptr) {
    fail(ErrorCode::kUsage,
         "the document was read with its own system message: snapkv compress --system sets it");
  }
  const bool off = text == "off";
  session_.set_system(off ? "" : text);
  const std::string what = off ? "no system message" : "system message set";
  const bool is_empty = session_.conversation().empty();
  note(what + (is_empty ? "" : "; the next answer reads the whole chat again"));
}

void ChatShell::save(const std::string& text) {
  const std::string path = required_path(text, "save");
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    bool is_saved = false;
    try {
      is_saved = ChatMessages::is_saved(path);
    } catch (const Error&) {  // not a conversation, or it can't be read
    }
    if (!is_saved) {
      fail(ErrorCode::kUsage, "{} exists and is not a saved chat: choose another name", path);
    }
  }
  session_.conversation().save(path);
  note(fmt::format("{} in {}", role_counts(session_.conversation()), path));
}

void ChatShell::load(const std::string& text) {
  const std::string path = required_path(text, "load");
  ChatMessages loaded = ChatMessages::load(path);
  if (session_.document() != nullptr && !loaded.system().empty()) {
    fail(ErrorCode::kUsage, "{} has a system message, and the document was read with its own",
         path);
  }
  session_.set_conversation(std::move(loaded));
  const ChatMessages& conversation = session_.conversation();
  const bool is_open = !conversation.empty() && conversation.turns().back()["role"] == "user";
  note(fmt::format(
      "{} from {}; {}", role_counts(conversation), path,
      is_open ? "the last one has no answer: /regenerate makes it" : "the next answer reads them"));
}

std::string ChatShell::fitting_part(const std::string& name, const std::string& text) const {
  constexpr double kRoom = 0.9;  // of the context: the rest is for the question and the answer
  const auto n_ctx = static_cast<double>(session_.session().n_ctx());
  const auto fits = [&](size_t n_bytes) {
    const std::string message = files_.text_with(name, text.substr(0, n_bytes));
    if (is_hopeless_length(session_.session().model(), message, session_.session().n_ctx())) {
      return false;
    }
    return static_cast<double>(session_.n_tokens_with(message)) < kRoom * n_ctx;
  };
  const auto whole_words = [&](size_t n_bytes) {  // whole characters where there are no blanks
    size_t end = text.find_last_of(" \n", n_bytes);
    if (end == std::string::npos) end = n_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return end;
  };
  size_t low = 0, high = text.size();
  while (high - low > low / 100 + 1) {
    const size_t middle = whole_words((low + high) / 2);
    if (middle <= low) break;
    (fits(middle) ? low : high) = middle;
  }
  return text.substr(0, low);
}

void ChatShell::add_text(const std::string& name, const documents::PagedText& document) {
  const std::string& text = document.text;
  const int64_t n_ctx = session_.session().n_ctx();
  refuse_hopeless_length(session_.session().model(), text, n_ctx);
  const int64_t n_tokens = std::ssize(session_.session().model().tokenize(text, false, false));
  const int64_t n_all = session_.n_tokens_with(files_.text_with(name, text));
  if (n_all >= n_ctx) {
    too_long_ = document;
    too_long_name_ = name;
    fail(ErrorCode::kContextExceeded,
         "{} was not added: it has {}, which makes {} with the chat, and the context is {}\n"
         "/file first adds as much of its beginning as fits, as /file first PATH does at once; "
         "snapkv run MODEL FILE QUESTION reads such a document in parts; a model with a longer "
         "context reads all of it{}",
         name, plural(n_tokens, "token"), n_all, n_ctx,
         n_ctx < session_.session().model().info().n_ctx_train ? ", as does a larger --ctx-size"
                                                               : "");
  }
  files_.add(name, document);
  note(fmt::format("{}: {}, {} of {} with the chat; the next message begins with it", name,
                   plural(n_tokens, "token"), n_all, n_ctx));
}

void ChatShell::file(const std::string& text) {
  if (text == "off") {
    files_.clear();
    document_failed_ = false;
    return note("the next message begins with no file");
  }
  if (text == "first" && !too_long_.text.empty()) return add_first_part();
  const bool only_first = text.starts_with("first ");
  document_failed_ = !reader_.is_terminal();  // until it is there
  const std::string path = required_path(only_first ? trimmed(text.substr(6)) : text, "file");
  for (const NamedDocument& document : read_documents(path, files_.files())) {
    if (only_first && !fits(document.name, document.paged.text)) {
      too_long_ = document.paged;
      too_long_name_ = document.name;
      return add_first_part();
    }
    add_text(document.name, document.paged);
    files_.add_file(document.file);
  }
  document_failed_ = false;
}

bool ChatShell::fits(const std::string& name, const std::string& text) const {
  const Model& model = session_.session().model();
  const int64_t n_ctx = session_.session().n_ctx();
  if (is_hopeless_length(model, text, n_ctx)) return false;
  return session_.n_tokens_with(files_.text_with(name, text)) < n_ctx;
}

void ChatShell::add_first_part() {
  documents::PagedText part = {fitting_part(too_long_name_, too_long_.text), too_long_.pages};
  std::erase_if(part.pages, [&](size_t begin) { return begin >= part.text.size(); });
  if (part.text.empty()) fail(ErrorCode::kContextExceeded, "the context has no room for any of it");
  const double percent =
      100.0 * static_cast<double>(part.text.size()) / static_cast<double>(too_long_.text.size());
  add_text(fmt::format("the first {:.{}f}% of {}", percent, percent < 1 ? 2 : 0, too_long_name_),
           part);
  too_long_ = {};
  document_failed_ = false;
}

void ChatShell::stats(const std::string& text) {
  refuse_arguments(text, "stats");
  const Session& session = session_.session();
  const SessionStats& stats = session.stats();
  std::string lines;
  const auto add = [&](const char* label, const std::string& value) {
    lines += paint(Style::dim, fmt::format("{:<12}", label), colour_stderr()) + " " +
             printable(value) + "\n";
  };
  add("chat", fmt::format("{}; {} of {} of context read", role_counts(session_.conversation()),
                          session.n_past(), plural(session.n_ctx(), "token")));
  if (const auto& last = session_.last_answer()) {
    const Generation& generation = last->generation;
    const std::string what = !last->is_complete_reading ? "what was new"
                             : last->n_reused > 0
                                 ? fmt::format("after {} that were there", last->n_reused)
                                 : "the whole chat";
    add("last answer", fmt::format("read {} ({}) in {}, {}", plural(last->n_read, "token"), what,
                                   format_seconds(last->read_seconds),
                                   format_rate(last->n_read, last->read_seconds)));
    add("", fmt::format("wrote {} in {}, {}", plural(std::ssize(generation.ids), "token"),
                        format_seconds(last->answer_seconds),
                        format_rate(std::ssize(generation.ids), last->answer_seconds)));
  }
  add("policy",
      fmt::format("{}: {}{}", session.options().kv.name, describe_policy(session.options().kv),
                  session.options().kv_refresh || session_.chooses_anew()
                      ? ", every turn from all rows"
                      : ""));
  if (stats.kv_bytes_used > 0) {
    add("KV cache",
        fmt::format("{}; a full one would take {} ({:.1f}x)", format_bytes(stats.kv_bytes_used),
                    format_bytes(stats.kv_bytes_full), stats.compression()));
  }
  if (stats.history_bytes > 0) {
    add("",
        fmt::format("and {} of uncompressed rows beside these", format_bytes(stats.history_bytes)));
  }
  if (stats.draft_bytes > 0) {
    add("", fmt::format("and {} of the model that guesses", format_bytes(stats.draft_bytes)));
  }
  if (session_.row_bytes() > 0) {
    add("", fmt::format("and {} of rows, for /regenerate, /edit and /undo",
                        format_bytes(session_.row_bytes())));
  }
  add("memory", format_bytes(peak_rss()) + " peak RSS");
  write_styled_stderr(lines + (reader_.is_terminal() ? "\n" : ""));
}

void ChatShell::policy(const std::string& text) {
  try {
    change_policy(text);
  } catch (const Error& e) {  // which names options as the command line does
    throw Error(e.code(), e.message(brief_name));
  }
}

void ChatShell::change_policy(const std::string& text) {
  if (text.empty()) {
    const PolicyConfig& now = session_.session().options().kv;
    std::vector<std::string> all = policy_names();
    return note(
        fmt::format("{}: {}; there are: {}", now.name, describe_policy(now), fmt::join(all, ", ")));
  }
  if (const chat::Document* document = session_.document(); document && !document->rows) {
    fail(ErrorCode::kUsage,
         "the rows of this document were chosen when it was stored; compress --keep-full leaves "
         "that to the questions");
  }
  CacheSettings changed = cache_;
  changed.typed_params.clear();  // options typed for another policy are dropped, not refused
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos && first) {
      changed.policy = policy_info(word).name;
    } else if (equals == std::string::npos) {
      fail(ErrorCode::kUsage, "'{}' is no PARAMETER=VALUE, such as budget=512", word);
    } else {
      const PolicyParam& param = find_param(policy_info(changed.policy), word.substr(0, equals));
      changed.params[param.name] = parse_param(param, word.substr(equals + 1));
      if (param.name != "budget" && param.name != "ratio") continue;
      changed.session.kv_memory =
          0;  // --kv-memory, budget and ratio are three ways to set one thing
      if (param.name == "budget") changed.params.erase("ratio");
    }
  }
  session_.set_session_options(
      session_options(changed, n_ctx_, &session_.session().model().info()));
  cache_ = std::move(changed);
  const PolicyConfig& now = session_.session().options().kv;
  const bool is_empty = session_.conversation().empty();
  note(fmt::format("{}: {}{}", now.name, describe_policy(now),
                   is_empty ? "" : "; the next answer chooses anew from the whole chat"));
}

void ChatShell::exit(const std::string& text) {
  refuse_arguments(text, "exit");
  done_ = true;
}

}  // namespace snapkv::cli
