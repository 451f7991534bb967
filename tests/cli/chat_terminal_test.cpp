// SPDX-License-Identifier: MIT
// snapkv chat at a terminal: editing and history, Ctrl-C, pasted text, reasoning, signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chat_support.h"
#include "terminal_session.h"

namespace snapkv::test {
namespace chat_terminal_tests {

constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kUp = "\x1b[A";

/// Arguments for an answer that ends only when the context is full.
std::vector<std::string> endless() { return chat_args({"-n", "-1", "--ignore-eos"}); }

/// Ends the chat. It waits for the prompt because until then the terminal is in line mode, where
/// Ctrl-D has another meaning.
void end(TerminalSession& chat) {
  chat.wait_for("> ");
  chat.type(kCtrlD);
  EXPECT_EQ(chat.wait_for_end(), 0);
}

TEST(ChatTerminal, GreetsHelpsAndLeaves) {
  TerminalSession chat(chat_args());
  chat.wait_for("/help lists the commands");
  chat.wait_for("> ");
  chat.type("/help\r");
  chat.wait_for("/regenerate");
  end(chat);
  TerminalSession other(chat_args());
  other.wait_for("> ");
  other.type("/exit\r");
  EXPECT_EQ(other.wait_for_end(), 0);
}

// Emacs' shell and some consoles would show the sequences themselves.
TEST(ChatTerminal, WritesNoEscapeSequencesToADumbTerminal) {
  TerminalSession chat(chat_args({"--kv-policy", "full"}), "", {{"TERM", "dumb"}});
  chat.wait_for("> ");
  chat.type("/file " + facts_file() + "\r");
  chat.wait_for("the next message begins with it");
  chat.wait_for("> ");
  chat.type("What is the secret number of Rome?\r");
  end(chat);
  EXPECT_EQ(chat.screen().find('\x1b'), std::string::npos) << chat.screen();
}

TEST(ChatTerminal, StreamsAnswersAndTakesLinesThatGoOn) {
  TerminalSession chat(chat_args({"--kv-policy", "full"}));
  chat.wait_for("> ");
  chat.type("/file " + facts_file() + "\r");
  chat.wait_for("the next message begins with it");
  chat.wait_for("> ");
  chat.type("Question: What is the secret number of Rome?\\\r");
  chat.wait_for("\n");
  chat.wait_for(". ");
  chat.type("Answer: The secret number of Rome is\r");
  chat.wait_for(" 48213");
  end(chat);
}

TEST(ChatTerminal, CtrlCStopsAnAnswerAndKeepsTheChat) {
  const std::string saved = make_folder() + "/chat.json";
  TerminalSession chat(endless());
  chat.wait_for("> ");
  for (int turn = 1; turn <= 2; ++turn) {
    chat.type("hello\r");
    chat.wait_for("hello");
    chat.wait_for("\n");
    chat.wait_for("number of");  // from the answer; its progress has other words
    chat.type(kCtrlC);
    chat.wait_for("stopped by Ctrl-C; the answer so far is part of the chat");
    chat.wait_for("> ");
  }
  chat.type("/save " + saved + "\r");
  chat.wait_for("4 messages in");
  chat.wait_for("> ");
  chat.type("/exit\r");
  EXPECT_EQ(chat.wait_for_end(), 0);
  const auto messages = nlohmann::json::parse(read_file(saved)).at("messages");
  EXPECT_NE(messages.at(1).at("content"), "");
}

TEST(ChatTerminal, CtrlCWhileAMessageIsReadTakesItBack) {
  const std::string book = make_file("book.txt", rome_prompt(300));
  TerminalSession chat(chat_args({"--chunk", "16", "--compute", "f32"}));
  chat.wait_for("> ");
  chat.type("/file " + book + "\r");
  chat.wait_for("begins with it");
  chat.wait_for("> ");
  chat.type("hello\r");
  chat.wait_for("prefill");
  chat.type(kCtrlC);
  chat.type(kCtrlC);  // pressing it twice loses nothing
  chat.wait_for("not part of the chat");
  chat.wait_for("> ");
  chat.type("/stats\r");
  chat.wait_for("0 messages");
  end(chat);
}

TEST(ChatTerminal, CtrlCAtThePromptDropsTheLineAndTwiceLeaves) {
  TerminalSession chat(chat_args());
  chat.wait_for("> ");
  chat.type("/exit now");
  chat.wait_for("now");
  chat.type(kCtrlC);
  chat.wait_for("Ctrl-C again");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("there is no system message");
  chat.wait_for("> ");
  chat.type(kCtrlC);
  chat.wait_for("Ctrl-C again");
  chat.wait_for("> ");
  chat.type(kCtrlC);
  EXPECT_EQ(chat.wait_for_end(), 130);
}

TEST(ChatTerminal, OtherSignalsEndIt) {
  for (const int number : {SIGTERM, SIGHUP}) {
    TerminalSession chat(chat_args());
    chat.wait_for("> ");
    kill(chat.pid(), number);
    EXPECT_EQ(chat.wait_for_end(), 128 + number);
    TerminalSession answering(endless());
    answering.wait_for("> ");
    answering.type("hello\r");
    answering.wait_for("hello");
    answering.wait_for("number of");
    kill(answering.pid(), number);
    EXPECT_EQ(answering.wait_for_end(), 128 + number);
  }
}

TEST(ChatTerminal, LinesAreEditedAndHaveAnyCharacters) {
  TerminalSession chat(chat_args());
  chat.wait_for("> ");
  chat.type("/systex\x7fm grx\x7f\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\r");
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("system message: gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80]");
  chat.wait_for("> ");
  chat.type(
      "/system b\x01\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C"
      "a\r");  // Ctrl-A, then the right arrow
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("system message: ab]");
  end(chat);
}

// A terminal not set to UTF-8 sends such bytes: the byte that follows is a separate character.
TEST(ChatTerminal, BrokenCharactersTakeNoOtherWithThem) {
  TerminalSession chat(chat_args());
  chat.wait_for("> ");
  chat.type("/system a\xe4\r");
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("system message: a\xef\xbf\xbd]");
  chat.wait_for("> ");
  chat.type("/system a\xe4\xf0\xc3\xa4z\xc3\x7f\r");  // the last byte is deleted again
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("system message: a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4z]");
  end(chat);
}

TEST(ChatTerminal, PastedTextIsOneMessage) {
  TerminalSession chat(chat_args());
  chat.wait_for("> ");
  chat.type("\x1b[200~/system one\rtwo\r\x1b[201~");
  chat.wait_for("two");
  chat.type("\r");
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  chat.wait_for("system message: one\r\ntwo]");
  end(chat);
}

// The line is drawn once more from its first row, where the terminal has wrapped it anew.
TEST(ChatTerminal, AResizedTerminalGetsTheLineOnce) {
  TerminalSession chat(chat_args());
  chat.wait_for("> ");
  const std::string text = "/system " + std::string(121, 'a') + "b";  // with the prompt 132 columns
  chat.type(text);
  chat.wait_for("b");
  chat.resize(40);
  chat.wait_for("\x1b[3A\r\x1b[J");
  EXPECT_NE(chat.wait_for("b").find("> /system aaa"), std::string::npos);
  chat.resize(200);
  chat.wait_for("\r\x1b[J");
  EXPECT_NE(chat.wait_for("b").find("> " + text), std::string::npos) << "in one row";
  chat.type("\x01\x1b[C\x1b[C");  // in the first row, whatever comes after it
  chat.resize(40);
  chat.wait_for("\r\x1b[J");
  chat.wait_for("b");
  chat.type(
      "\x05"
      "c\r");
  chat.wait_for("system message set");
  chat.wait_for("> ");
  chat.type("/system\r");
  EXPECT_NE(chat.wait_for("bc]").find("system message: aaa"), std::string::npos);
  end(chat);
}

TEST(ChatTerminal, TabCompletesCommandsAndPaths) {
  const std::string folder = make_folder();
  for (const char* name : {"a book.txt", "a bowl.txt", "other.txt", ".hidden.txt"}) {
    std::ofstream(folder + "/" + name) << "A text.";
  }
  std::filesystem::create_directory(folder + "/shelf");
  std::ofstream(folder + "/shelf/alone.txt") << "A text.";
  TerminalSession chat(chat_args({"-n", "1"}));
  chat.wait_for("> ");
  chat.type("/fi\t" + folder + "/sh\t\t\r");
  chat.wait_for("alone.txt: ");
  chat.wait_for("> ");
  chat.type("/file \"" + folder + "/a b\t");  // two of them begin so
  chat.wait_for("/a b");
  chat.wait_for("o");
  chat.type("\t");
  const std::string listed = chat.wait_for("> /file");
  EXPECT_NE(listed.find("a book.txt\""), std::string::npos) << listed;
  EXPECT_NE(listed.find("a bowl.txt\""), std::string::npos) << listed;
  EXPECT_EQ(listed.find("other.txt"), std::string::npos) << listed;
  chat.type("o\t\r");
  chat.wait_for("a book.txt: ");
  chat.wait_for("> ");
  chat.type("/file " + folder + "/\t");
  const std::string all = chat.wait_for("> /file");
  EXPECT_NE(all.find("shelf/"), std::string::npos) << all;
  EXPECT_EQ(all.find(".hidden"), std::string::npos) << all;
  chat.type(kCtrlC);
  chat.wait_for("> ");
  chat.type("/policy strea\tbudget=50\r");
  chat.wait_for("streaming-llm: 50 rows kept");
  chat.wait_for("> ");
  chat.type("/nosuch\t\r");  // a Tab that knows nothing changes nothing
  chat.wait_for("there is no command '/nosuch'");
  end(chat);
}

TEST(ChatTerminal, CtrlCInRegenerateLeavesTheChatAsItWas) {
  const std::string saved = make_folder() + "/chat.json";
  const std::string book = make_file("book.txt", rome_prompt(150));
  // with a limit no rows are kept, so that all of it is read again
  TerminalSession chat(chat_args(
      {"-n", "2", "--chunk", "16", "--compute", "f32", "--memory-limit", "2G", "--no-history"}));
  chat.wait_for("> ");
  chat.type("/file " + book + "\r");
  chat.wait_for("begins with it");
  chat.wait_for("> ");
  chat.type("hello\r");
  chat.wait_for("stopped after 2 tokens");
  chat.wait_for("> ");
  chat.type("/save " + saved + "\r");
  chat.wait_for("2 messages in");
  const std::string before = read_file(saved);
  chat.wait_for("> ");
  chat.type("/regenerate\r");
  chat.wait_for("prefill");
  chat.type(kCtrlC);
  chat.wait_for("before an answer began; the chat is as it was");
  chat.wait_for("> ");
  chat.type("/save " + saved + "\r");
  chat.wait_for("2 messages in");
  EXPECT_EQ(read_file(saved), before);
  end(chat);
}

TEST(ChatTerminal, HistoryOutlivesTheChatAndIsPrivate) {
  const std::string home = make_folder();
  {
    TerminalSession chat(chat_args(), home);
    chat.wait_for("> ");
    chat.type("/system one\r");
    chat.wait_for("system message set");
    end(chat);
  }
  const std::string history = home + "/.local/state/snapkv/chat_history";
  struct stat status = {};
  ASSERT_EQ(stat(history.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(chmod(history.c_str(), 0644), 0);
  {
    TerminalSession chat(chat_args(), home);
    chat.wait_for("> ");
    chat.type(kUp);
    chat.wait_for("/system one");
    chat.type(" two\r");
    chat.wait_for("system message set");
    chat.wait_for("> ");
    chat.type("/system\r");
    chat.wait_for("system message: one two]");
    end(chat);
  }
  ASSERT_EQ(stat(history.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "what was readable for others stays so";
  const std::string other = make_folder();
  TerminalSession chat(chat_args({"--no-history"}), other);
  chat.wait_for("> ");
  chat.type("/system one\r");
  chat.wait_for("system message set");
  end(chat);
  EXPECT_NE(stat((other + "/.local").c_str(), &status), 0);
}

TEST(ChatTerminal, EditBringsTheLastMessageBack) {
  const std::string saved = make_folder() + "/chat.json", file = make_file("a.txt", "A file.");
  TerminalSession chat(chat_args({"-n", "1"}));
  chat.wait_for("> ");
  chat.type("/file " + file + "\r");
  chat.wait_for("begins with it");
  chat.wait_for("> ");
  chat.type("one\\\r");
  chat.wait_for("\n");
  chat.type("two\r");
  chat.wait_for("stopped after 1 token");
  chat.wait_for("> ");
  chat.type("/edit\r");
  chat.wait_for("edit> ");
  chat.wait_for("two");
  chat.type(" and three\r");
  chat.wait_for("stopped after 1 token");
  chat.wait_for("> ");
  chat.type("/edit\r");
  chat.wait_for("edit> ");
  chat.wait_for("three");
  chat.type(kCtrlC);  // has no effect
  chat.wait_for("> ");
  chat.type("/save " + saved + "\r");
  chat.wait_for("2 messages in");
  end(chat);
  EXPECT_EQ(nlohmann::json::parse(read_file(saved)).at("messages").at(0).at("content"),
            "A file.\n\none\ntwo and three");
}

TEST(ChatTerminal, ReasoningIsDimmed) {
  TerminalSession chat(chat_args({"-n", "3", "--ignore-eos"}, plain_template("<think>\n")));
  chat.wait_for("> ");
  chat.type("hello\r");
  const std::string shown = chat.wait_for("stopped after 3 tokens");
  const size_t dim = shown.find("\x1b[2m");
  ASSERT_NE(dim, std::string::npos) << shown;
  EXPECT_NE(shown[dim + 4], '[') << shown;  // the answer, not the note after it
  EXPECT_NE(shown.find("\x1b[0m", dim), std::string::npos) << shown;
  end(chat);
}

// Of an answer with channels; what is kept for later messages is the answer alone.
TEST(ChatTerminal, ReasoningOfAChannelIsDimmedAndNotKept) {
  const std::string saved = make_folder() + "/chat.json";
  TerminalSession chat(
      chat_args({"-n", "3", "--ignore-eos"},
                plain_template("<|start|>assistant<|channel|>analysis<|message|>")));
  chat.wait_for("> ");
  chat.type("hello\r");
  const std::string shown = chat.wait_for("stopped after 3 tokens");
  EXPECT_NE(shown.find("\x1b[2m<think>"), std::string::npos) << shown;
  EXPECT_NE(shown.find("</think>"), std::string::npos) << shown;
  chat.wait_for("> ");
  chat.type("/save " + saved + "\r");
  chat.wait_for("2 messages in");
  end(chat);
  EXPECT_EQ(nlohmann::json::parse(read_file(saved)).at("messages").at(1).at("content"), "");
}

}  // namespace chat_terminal_tests
}  // namespace snapkv::test
