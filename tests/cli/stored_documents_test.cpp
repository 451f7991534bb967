// SPDX-License-Identifier: MIT
// The documents that snapkv run stores: read once, used again, bounded, and never a reason to fail.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chat_support.h"
#include "run_process.h"
#include "terminal_session.h"

namespace snapkv::test {
namespace stored_documents_tests {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const char* const kQuestion =
    "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
const char* const kStored = " is stored for further questions, in ";
const char* const kUsed = " comes from the store: ";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class StoredDocuments : public ::testing::Test {
 protected:
  /// Writes a document of several hundred tokens and returns its path.
  static std::string document(const std::string& name, int n_paragraphs = 40) {
    const std::string prompt = rome_prompt(n_paragraphs);
    return make_file(name, prompt.substr(0, prompt.find("\nQuestion: ")));
  }
  Result snapkv(const std::vector<std::string>& args) const {
    Command command;
    command.args = args;
    command.env = {{"HOME", home_}};
    return run(command);
  }
  Result ask(const std::string& file, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"run", needle_model(), file, kQuestion, "-n",
                                     "7",   "--temp",       "0"};
    args.insert(args.end(), more.begin(), more.end());
    return snapkv(args);
  }
  Json list() const { return Json::parse(snapkv({"documents", "--json"}).out); }

  const std::string home_ = make_folder();
  const std::string folder_ = home_ + "/.cache/snapkv/documents";
};

TEST_F(StoredDocuments, AreReadOnce) {
  const std::string file = document("rome.txt");
  const Result first = ask(file);
  EXPECT_EQ(first.out, " 48213.\n") << first.err;
  EXPECT_TRUE(contains(first.err, "snapkv: rome.txt" + std::string(kStored))) << first.err;
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  const Result second = ask(file);
  EXPECT_EQ(second.out, first.out) << second.err;
  EXPECT_TRUE(contains(second.err, "snapkv: rome.txt" + std::string(kUsed))) << second.err;
  EXPECT_TRUE(contains(second.err, "of them from the store\n")) << second.err;
  EXPECT_FALSE(contains(second.err, kStored));
  const Json documents = list();
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].at("name"), "rome.txt");
  EXPECT_GT(documents[0].at("tokens"), 512);
  EXPECT_TRUE(documents[0].at("problem").is_null());
  EXPECT_TRUE(contains(snapkv({"documents"}).out, "rome.txt"));
}

TEST_F(StoredDocuments, TheChatUsesThemToo) {
  const std::string file = document("rome.txt");
  for (const char* note : {kStored, kUsed}) {
    std::vector<std::string> args = {
        "run", needle_model(), file, "--chat-template", plain_template(), "--temp", "0", "-n", "7"};
    TerminalSession terminal(args, home_);
    terminal.wait_for("the next message begins with it");
    terminal.type(question());
    terminal.wait_for(note);
    terminal.wait_for("48213.");
    terminal.type("/exit\n");
    EXPECT_EQ(terminal.wait_for_end(), 0) << terminal.screen();
  }
}

TEST_F(StoredDocuments, AreNotMadeWhereNobodyWantsThem) {
  const std::string file = document("rome.txt");
  for (const std::vector<std::string>& off :
       std::vector<std::vector<std::string>>{{"--no-store"}, {"--store-limit", "0"}}) {
    const Result r = ask(file, off);
    EXPECT_EQ(r.out, " 48213.\n") << r.err;
    EXPECT_FALSE(contains(r.err, "stored")) << r.err;
  }
  Command setting;
  setting.args = {"run", needle_model(), file, kQuestion, "-n", "7", "--temp", "0"};
  setting.env = {{"HOME", home_}, {"SNAPKV_NO_STORE", "true"}};
  EXPECT_FALSE(contains(run(setting).err, "stored"));
  EXPECT_FALSE(contains(ask(document("brief.txt", 6)).err, "stored")) << "read in no time";
  EXPECT_EQ(list().size(), 0U);
  EXPECT_TRUE(contains(ask(file, {"--store-limit", "1KiB"}).err, "--store-limit is 1.0 KiB"));
}

TEST_F(StoredDocuments, ThatWereUsedLeastRecentlyLeaveFirst) {
  const std::string a = document("a.txt", 40), b = document("b.txt", 41), c = document("c.txt", 42);
  ASSERT_EQ(ask(a).code, 0);
  ASSERT_EQ(ask(b).code, 0);
  EXPECT_TRUE(contains(ask(a).err, kUsed));
  uint64_t bytes = 0;
  for (const Json& each : list()) bytes += each.at("bytes").get<uint64_t>();
  const Result r = ask(c, {"--store-limit", std::to_string(bytes * 5 / 4)});
  EXPECT_TRUE(contains(r.err, kStored)) << r.err;
  const Json left = list();
  ASSERT_EQ(left.size(), 2U) << left;
  EXPECT_EQ(left[0].at("name"), "c.txt");
  EXPECT_EQ(left[1].at("name"), "a.txt");
  EXPECT_TRUE(contains(snapkv({"documents", "--clear", "a.txt"}).out, "1 document removed"));
  EXPECT_EQ(snapkv({"documents", "--clear", "z.txt"}).code, 2);
  EXPECT_TRUE(contains(snapkv({"documents", "--clear"}).out, "1 document removed"));
  EXPECT_EQ(list().size(), 0U);
}

TEST_F(StoredDocuments, ThatAreDamagedAreReadAgain) {
  const std::string file = document("rome.txt");
  ASSERT_EQ(ask(file).code, 0);
  const std::string path = list()[0].at("path");
  const auto size = static_cast<std::streamoff>(fs::file_size(path));
  const auto break_at = [&](std::streamoff at, const std::string& bytes) {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at) << bytes;
  };
  const auto is_read_again = [&] {
    const Result r = ask(file);
    EXPECT_EQ(r.out, " 48213.\n") << r.err;
    EXPECT_TRUE(contains(r.err, "is read again, since what was stored of it can't be used"))
        << r.err;
    EXPECT_TRUE(contains(r.err, kStored)) << r.err;
  };
  break_at(size - 5000, std::string(200, '\x7f'));  // rows, which are checked when they are used
  is_read_again();
  break_at(0, "something else");
  is_read_again();
  fs::resize_file(path, 100);
  EXPECT_FALSE(list()[0].at("problem").is_null());
  is_read_again();
  EXPECT_TRUE(contains(ask(file).err, kUsed));
}

TEST_F(StoredDocuments, AreOfTheirTextModelAndTemplate) {
  const std::string file = document("rome.txt");
  ASSERT_EQ(ask(file).code, 0);
  EXPECT_TRUE(contains(ask(file, {"--chat-template", "chatml"}).err, kStored));
  EXPECT_TRUE(contains(ask(file, {"--kv-budget", "64"}).err, kUsed)) << "chosen anew";
  std::ofstream(file, std::ios::app) << "One more sentence.\n";
  EXPECT_TRUE(contains(ask(file).err, kStored));
  fs::rename(file, file + ".md");
  EXPECT_TRUE(contains(ask(file + ".md").err, kUsed)) << "the same text under another name";
}

TEST_F(StoredDocuments, AFolderThatCannotBeMadeIsANote) {
  std::ofstream(home_ + "/.cache") << "a file";
  const Result r = ask(document("rome.txt"));
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, " 48213.\n");
  EXPECT_TRUE(contains(r.err, "is not stored for further questions: can't make the folder"))
      << r.err;
}

}  // namespace stored_documents_tests
}  // namespace snapkv::test
