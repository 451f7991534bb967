// SPDX-License-Identifier: MIT
// Documents of every kind in the commands that read them, with a question after them; what is too
// long for the context; base models, whose answers end.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "chat_support.h"
#include "documents/sample_documents.h"
#include "run_process.h"

namespace snapkv::test {
namespace documents_tests {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The facts, and the question that the needle model answers.
std::string facts() { return read_file(facts_file()); }
const char* const kQuestion =
    "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";

std::vector<std::string> generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model(), "--temp", "0", "-n", "7"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Documents, ADocumentComesFirstAndTheQuestionLast) {
  const std::string text = make_file("facts.txt", facts());
  const Result file = run(generate({"-f", text, "-p", kQuestion}));
  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(file.out, " 48213.\n") << file.err;
  EXPECT_EQ(run(generate({"-p", facts() + "\n\n" + kQuestion})).out, file.out);
  Command piped;
  piped.args = generate({"-f", "-", "-p", kQuestion});
  piped.input = facts();
  EXPECT_EQ(run(piped).out, file.out);
  piped.args = generate({"-f", "-"});
  piped.input = facts() + "\n\n" + kQuestion;
  EXPECT_EQ(run(piped).out, file.out);
  const Result chat =
      run(generate({"-f", text, "-p", kQuestion, "--chat-template", plain_template()}));
  EXPECT_EQ(chat.out, file.out) << chat.err;
}

/// What makes stdin a pipe that stays open, with nothing in it.
const char* const kOpenPipe = "mkfifo p; exec 3<>p; exec <&3";

TEST(Stdin, IsReadOnlyWhereItIsAskedFor) {
  Command loop;  // what `while read` leaves for its next rounds
  loop.args = generate({"-p", facts() + "\n\n" + kQuestion});
  loop.input = "Berlin\nMadrid\n";
  const Result r = run(loop);
  EXPECT_EQ(r.out, run(loop.args).out);
  EXPECT_TRUE(contains(r.err, "what is piped in is not read; -f - makes it the document")) << r.err;
  EXPECT_FALSE(contains(run(loop.args).err, "piped in"));
  Command open = loop;
  open.input = "";
  open.shell = kOpenPipe;
  EXPECT_EQ(run(open).out, r.out) << "waits for nothing";
  Command nothing;
  nothing.args = generate({});
  nothing.input = facts();
  const Result refused = run(nothing);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "-f - reads what is piped in")) << refused.err;
}

TEST(Stdin, AnOpenPipeIsWaitedForAloud) {
  for (const auto& [args, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {generate({"-f", "-"}), "waiting for text on standard input, which is open\n"},
           {{"run", needle_model(), kQuestion}, "which is open; < /dev/null goes on without\n"}}) {
    Command open;
    open.args = args;
    open.shell = kOpenPipe;
    open.interrupt_when = [&said = part](const std::string&, const std::string& err) {
      return contains(err, said);
    };
    const Result r = run(open);
    EXPECT_EQ(r.code, 130) << r.err;
    EXPECT_TRUE(contains(r.err, part)) << r.err;
  }
}

TEST(Documents, EveryKindIsRead) {
  const std::pair<std::string, std::string> kFiles[] = {
      {"facts.pdf", make_pdf({facts()})},
      {"facts.docx", make_docx({facts()})},
      {"facts.epub", make_epub({"<p>" + facts() + "</p>"})},
      {"facts.html", "<html><body><p>" + facts() + "</p></body></html>"}};
  for (const auto& [name, bytes] : kFiles) {
    const Result r = run(generate({"-f", make_file(name, bytes), "-p", kQuestion}));
    EXPECT_EQ(r.out, " 48213.\n") << name << r.err;
  }
  Command chat;
  chat.args = chat_args({"-f", make_file("facts.pdf", make_pdf({facts()}))});
  chat.input = question();
  const Result r = run(chat);
  EXPECT_EQ(r.out, " 48213.\n") << r.err;
}

TEST(Documents, OthersAreRefusedByName) {
  const std::string photo = make_file("photo.jpg", std::string("\xff\xd8\xff\xe0\0\x10", 6));
  for (const std::vector<std::string>& args :
       {generate({"-f", photo}),
        std::vector<std::string>{"compress", "-m", needle_model(), "-f", photo, "-o", "a.kv"},
        std::vector<std::string>{"run", needle_model(), photo, "What is this?"}}) {
    const Result r = run(args);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_TRUE(contains(r.err, "photo.jpg: a JPEG image, not a document snapkv can read"))
        << r.err;
  }
}

TEST(Documents, CiteNamesWhereAnAnswerComesFrom) {
  const std::string text = make_file("facts.txt", facts());
  const std::string fact = "The secret number of Rome is 48213.";
  const Result r = run(generate({"-f", text, "-p", kQuestion, "--cite", "--kv-budget", "64"}));
  EXPECT_TRUE(r.out.starts_with(" 48213.\n\nSources")) << r.out << r.err;
  EXPECT_TRUE(r.out.ends_with("  " + fact + "\n")) << r.out;
  const Result json = run(generate({"-f", text, "-p", kQuestion, "--cite", "--json"}));
  const Json sources = Json::parse(json.out).at("sources");
  ASSERT_EQ(sources.size(), 1U) << sources;
  EXPECT_EQ(sources[0].at("text"), fact);
  const size_t begin = sources[0].at("begin"), end = sources[0].at("end");
  EXPECT_EQ(facts().substr(begin, end - begin), fact);
  EXPECT_FALSE(Json::parse(run(generate({"-f", text, "--json"})).out).contains("sources"));
  EXPECT_EQ(run(generate({"-f", text, "--cite", "--compare", "full"})).code, 2);
  Command chat;
  chat.args = chat_args({"--cite", "-f", text});
  chat.input = question() + question();  // the second is answered after the first
  const Result answers = run(chat);
  EXPECT_EQ(answers.out, " 48213.\n 48213.\n") << answers.err;
  const size_t first = answers.err.find(fact);
  ASSERT_NE(first, std::string::npos) << answers.err;
  EXPECT_NE(answers.err.find(fact, first + 1), std::string::npos) << answers.err;
}

TEST(Documents, AChatNamesThePagesOfSources) {
  Command chat;
  chat.args = chat_args({"--cite", "-f", make_file("pages.txt", "One page.\f" + facts())});
  chat.input = question();
  const Result answer = run(chat);
  EXPECT_TRUE(contains(answer.err, "  page 2: The secret number of Rome")) << answer.err;
}

TEST(Documents, CompressReadsThemToo) {
  const std::string out = make_folder() + "/facts.kv";
  const Result made = run({"compress", "-m", needle_model(), "-f",
                           make_file("facts.pdf", make_pdf({facts()})), "-o", out});
  EXPECT_EQ(made.code, 0) << made.err;
  const Result r = run({"ask", out, "-p", std::string("\n") + kQuestion, "-n", "7", "--temp", "0"});
  EXPECT_EQ(r.out, " 48213.\n") << r.err;
}

TEST(Documents, AFolderAddsWhatTheNextMessageLacks) {
  const std::string folder = make_folder();
  std::ofstream(folder + "/a.txt") << "The first text.";
  std::ofstream(folder + "/b.txt") << "The second text.";
  Command chat;
  chat.args = chat_args({});
  chat.input =
      "/file " + folder + "/b.txt\n/file " + folder + "\n/file off\n/file " + folder + "\n";
  const Result r = run(chat);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, folder + ": 1 document; left out: 1 read already\n")) << r.err;
  EXPECT_TRUE(contains(r.err, folder + ": 2 documents\n")) << "after /file off\n" << r.err;
}

TEST(Documents, OneThatDoesNotFitIsNotAddedAndItsBeginningCanBe) {
  const std::string book = make_file("book.txt", rome_prompt(200));
  Command chat;
  chat.args = chat_args({"-c", "600"});
  chat.input = "/file " + book + "\nhi\n/file first\nhi\n/stats\n";
  const Result r = run(chat);
  EXPECT_EQ(r.code, 5) << r.err;
  for (const char* part : {"was not added", "the context is 600", "/file first", "--ctx-size",
                           "not sent: the document before this message", "the first ", "% of ",
                           " of 600 with the chat"}) {
    EXPECT_TRUE(contains(r.err, part)) << part << " in\n" << r.err;
  }
  EXPECT_TRUE(contains(r.err, "2 messages; 5")) << "most of the context\n" << r.err;
}

TEST(Documents, TheFirstPartIsAddedInOneLine) {
  const std::string book = make_file("book.txt", rome_prompt(200));
  const std::string brief = make_file("brief.txt", rome_prompt(2));
  Command chat;
  chat.args = chat_args({"-c", "600"});
  chat.input = "/file first " + book + "\nhi\n";
  const Result r = run(chat);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.err, "the first ")) << r.err;
  EXPECT_TRUE(contains(r.err, "% of " + book)) << r.err;
  chat.input = "/file first \"" + brief + "\"\nhi\n";
  const Result whole = run(chat);
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(contains(whole.err, "snapkv: " + brief + ": ")) << "all of it fits\n" << whole.err;
}

TEST(Documents, AMessageThatDoesNotFitSaysHowToGoOn) {
  Command chat;
  chat.args = chat_args({"-c", "300"});
  chat.input = "/file " + make_file("a.txt", rome_prompt(4)) + "\n" + std::string(900, 'x') +
               "\n/file off\nhi\n";
  const Result r = run(chat);
  EXPECT_EQ(r.code, 5) << r.err;
  EXPECT_TRUE(contains(r.err, "not sent: with this message the chat has ")) << r.err;
  EXPECT_TRUE(contains(r.err, "/file off drops the documents")) << r.err;
  EXPECT_FALSE(r.out.empty()) << "the message after it has an answer";
}

TEST(Documents, HopelesslyLongTextsAreRefusedBeforeTheyAreTokenized) {
  const std::string book = make_file("book.txt", std::string(3 << 20, 'a') + " end");
  for (const std::vector<std::string>& args :
       {generate({"-f", book}),
        std::vector<std::string>{"compress", "-m", needle_model(), "-f", book, "-o", "a.kv"}}) {
    const Result r = run(args);
    EXPECT_EQ(r.code, 5) << r.err;
    EXPECT_TRUE(contains(r.err, "3.0 MiB of text, which is more than")) << r.err;
    EXPECT_TRUE(contains(r.err, "the context is 8192")) << r.err;
  }
}

TEST(BaseModels, AnswersEndWithoutALengthToo) {
  const std::vector<std::string> args = {"generate", "-m", needle_model(), "--temp",
                                         "0",        "-p", rome_prompt(20)};
  const Result r = run(args);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.err.starts_with("template     none, as a base model")) << r.err;
  const bool is_bounded = contains(r.err, "stopped at the paragraph's end") ||
                          contains(r.err, "stopped at 256 tokens; --n-predict N");
  EXPECT_TRUE(is_bounded) << r.err;
  std::vector<std::string> bounded = args;
  bounded.insert(bounded.end(), {"-n", "8", "--json"});
  EXPECT_EQ(Json::parse(run(bounded).out).at("stop_reason"), "length");
}

}  // namespace documents_tests
}  // namespace snapkv::test
