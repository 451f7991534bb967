// SPDX-License-Identifier: MIT
// --long: documents that are longer than the context, with the needle model.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace long_tests {

using Json = nlohmann::json;

const char* const kQuestion =
    "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
const std::string kFact = "The secret number of Rome is 48213.";

/// Six pages of about 600 tokens each; the fact is on the fourth one.
const std::string& document() {
  static const std::string text = [] {
    std::string pages;
    for (int page = 1; page <= 6; ++page) {
      if (page > 1) pages += '\f';
      for (int i = 0; i < 30; ++i) {
        pages += page == 4 && i == 10
                     ? kFact + "\n\n"
                     : "The cold wind blew from the sea, and the baker slept. It was late.\n\n";
      }
    }
    return pages;
  }();
  return text;
}

std::vector<std::string> generate(std::vector<std::string> more, const char* n_ctx = "1200") {
  static const std::string file = make_file("long.txt", document());
  std::vector<std::string> args = {"generate", "-m",          needle_model(), "-f", file,
                                   "--temp",   "0",           "-n",           "7",  "-c",
                                   n_ctx,      "--kv-budget", "256"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Long, AnErrorNamesTheOption) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"-p", kQuestion},
        std::vector<std::string>{"-p", kQuestion, "--long", "refuse"},
        std::vector<std::string>{"--long", "auto"}}) {  // nothing is asked
    const Result r = run(generate(more));
    EXPECT_EQ(r.code, 5) << r.err;
    EXPECT_NE(r.err.find("the context is 1200"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("--long parts"), std::string::npos) << r.err;
  }
  const Result wrong = run(generate({"-p", kQuestion, "--long", "all"}));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("auto, first, parts or refuse"), std::string::npos) << wrong.err;
}

TEST(Long, PassagesWithTheQuestionsWordsAreRead) {
  const Result r = run(generate({"-p", kQuestion, "--long", "auto", "--cite"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.out.starts_with(" 48213.")) << r.out << r.err;
  EXPECT_NE(r.out.find("page 4: " + kFact), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("more than the context of 1200"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("secret, number, Rome"), std::string::npos) << r.err;
  const Json json =
      Json::parse(run(generate({"-p", kQuestion, "--long", "auto", "--cite", "--json"})).out);
  EXPECT_EQ(json["long"]["way"], "passages");
  ASSERT_EQ(json["long"]["passages"].size(), 1U) << json["long"];
  const size_t begin = json["long"]["passages"][0]["begin"],
               end = json["long"]["passages"][0]["end"];
  EXPECT_NE(document().substr(begin, end - begin).find(kFact), std::string::npos);
  EXPECT_EQ(json["long"]["passages"][0]["pages"], Json::parse("[4, 4]"));
  EXPECT_EQ(json["sources"][0]["begin"], document().find(kFact));
  EXPECT_EQ(json["sources"][0]["page"], 4);
}

TEST(Long, PartsAreReadAndAnsweredFromTheirSources) {
  const Result r = run(generate({"-p", kQuestion, "--long", "parts", "--cite", "--json"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find(" parts, in about "), std::string::npos) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json["text"], " 48213.") << r.err;
  const Json parts = json["long"]["parts"];
  ASSERT_GE(parts.size(), 3U);
  size_t end = 0;
  bool is_found = false;
  for (const Json& part : parts) {
    EXPECT_EQ(part["begin"], end) << "a gap";
    end = part["end"];
    EXPECT_LE(part["tokens"], 1200);
    is_found = is_found || part["answer"].get<std::string>().find("48213") != std::string::npos;
  }
  EXPECT_EQ(end, document().find_last_not_of('\n') + 2) << "without the newline at the end";
  EXPECT_TRUE(is_found) << parts;
  EXPECT_EQ(json["sources"][0]["begin"], document().find(kFact));
}

TEST(Long, FirstReadsTheBeginning) {
  const Result r = run(generate({"-p", kQuestion, "--long", "first", "--json"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("reading the first "), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("% of it, up to page 2"), std::string::npos) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json["long"]["way"], "first");
  EXPECT_EQ(json["long"]["passages"][0]["begin"], 0);
  EXPECT_LT(json["long"]["read_tokens"], json["long"]["document_tokens"]);
  EXPECT_EQ(run(generate({"--long", "first"})).code, 0) << "needs no question";
}

TEST(Long, WhatFitsIsReadAsItIs) {
  for (const char* way : {"auto", "parts", "first", "refuse"}) {
    const Result r = run(generate({"-p", kQuestion, "--long", way, "--json"}, "8000"));
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_FALSE(Json::parse(r.out).contains("long")) << way;
  }
}

TEST(Long, RunReadsWhatIsTooLongByItself) {
  const std::string file = make_file("long.txt", document());
  const Result r = run({"run", needle_model(), file, kQuestion, "-c", "1200", "--temp", "0", "-n",
                        "7", "--kv-budget", "256"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, " 48213.\n") << r.err;
}

TEST(Long, OfSeveralDocumentsEachPassageHasItsName) {
  std::string other = document();
  other.replace(other.find(kFact), kFact.size(), "It was late.");
  const std::string one = make_file("one.txt", document()), two = make_file("two.txt", other);
  const Result r = run({"run", needle_model(), one, two, kQuestion, "--temp", "0", "-n", "7", "-c",
                        "1200", "--kv-budget", "256", "--cite"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("the 2 documents have about"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("--long parts reads all of them"), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("one.txt, page 4: " + kFact), std::string::npos) << r.out;
}

TEST(Long, RangesOfAFoldersDocumentsAreThoseOfEach) {
  const std::string folder = make_folder();
  std::string other = document();
  other.replace(other.find(kFact), kFact.size(), "It was late.");
  std::ofstream(folder + "/a.txt") << other;
  std::ofstream(folder + "/b.txt") << document();
  const Result r =
      run({"generate", "-m", needle_model(), "-f", folder, "-p", kQuestion, "--temp", "0", "-n",
           "7", "-c", "1200", "--kv-budget", "256", "--cite", "--long", "auto", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  const auto at_fact = [&](const Json& range) {
    return range["document"].get<std::string>().ends_with("/b.txt") &&
           range["begin"] <= document().find(kFact) &&
           range["end"] >= document().find(kFact) + kFact.size();
  };
  const Json& passages = json["long"]["passages"];
  EXPECT_TRUE(std::any_of(passages.begin(), passages.end(), at_fact)) << json["long"];
  EXPECT_TRUE(std::any_of(json["sources"].begin(), json["sources"].end(), at_fact)) << json;
}

TEST(Long, CompressStoresTheBeginning) {
  const std::string file = make_file("long.txt", kFact + "\n\n" + document());
  const std::string out = make_folder() + "/long.kv";
  const auto compress = [&](const char* way) {
    return run(
        {"compress", "-m", needle_model(), "-f", file, "-o", out, "-c", "1200", "--long", way});
  };
  EXPECT_EQ(compress("refuse").code, 5);
  EXPECT_EQ(compress("parts").code, 2);
  const Result made = compress("first");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.err.find("storing the first "), std::string::npos) << made.err;
  const Result asked = run(
      {"ask", out, "-p", std::string("\n\n") + kQuestion, "-n", "7", "--temp", "0", "-c", "1200"});
  EXPECT_EQ(asked.out, " 48213.\n") << asked.err;
}

TEST(Long, CtrlCEndsTheReadingOfParts) {
  Command command;
  command.args = generate({"-p", kQuestion, "--long", "parts"});
  command.interrupt_when = [](const std::string&, const std::string& err) {
    return err.find("parts, in about") != std::string::npos;
  };
  const Result r = run(command);
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("error: stopped by Ctrl-C in part "), std::string::npos) << r.err;
}

}  // namespace long_tests
}  // namespace snapkv::test
