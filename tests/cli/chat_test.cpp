// SPDX-License-Identifier: MIT
// snapkv chat through a pipe: every line is a message or a command, and stdout gets the answers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "chat_support.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace chat_tests {

using namespace std::string_literals;

Result chat(const std::string& input, const std::vector<std::string>& more = {},
            const std::string& template_text = plain_template()) {
  Command command;
  command.args = chat_args(more, template_text);
  command.input = input;
  return run(command);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::vector<std::string> full_cache() { return {"--kv-policy", "full"}; }

Json messages_of(const std::string& file) { return Json::parse(read_file(file)).at("messages"); }

TEST(Chat, WritesTheAnswersOfAPipeAndNothingElseToStdout) {
  const Result r = chat("/file " + facts_file() + "\n" + question() + question(), full_cache());
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(count(r.out, " 48213"), 2) << r.out;
  EXPECT_EQ(count(r.out, "\n"), 2) << r.out;
  EXPECT_TRUE(contains(r.err, "the next message begins with it")) << r.err;
}

TEST(Chat, ALineWithoutANewlineIsAMessageTooAndBlankOnesAreNone) {
  const Result r = chat("\n  \r\nhi", {"-n", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(count(r.out, "\n"), 1) << r.out;
  const Result nothing = chat("");
  EXPECT_EQ(nothing.code, 0);
  EXPECT_EQ(nothing.out, "");
}

// A turn that reads only the new text gives the same answer as reading the whole conversation.
TEST(Chat, LaterTurnsReadOnlyWhatIsNew) {
  const std::string saved = make_folder() + "/chat.json";
  const Result turns = chat("/file " + facts_file() + "\n" + question() + "/stats\n" + question() +
                                "/stats\n/save " + saved + "\n",
                            full_cache());
  EXPECT_EQ(turns.code, 0) << turns.err;
  EXPECT_EQ(count(turns.err, "(the whole chat)"), 1) << turns.err;
  EXPECT_EQ(count(turns.err, "(what was new)"), 1) << turns.err;
  ASSERT_EQ(messages_of(saved).size(), 4u);
  const Result again = chat("/load " + saved + "\n/regenerate\n/stats\n", full_cache());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(count(again.err, "(the whole chat)"), 1) << again.err;
  EXPECT_EQ(turns.out, again.out + again.out);
}

TEST(Chat, CompressesAndRefreshes) {
  const std::vector<std::string> small = {"--kv-budget", "64",          "--kv-window",
                                          "16",          "--kv-kernel", "15"};
  std::vector<std::string> refreshed = small;
  refreshed.emplace_back("--kv-refresh");
  for (const auto& options : {small, refreshed}) {
    const Result r =
        chat("/file " + facts_file() + "\n" + question() + question() + "/stats\n", options);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(count(r.out, " 48213"), 2) << r.out;
    EXPECT_TRUE(contains(r.err, "64 rows kept")) << r.err;
    EXPECT_EQ(contains(r.err, "uncompressed rows"), options == refreshed) << r.err;
  }
}

TEST(Chat, UndoEditResetAndRegenerateChangeTheConversation) {
  const std::string saved = make_folder() + "/chat.json";
  const auto contents_after = [&](const std::string& commands) {
    const Result r = chat("one\ntwo\n" + commands + "/save " + saved + "\n", {"-n", "1"});
    EXPECT_EQ(r.code, 0) << r.err;
    std::vector<std::string> users;
    for (const Json& message : messages_of(saved)) {
      if (message.at("role") == "user") users.push_back(message.at("content"));
    }
    return users;
  };
  using Users = std::vector<std::string>;
  EXPECT_EQ(contents_after(""), (Users{"one", "two"}));
  EXPECT_EQ(contents_after("/undo\n"), (Users{"one"}));
  EXPECT_EQ(contents_after("/undo\n/undo\nthree\n"), (Users{"three"}));
  EXPECT_EQ(contents_after("/edit three\n"), (Users{"one", "three"}));
  EXPECT_EQ(contents_after("/regenerate\n"), (Users{"one", "two"}));
  EXPECT_EQ(contents_after("/reset\n"), Users{});
  EXPECT_EQ(contents_after("//three\n"), (Users{"one", "two", "/three"}));
  EXPECT_EQ(contents_after("three\\\nfour\n"), (Users{"one", "two", "three\nfour"}));
  const Result again = chat("one\n/regenerate\n", {"-n", "3"});
  const std::string half = again.out.substr(0, again.out.size() / 2);
  EXPECT_EQ(again.out, half + half);  // a greedy answer is the same each time
}

TEST(Chat, FilesStayWithTheMessageThatTheyBegin) {
  const std::string saved = make_folder() + "/chat.json", file = make_file("a.txt", "From a file.");
  const Result r = chat(
      "/file " + file + "\n/file off\n/file " + file + "\none\n/edit two\n/save " + saved + "\n",
      {"-n", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(messages_of(saved).at(0).at("content"), "From a file.\n\ntwo");
}

// A message without an answer is not part of the chat, so its file goes to the next message.
TEST(Chat, FilesWaitForAMessageThatIsAnswered) {
  const std::string book = make_file("book.txt", rome_prompt(40));
  const Result none = chat("/file " + book + "\nhi\n/stats\n/edit x\n", {"-n", "0"});
  EXPECT_EQ(none.code, 2) << none.err;
  EXPECT_TRUE(contains(none.err, "0 tokens, as --n-predict says; the message is not part of the"))
      << none.err;
  EXPECT_TRUE(contains(none.err, "0 messages; ")) << none.err;
  const std::string saved = make_folder() + "/chat.json";
  const std::string file = make_file("a.txt", "From a file.");
  const Result r =
      chat("/file " + file + "\n\xff\n/file off\n/file " + file + "\nhi\nhi\n/save " + saved + "\n",
           {"-n", "1"});
  EXPECT_EQ(messages_of(saved).at(0).at("content"), "From a file.\n\nhi") << r.err;
  EXPECT_EQ(messages_of(saved).at(2).at("content"), "hi");
}

TEST(Chat, TheSystemMessageComesFirstAndStays) {
  const std::string saved = make_folder() + "/chat.json";
  const Result r = chat("/system\n/system Be brief.\nhi\n/reset\n/system\n/save " + saved +
                            "\n/system off\n/system\n",
                        {"--system", "Be kind.", "-n", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "system message: Be kind.")) << r.err;
  EXPECT_TRUE(contains(r.err, "system message: Be brief.")) << r.err;
  EXPECT_TRUE(contains(r.err, "there is no system message")) << r.err;
  EXPECT_EQ(messages_of(saved), Json::parse(R"([{"role": "system", "content": "Be brief."}])"));
}

TEST(Chat, SavesWhatApplyTemplateReads) {
  const std::string saved = make_folder() + "/chat.json";
  ASSERT_EQ(chat("h\xc3\xa4llo\n/save " + saved + "\n", {"-n", "1"}).code, 0);
  const Result r =
      run({"apply-template", "--chat-template", "{{ messages[0].content }}", "-f", saved});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "h\xc3\xa4llo");
  // /load also reads a list of messages, and /regenerate answers the last of them.
  const std::string list = make_file("list.json", R"([{"role": "user", "content": "hi"}])");
  const Result loaded = chat("/load " + list + "\n/regenerate\n/save " + saved + "\n", {"-n", "1"});
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_TRUE(contains(loaded.err, "/regenerate makes it")) << loaded.err;
  EXPECT_EQ(messages_of(saved).size(), 2u);
}

// /load accepts more than /save writes, and saving over such a file would lose the rest of it.
TEST(Chat, SaveReplacesSavedChatsOnly) {
  const std::string message = R"({"role": "user", "content": "hi"})";
  for (const std::string& text :
       {"[" + message + "]", R"({"messages": [)" + message + R"(], "note": "precious"})",
        R"({"messages": [)" + message + R"(], "tools": []})",
        std::string(R"({"messages": [{"role": "system", "content": "x", "name": "y"}]})"),
        R"({"messages": [{"role": "system", "content": ""}, )" + message + "]}"}) {
    SCOPED_TRACE(text);
    const std::string file = make_file("mine.json", text);
    const Result r = chat("hi\n/save " + file + "\n", {"-n", "1"});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, "not a saved chat")) << r.err;
    EXPECT_EQ(read_file(file), text);
  }
  const std::string own = make_file("own.json", R"({"messages": [)" + message + "]}");
  const std::string system = make_folder() + "/system.json";
  const Result r = chat(
      "/system Be brief.\nhi\n/save " + system + "\nhi\n/save " + system + "\n/save " + own + "\n",
      {"-n", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(messages_of(system).size(), 5u);
  EXPECT_EQ(messages_of(own).size(), 5u);
}

TEST(Chat, PolicyChangesWhatIsKept) {
  const Result r = chat("/policy\n/policy streaming-llm budget=48 window=16 sinks=4\n/file " +
                        facts_file() + "\nhi\n/stats\n/policy full\nhi\n/stats\n");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "snapkv-max: 1024 rows kept")) << r.err;
  EXPECT_TRUE(contains(r.err, "streaming-llm: 48 rows kept")) << r.err;
  EXPECT_TRUE(contains(r.err, "full: everything kept; the next answer chooses anew")) << r.err;
}

TEST(Chat, StatsAndHelpTellWhatTheySay) {
  const Result r = chat("/stats\nhi\n/stats\n/help\n", {"-n", "2"});
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* word :
       {"0 messages; 0 of 8192 tokens", "2 messages; ", "last answer", "wrote 2 tokens", "KV cache",
        "peak RSS", "/regenerate", "/undo", "Ctrl-C"}) {
    EXPECT_TRUE(contains(r.err, word)) << word << "\n" << r.err;
  }
}

TEST(Chat, ExitLeavesAtOnce) {
  for (const char* command : {"/exit", "/quit", "/bye"}) {
    const Result r = chat(std::string(command) + "\nhi\n");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

TEST(Chat, CommandsOfOtherProgramsMeanTheSameOrAreExplained) {
  const Result same = chat("hi\n/regen\n/clear\n/?\n/read nosuch.txt\n", {"-n", "1"});
  EXPECT_EQ(count(same.out, "\n"), 2) << same.err;
  EXPECT_TRUE(contains(same.err, "nosuch.txt")) << same.err;
  EXPECT_FALSE(contains(same.err, "there is no command")) << same.err;
  const Result other = chat("/set temperature 1\n/show info\n/regenarate\n");
  EXPECT_EQ(other.code, 2);
  for (const char* const part : {"'/set'; options are given", "'/show'; /stats, /system",
                                 "'/regenarate'; did you mean /regenerate?"}) {
    EXPECT_TRUE(contains(other.err, part)) << part << " in\n" << other.err;
  }
}

TEST(Chat, ErrorsNameWhatIsWrongAndTheChatGoesOn) {
  const std::string precious = make_file("notes.txt", "precious");
  const struct {
    std::string line;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {"/nosuch", 2, {"'/nosuch'", "/help"}},
      {"/undo", 2, {"no message"}},
      {"/regenerate", 2, {"no message"}},
      {"/edit x", 2, {"no message"}},
      {"/undo 2", 2, {"/undo takes nothing", "'2'"}},
      {"/save", 2, {"/save PATH"}},
      {"/save " + precious, 2, {"notes.txt", "not a saved chat"}},
      {"/save /nosuch/chat.json", 1, {"/nosuch/chat.json"}},
      {"/load " + precious, 2, {"notes.txt", "'messages'"}},
      {"/load nosuch.json", 1, {"nosuch.json"}},
      {"/load " + make_file("deep.json", std::string(300'000, '[') + std::string(300'000, ']')),
       2,
       {"deep.json", "'messages'"}},
      {"/load " + make_file("a.json", R"([{"role": "user", "content": 1}])"), 2, {"message 0"}},
      {"/file nosuch.txt", 1, {"nosuch.txt"}},
      {"/file " + make_file("empty.txt", ""), 2, {"empty.txt", "empty"}},
      {"/file " + make_file("cp1251.txt", "\xcf\xf0\xe8\xe2\xe5\xf2"), 2, {"cp1251.txt", "UTF-8"}},
      {"/file " + make_file("a.gif", "GIF89a\1\0\1\0"s), 2, {"a.gif", "a GIF image"}},
      {"/file \"a b.txt", 2, {"\"a b.txt", "not closed"}},
      {"/policy nosuch", 2, {"nosuch", "snapkv"}},
      {"/policy snapkv size=3", 2, {"'size'", "budget", "kernel"}},
      {"/policy snapkv budget", 2, {"'budget'", "PARAMETER=VALUE"}},
      {"/policy snapkv budget=-3", 2, {"error: budget", "-3"}},
      {"/policy budget=abc", 2, {"error: budget", "abc"}},
      {"\xff\xfe", 2, {"UTF-8"}},
  };
  for (const auto& c : cases) {
    const Result r = chat(c.line + "\nhi\n", {"-n", "1"});
    EXPECT_EQ(r.code, c.code) << c.line << r.err;
    // the answer to the line after it, which is not answered without a document before it
    const bool is_document = c.line.starts_with("/file");
    EXPECT_EQ(count(r.out, "\n"), is_document ? 0 : 1) << c.line << r.out;
    EXPECT_EQ(contains(r.err, "not sent: the document"), is_document) << r.err;
    for (const std::string& word : c.words) EXPECT_TRUE(contains(r.err, word)) << word << r.err;
  }
  EXPECT_EQ(read_file(precious), "precious");
  const Result edit = chat("hi\n/edit\n", {"-n", "1"});
  EXPECT_EQ(edit.code, 2);
  EXPECT_TRUE(contains(edit.err, "/edit TEXT")) << edit.err;
}

TEST(Chat, SeveralFilesHaveTheirNames) {
  const std::string one = make_file("one.txt", "First.\n"), two = make_file("two.txt", "Second.");
  const std::string saved = make_folder() + "/chat.json";
  const Result r =
      chat("/file " + one + "\nhi\n/file " + one + "\n/file " + two + "\nho\n/save " + saved + "\n",
           {"-n", "1"});
  EXPECT_EQ(r.code, 0) << r.err;
  const auto messages = nlohmann::json::parse(read_file(saved)).at("messages");
  EXPECT_EQ(messages.at(0).at("content"), "First.\n\nhi");
  EXPECT_EQ(messages.at(2).at("content"), "<document title=\"" + one +
                                              "\">\nFirst.\n</document>\n\n<document title=\"" +
                                              two + "\">\nSecond.\n</document>\n\nho");
}

TEST(Chat, AMessageThatDoesNotFitIsNoPartOfTheChat) {
  const std::string book = make_file("book.txt", rome_prompt(40));
  const Result r =
      chat("hi\n/file " + book + "\nwhat?\n/reset\nhi\n/stats\n", {"-c", "200", "-n", "2"});
  EXPECT_EQ(r.code, 5) << r.err;
  EXPECT_TRUE(contains(r.err, "200")) << r.err;
  EXPECT_TRUE(contains(r.err, "--ctx-size")) << r.err;
  EXPECT_TRUE(contains(r.err, "2 messages; ")) << r.err;
  EXPECT_EQ(count(r.out, "\n"), 2) << r.out;
}

// Of a document that is much longer than the context, too: half a percent of this one is more than
// the context.
TEST(Chat, AsMuchOfALongDocumentAsFitsIsAdded) {
  std::string log;
  for (int i = 0; i < 40'000; ++i) log += "At noon the wind came from the sea.\n";
  const Result r = chat("/file first " + make_file("log.txt", log) + "\n", {"-c", "400"});
  EXPECT_EQ(r.code, 0) << r.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(
      r.err, match, std::regex("the first 0\\.(\\d\\d)% of \\S+: \\d+ tokens, (\\d+) of 400 ")))
      << r.err;
  EXPECT_NE(match[1], "00");
  EXPECT_GE(std::stoi(match[2]), 330) << r.err;
  EXPECT_LT(std::stoi(match[2]), 400) << r.err;
}

// Rows of what is the same are there already: a document is read once.
TEST(Chat, AnotherAnswerReadsOnlyWhatHasChanged) {
  const std::string ask = "/file " + facts_file() + "\n" + question();
  const auto reused = [&](const std::string& then, const std::vector<std::string>& options) {
    const Result r = chat(ask + then + "/stats\n", options);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_GE(count(r.out, " 48213"), 2) << r.out << r.err;
    const size_t at = r.err.find(" that were there");
    return at == std::string::npos ? 0 : std::stoi(r.err.substr(r.err.rfind(' ', at - 1) + 1));
  };
  for (const std::vector<std::string>& options :
       {full_cache(), std::vector<std::string>{"--kv-budget", "64"},
        std::vector<std::string>{"--kv-budget", "64", "--kv-refresh"}}) {
    EXPECT_GT(reused("/regenerate\n", options), 150);
    EXPECT_GT(reused("/edit " + question(), options), 150);
    EXPECT_GT(reused("hi\n/undo\n/regenerate\n", options), 150);
  }
  EXPECT_EQ(reused("/reset\n" + ask, full_cache()), 0);
  EXPECT_EQ(reused("/regenerate\n", {"--kv-policy", "h2o", "--kv-budget", "4096"}), 0)
      << "it observes every query";
}

// docs/chat.md shows these lines, and what comes of them.
TEST(Chat, TheSessionOfItsDocumentIsTrue) {
  const std::filesystem::path root =
      std::filesystem::path(needle_model()).parent_path().parent_path();
  const std::string document = read_file((root / "docs/chat.md").string());
  Command command;
  command.args = {"chat",
                  "-m",
                  needle_model(),
                  "--chat-template",
                  (root / "examples/lines.jinja").string(),
                  "--temp",
                  "0",
                  "-n",
                  "7",
                  "--kv-policy",
                  "snapkv",
                  "--kv-budget",
                  "64",
                  "--kv-window",
                  "32",
                  "--kv-kernel",
                  "7",
                  "--kv-refresh"};
  command.input = "/file " + (root / "examples/facts.txt").string() + "\n" + question() +
                  "/policy kernel=15 window=16\n/regenerate\n" + question() + "/undo\n";
  const Result r = run(command);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 48211.\n 48213.\n 48213.\n");
  size_t at = 0;
  for (const char* line : {"examples/facts.txt: 155 tokens, 157 of 8192 with the chat; the next "
                           "message begins with it",
                           "stopped after 7 tokens, as --n-predict says",
                           "64 rows kept, window 16, kernel 15; the next answer chooses anew from "
                           "the whole chat",
                           "2 messages left"}) {
    EXPECT_TRUE(contains(r.err, line)) << line << "\n" << r.err;
    at = document.find(line, at);
    EXPECT_NE(at, std::string::npos) << line << " is not in docs/chat.md";
  }
}

TEST(Chat, StopsAtATextThatIsNotWritten) {
  const Result r = chat("/file " + facts_file() + "\n" + question(),
                        {"--kv-policy", "full", "--stop", "13", "--stop", "never"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 482\n");
}

TEST(Chat, PathsMayHaveQuotesOrBackslashesOrNeither) {
  const std::string folder = make_folder(), saved = folder + "/chat.json";
  const std::string file = folder + "/it's \"a\" file.txt";
  std::ofstream(file) << "A text.";
  const auto replaced = [](std::string text, const std::string& part, const std::string& by) {
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size()) {
      text.replace(at, part.size(), by);
    }
    return text;
  };
  const std::string in_double = "\"" + replaced(file, "\"", "\\\"") + "\"";
  std::string escaped = file;
  for (const char* c : {" ", "'", "\""}) escaped = replaced(escaped, c, std::string("\\") + c);
  const std::string plain = folder + "/plain name.txt";
  std::ofstream(plain) << "A text.";
  for (const std::string& typed : {file, in_double, escaped, "'" + plain + "'"}) {
    const Result r = chat("/file " + typed + "\nhi\n", {"-n", "1"});
    EXPECT_EQ(r.code, 0) << typed << r.err;
    EXPECT_TRUE(contains(r.err, "begins with it")) << typed << r.err;
  }
  EXPECT_EQ(chat("hi\n/save \"" + folder + "/a chat.json\"\n", {"-n", "1"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/a chat.json"));
}

TEST(Chat, ATemplateThatRefusesAMessageIsAnError) {
  const Result r = chat("one\ntwo\n", {"-n", "1"},
                        "{% if messages | length > 1 %}{{ raise_exception('one only') }}{% endif %}"
                        "{{ messages[0].content }}");
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_TRUE(contains(r.err, "one only")) << r.err;
  EXPECT_EQ(count(r.out, "\n"), 1) << r.out;
}

TEST(Chat, WrongUseIsAnErrorBeforeTheFirstMessage) {
  const struct {
    std::vector<std::string> args;
    int code;
    std::vector<std::string> words;
  } cases[] = {
      {{"chat"}, 2, {"no model"}},
      {{"chat", "-m", needle_model()},
       2,
       {"has no chat template", "base model", "snapkv generate -m", "--chat-template"}},
      {{"chat", "-m", needle_model(), "--chat-template", "nosuch"}, 2, {"nosuch"}},
      {{"chat", "-m", needle_model(), "--chat-template", "chatml", "--seed", "x"}, 2, {"--seed"}},
      {{"chat", "-m", needle_model(), "--chat-template", "chatml", "--system", "h\xe4h"},
       2,
       {"--system", "UTF-8"}},
      {{"chat", "-m", needle_model(), "--chat-template", "chatml", "--chat-template-kwargs", "{"},
       2,
       {"--chat-template-kwargs"}},
  };
  for (const auto& c : cases) {
    const Result r = run(c.args);
    EXPECT_EQ(r.code, c.code) << r.err;
    EXPECT_EQ(r.out, "");
    for (const std::string& word : c.words) EXPECT_TRUE(contains(r.err, word)) << word << r.err;
  }
}

/// Makes a model with its own chat template.
std::string model_with_template() {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/huggingface/golden/llama.json");
  const std::string folder = make_folder();
  write_oracle_folder(folder, Json::parse(in));
  write_text(folder + "/chat_template.jinja",
             "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
             "{% if add_generation_prompt %}assistant:{% endif %}");
  return folder;
}

TEST(Chat, UsesTheTemplateOfTheModel) {
  const std::string model = model_with_template();
  const Result text = run({"apply-template", "-m", model, "-f",
                           make_file("m.json", R"([{"role": "user", "content": "ab"}])")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "<s>user: ab\nassistant:");
  EXPECT_EQ(run({"apply-template", "-m", model, "--no-generation-prompt", "-f",
                 make_file("m.json", R"([{"role": "user", "content": "ab"}])")})
                .out,
            "<s>user: ab\n");
  const std::vector<std::string> sampling = {"--temp", "0", "-n", "5", "--ignore-eos"};
  const auto with = [&](std::vector<std::string> args) {
    args.insert(args.end(), sampling.begin(), sampling.end());
    return args;
  };
  Command piped;
  piped.args = with({"chat", "-m", model});
  piped.input = "ab\n";
  const Result chatted = run(piped);
  EXPECT_EQ(chatted.code, 0) << chatted.err;
  const Result generated = run(with({"generate", "-m", model, "--chat", "-p", "ab"}));
  EXPECT_EQ(generated.code, 0) << generated.err;
  EXPECT_FALSE(contains(generated.err, "chat template")) << generated.err;
  EXPECT_EQ(chatted.out, generated.out);
  EXPECT_EQ(run(with({"generate", "-m", model, "-p", "ab"})).out, generated.out)
      << "a model with a template is asked through it";
  const Result by_hand =
      run(with({"generate", "-m", model, "--no-bos", "-p", "<s>user: ab\nassistant:"}));
  EXPECT_EQ(by_hand.out, generated.out);
  const Result with_system =
      run(with({"generate", "-m", model, "--chat", "--system", "x", "-p", "ab", "--json"}));
  EXPECT_GT(Json::parse(with_system.out).at("prompt_tokens"),
            Json::parse(run(with({"generate", "-m", model, "--chat", "-p", "ab", "--json"})).out)
                .at("prompt_tokens"));
}

TEST(Chat, GenerateSaysThatTheTemplateWasNotUsed) {
  const std::string model = model_with_template();
  const auto generate = [&](std::vector<std::string> more) {
    std::vector<std::string> args = {"generate", "-m", model, "-n", "2", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Result r = run(args);
    EXPECT_EQ(r.code, 0) << r.err;
    return std::pair(Json::parse(r.out), r.err);
  };
  EXPECT_EQ(generate({"-p", "ab"}).first.at("chat"), true);
  const auto [plain, plain_err] = generate({"-p", "ab", "--no-chat"});
  EXPECT_EQ(plain.at("chat"), false);
  EXPECT_EQ(plain.at("misses_chat_template"), true);
  EXPECT_TRUE(plain_err.starts_with("template     the model has a chat template")) << plain_err;
  const auto [made, made_err] = generate({"-p", "<s>user: ab\nassistant:", "--no-bos"});
  EXPECT_EQ(made.at("chat"), false) << "a prompt with control tokens";
  EXPECT_TRUE(contains(made_err, "control tokens of its own")) << made_err;
  const std::string cache = make_folder() + "/a.cache";
  EXPECT_EQ(generate({"-p", "ab", "--save-cache", cache}).first.at("chat"), false);
  EXPECT_EQ(generate({"-p", "ab", "--load-cache", cache}).first.at("chat"), false);
  EXPECT_EQ(generate({"-p", "ab", "--chat", "--load-cache", cache}).first.at("chat"), true);
  EXPECT_FALSE(
      contains(run({"generate", "-m", needle_model(), "-p", "a", "-n", "1"}).err, "chat template"));
  const Result both = run({"generate", "-m", model, "-p", "a", "--system", "x", "--no-chat"});
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(contains(both.err, "--no-chat")) << both.err;
  const Result none = run({"generate", "-m", needle_model(), "-p", "a", "--system", "x"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "has no chat template")) << none.err;
}

}  // namespace chat_tests
}  // namespace snapkv::test
