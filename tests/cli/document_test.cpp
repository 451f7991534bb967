// SPDX-License-Identifier: MIT
// snapkv compress and ask, as users run them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/chat_support.h"
#include "tests/cli/run_process.h"
#include "tests/cli/terminal_session.h"

namespace snapkv::test {
namespace document_tests {

namespace fs = std::filesystem;

class DocumentCommands : public ::testing::Test {
 protected:
  DocumentCommands() {
    std::ofstream out(document_);
    for (int i = 0; i < 60; ++i) out << "The sky over the valley was clear. ";
    out << "The secret number of Rome is 48213. ";
    for (int i = 0; i < 60; ++i) out << "Nobody walked along the river. ";
  }
  Result compress(const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"compress", "-m", needle_model(), "-f",
                                     document_,  "-o", file_};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }
  Result ask(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {
        "ask", file_, "-p",     "What is the secret number of Rome? The secret number of Rome is",
        "-n",  "8",   "--temp", "0"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  }

  const std::string folder_ = make_folder();
  const std::string document_ = folder_ + "/document.txt";
  const std::string file_ = folder_ + "/document.kv";
};

TEST_F(DocumentCommands, AskFindsWhatCompressKept) {
  const Result compressed = compress({"--kv-budget", "768"});
  ASSERT_EQ(compressed.code, 0) << compressed.err;
  EXPECT_NE(compressed.err.find("kvzip"), std::string::npos) << compressed.err;
  EXPECT_NE(compressed.err.find("times as much"), std::string::npos) << compressed.err;
  const Result answered = ask();  // the file names its model
  ASSERT_EQ(answered.code, 0) << answered.err;
  EXPECT_NE(answered.out.find("48213"), std::string::npos) << answered.out;
  EXPECT_NE(answered.err.find("compressed"), std::string::npos) << answered.err;
}

TEST_F(DocumentCommands, AFileWithEveryRowLetsEachQuestionSelect) {
  ASSERT_EQ(compress({"--keep-full"}).code, 0);
  const Result answered = ask({"--kv-budget", "128", "--kv-kernel", "15"});
  ASSERT_EQ(answered.code, 0) << answered.err;
  EXPECT_NE(answered.out.find("48213"), std::string::npos) << answered.out;
  EXPECT_NE(answered.err.find("all of them stored"), std::string::npos) << answered.err;
}

TEST_F(DocumentCommands, AskCitesADocumentWhoseTextIsThere) {
  ASSERT_EQ(compress({"--keep-full"}).code, 0);
  const Result cited = ask({"--kv-budget", "128", "--kv-kernel", "15", "--cite"});
  ASSERT_EQ(cited.code, 0) << cited.err;
  const size_t sources = cited.out.find("Sources");
  ASSERT_NE(sources, std::string::npos) << cited.out;
  EXPECT_NE(cited.out.find("The secret number of Rome is 48213.\n", sources), std::string::npos)
      << cited.out;
  EXPECT_EQ(cited.out.find("sky", sources), std::string::npos) << cited.out;
  ASSERT_EQ(compress({"--kv-budget", "768"}).code, 0);
  const Result refused = ask({"--cite"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--keep-full"), std::string::npos) << refused.err;
}

TEST_F(DocumentCommands, AskCitesADocumentThatAChatTemplateHasWritten) {
  ASSERT_EQ(compress({"--keep-full", "--chat-template", "chatml", "--system", "Be brief."}).code,
            0);
  const Result cited = ask({"--kv-budget", "128", "--kv-kernel", "15", "--cite"});
  ASSERT_EQ(cited.code, 0) << cited.err;
  EXPECT_NE(cited.out.find("Sources"), std::string::npos) << cited.out;
}

TEST_F(DocumentCommands, AskNamesThePageOfASource) {
  std::string text = read_file(document_);
  text.insert(text.find("The secret"), "\f\f");  // pages 1 and 3 have text
  std::ofstream(document_) << text;
  ASSERT_EQ(compress({"--keep-full"}).code, 0);
  const Result cited = ask({"--kv-budget", "128", "--kv-kernel", "15", "--cite"});
  EXPECT_NE(cited.out.find("  page 3: The secret number of Rome is 48213.\n"), std::string::npos)
      << cited.out << cited.err;
  ASSERT_EQ(compress({"--keep-full", "--chat-template", "chatml"}).code, 0);
  Command chat;
  chat.args = {"ask", file_, "-n", "8", "--temp", "0", "--kv-budget", "128", "--cite"};
  chat.input = "What is the secret number of Rome? The secret number of Rome is\n";
  const Result answered = run(chat);
  EXPECT_NE(answered.err.find("  page 3: The secret"), std::string::npos) << answered.err;
}

TEST_F(DocumentCommands, AskRefusesTypedOptionsThatTheFileIsNotOf) {
  ASSERT_EQ(compress({"--kv-budget", "256", "--kv-type", "f16"}).code, 0);
  const std::vector<std::vector<std::string>> kOther = {
      {"--kv-budget", "40"},   {"--kv-type", "f32"},         {"--kv-policy", "streaming-llm"},
      {"--kv-memory", "1MiB"}, {"--kv-decode-limit", "300"}, {"--kv-window", "8"},
      {"--kv-policy", "full"}};
  for (const std::vector<std::string>& options : kOther) {
    const Result refused = ask(options);
    EXPECT_EQ(refused.code, 2) << options[0] << refused.err;
    EXPECT_NE(refused.err.find(options[0]), std::string::npos) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
  EXPECT_EQ(ask({"--kv-budget", "256", "--kv-type", "f16", "--kv-policy", "kvzip"}).code, 0);
  Command command;
  command.args = {"ask", file_, "-p", "What?", "-n", "1"};
  command.env = {{"SNAPKV_KV_BUDGET", "40"}, {"SNAPKV_KV_POLICY", "snapkv"}};
  const Result answered = run(command);
  EXPECT_EQ(answered.code, 0) << "meant for other documents: " << answered.err;
}

TEST_F(DocumentCommands, DocumentsShorterThanTheWindowCanBeAsked) {
  std::ofstream(document_) << "Hi.";
  ASSERT_EQ(compress({"--keep-full"}).code, 0);
  const Result answered = run({"ask", file_, "-p", "Q?", "-n", "2", "--kv-window", "32"});
  EXPECT_EQ(answered.code, 0) << answered.err;
}

TEST_F(DocumentCommands, WorksThroughAChatTemplate) {
  ASSERT_EQ(compress({"--keep-full", "--chat-template", "chatml", "--system", "Be brief."}).code,
            0);
  const Result answered = ask();
  ASSERT_EQ(answered.code, 0) << answered.err;
  EXPECT_FALSE(answered.out.empty());
}

TEST_F(DocumentCommands, WithoutAQuestionAChatBegins) {
  for (const bool keeps_all : {true, false}) {
    std::vector<std::string> options = {"--chat-template", plain_template()};
    if (keeps_all) {
      options.emplace_back("--keep-full");
    } else {
      options.insert(options.end(), {"--kv-budget", "768"});
    }
    ASSERT_EQ(compress(options).code, 0);
    Command chat;
    chat.input = question() + "/undo\n" + question() + question();
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"ask", file_}, {"run", file_}, {"run", needle_model(), file_}}) {
      chat.args = words;
      chat.args.insert(chat.args.end(), {"-n", "7", "--temp", "0"});
      if (keeps_all) chat.args.insert(chat.args.end(), {"--kv-budget", "128"});
      const Result r = run(chat);
      EXPECT_EQ(r.code, 0) << r.err;
      EXPECT_EQ(r.out, " 48213.\n 48213.\n 48213.\n") << words[0] << keeps_all << r.err;
    }
    chat.input = question();
    chat.args.emplace_back("--cite");
    const Result cited = run(chat);
    EXPECT_EQ(cited.code, keeps_all ? 0 : 2) << cited.err;
    EXPECT_EQ(cited.err.find("The secret number of Rome is 48213.\n") != std::string::npos,
              keeps_all)
        << cited.err;
    chat.args.pop_back();
    chat.input = "/system Be brief.\n/policy budget=64\n";
    const Result refused = run(chat);
    EXPECT_NE(refused.err.find("read with its own system message"), std::string::npos);
    EXPECT_EQ(refused.err.find("chosen when it was stored") != std::string::npos, !keeps_all);
    const Result once = run({"run", file_,
                             "Question: What is the secret number of Rome?\nAnswer: The "
                             "secret number of Rome is",
                             "-n", "7", "--temp", "0"});
    EXPECT_EQ(once.out, " 48213.\n") << once.err;
  }
}

TEST_F(DocumentCommands, EachQuestionOfAChatChoosesFromAllRows) {
  ASSERT_EQ(compress({"--chat-template", plain_template(), "--keep-full"}).code, 0);
  TerminalSession terminal({"run", file_, "-n", "7", "--temp", "0", "--kv-budget", "64"});
  terminal.wait_for("every row stored; each question chooses from all");
  terminal.type("Where did nobody walk?\n");
  terminal.wait_for("stopped after 7 tokens");
  terminal.type(question());
  terminal.wait_for("48213.");
  terminal.type("/stats\n");
  terminal.wait_for("4 messages");
  terminal.wait_for("that were there");
  terminal.wait_for("every turn from all rows");
  terminal.type("/exit\n");
  EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
}

TEST_F(DocumentCommands, AChatNeedsATemplateAndOneDocument) {
  ASSERT_EQ(compress({"--keep-full"}).code, 0);  // as for a base model
  Command chat;
  chat.args = {"run", file_};
  chat.input = "What?\n";
  const Result base = run(chat);
  EXPECT_EQ(base.code, 2);
  EXPECT_NE(base.err.find("read without a chat template"), std::string::npos) << base.err;
  EXPECT_EQ(run({"run", file_, document_, "What?"}).code, 2);
  EXPECT_EQ(run({"run", needle_model(), file_, document_, "What?"}).code, 2);
  EXPECT_EQ(run({"run", file_, "What?", "--chat-template", "chatml"}).code, 2);
  EXPECT_EQ(run({"run", file_, "What?", "--compare", "full"}).code, 2);
}

TEST_F(DocumentCommands, SaysWhatIsWrong) {
  const Result missing = ask();
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("document.kv"), std::string::npos) << missing.err;
  ASSERT_EQ(compress({}).code, 0);
  fs::resize_file(file_, fs::file_size(file_) / 2);
  const Result damaged = ask();
  EXPECT_EQ(damaged.code, 3);
  EXPECT_NE(damaged.err.find("document.kv"), std::string::npos) << damaged.err;
  ASSERT_EQ(
      run({"generate", "-m", needle_model(), "-p", "Some words.", "-n", "1", "--save-cache", file_})
          .code,
      0);
  const Result foreign = ask();
  EXPECT_EQ(foreign.code, 3);
  EXPECT_NE(foreign.err.find("snapkv compress"), std::string::npos) << foreign.err;
}

}  // namespace document_tests
}  // namespace snapkv::test
