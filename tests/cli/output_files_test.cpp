// SPDX-License-Identifier: MIT
// No command overwrites a file that it reads or another of its outputs, and a saved cache replaces
// only another cache. The test finds the options that name files itself: a new one fails the first
// test until the list here says whether its command reads or writes the file.
#include "cli/common/output_files.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "cli/command_line.h"
#include "run_process.h"

namespace snapkv::test {
namespace output_files_tests {

namespace fs = std::filesystem;
using Args = std::vector<std::string>;

// The names of the options, such as "generate --save-cache" and "eval needle --out".
std::set<std::string> options_where(CLI::App& app, const std::string& outer,
                                    const std::function<bool(CLI::Option&)>& is_wanted) {
  std::set<std::string> found;
  for (CLI::Option* option : app.get_options()) {
    if (!is_wanted(*option)) continue;
    const std::vector<std::string>& names = option->get_lnames();
    found.insert(outer + (names.empty() ? option->get_name(true) : "--" + names.front()));
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    found.merge(options_where(*sub, outer + sub->get_name() + " ", is_wanted));
  }
  return found;
}

TEST(OutputFiles, EveryOptionWithAFileIsKnownAsReadOrWritten) {
  cli::CommandLine line;
  std::set<std::string> read;
  for (const std::string& option : options_where(line.root(), "", [](CLI::Option& option) {
         const std::string type = option.get_type_name();
         return !cli::is_output(option) &&
                (type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos);
       })) {
    read.insert(option.substr(option.rfind(' ') + 1));
  }
  EXPECT_EQ(read, (std::set<std::string>{"--api-key-file", "--chat-template", "--config",
                                         "--data",         "--draft-model",   "--file",
                                         "--grammar-file", "--haystack",      "--json-schema-file",
                                         "--load-cache",   "--model",         "--prompts",
                                         "--snapshot-dir", "--spill-dir",     "--template",
                                         "--text",         "--texts",         "--tls-cert",
                                         "--tls-key",      "DOCUMENT",        "WORDS",
                                         "MODEL",          "RECORDS"}))
      << "mark what is written with mark_output()";
}

// A folder with the files that the runs read and must not destroy.
struct Inputs {
  Inputs() {
    fs::copy_file(needle_model(), model);
    for (const std::string& path :
         {text, config, folder + "/data/a.jsonl", folder + "/data/config/b.json"}) {
      fs::create_directories(fs::path(path).parent_path());
      std::FILE* const file = std::fopen(path.c_str(), "w");
      std::fputs("# some words\n", file);
      std::fclose(file);
    }
    fs::create_symlink("model.gguf", folder + "/symlink");
    fs::create_hard_link(model, folder + "/hardlink");
  }
  const std::string folder = make_folder();
  const std::string model = folder + "/model.gguf", text = folder + "/text.txt",
                    config = folder + "/config.toml";
};

struct Writing {
  Args args;
  std::vector<std::string> outputs;
};

// Every command that writes files, with its inputs from `in`.
std::vector<Writing> runs(const Inputs& in) {
  std::vector<Writing> all = {
      {{"generate", "-m", in.model, "-f", in.text, "-n", "0"}, {"--save-cache"}},
      {{"compress", "-m", in.model, "-f", in.text}, {"--output"}},
      {{"convert", in.model, "--force"}, {"--output"}},
      {{"inspect", "-m", in.model, "-f", in.text}, {"--json", "--out"}},
      {{"bench", "-m", in.model}, {"--html"}},
      {{"eval", "fidelity", "-m", in.model, "--text", in.text}, {"--out", "--html"}},
      {{"eval", "summary", "-m", in.model, "--text", in.text}, {"--out", "--html"}},
      {{"eval", "longbench", "-m", in.model, "--data", in.folder + "/data"}, {"--out", "--html"}},
      {{"eval", "qa", "-m", in.model, "--data", in.folder + "/data/a.jsonl"}, {"--out", "--html"}},
      {{"eval", "quality", "-m", in.model, "--data", in.folder + "/data/a.jsonl"},
       {"--out", "--html", "--svg", "--json"}},
      {{"eval", "make-qa", "-m", in.model, "--length", "1000", "--texts", in.text}, {"--out"}},
  };
  for (const char* task : {"needle", "ruler", "turns", "overlap"}) {
    all.push_back({{"eval", task, "-m", in.model}, {"--out", "--html"}});
  }
  return all;
}

Result run_with(const Writing& r, const std::string& output, const std::string& path,
                const Args& more = {}) {
  Args args = r.args;
  args.insert(args.end(), {output, path});
  args.insert(args.end(), more.begin(), more.end());
  return run(args);
}

void expect_refused(const Result& result, const std::string& words) {
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(OutputFiles, NoneIsWhatTheCommandReads) {
  const Inputs in;
  std::set<std::string> tried;
  for (const Writing& r : runs(in)) {
    const std::string command = r.args[0] == "eval" ? r.args[0] + " " + r.args[1] : r.args[0];
    for (const std::string& output : r.outputs) {
      SCOPED_TRACE(command + " " + output);
      tried.insert(command + " " + output);
      const std::set<std::string> named(r.args.begin(), r.args.end());
      std::vector<std::string> paths = {in.model, in.folder + "/./data/../model.gguf",
                                        in.folder + "/symlink", in.folder + "/hardlink"};
      if (named.contains(in.text)) paths.push_back(in.text);
      if (named.contains(in.folder + "/data") && output != "--out") {
        paths.insert(paths.end(), {in.folder + "/data/a.jsonl", in.folder + "/data/config/b.json"});
      }
      for (const std::string& path : paths) {
        expect_refused(run_with(r, output, path), "would be lost");
      }
      expect_refused(run_with(r, output, in.config, {"--config", in.config}), "--config");
    }
  }
  EXPECT_EQ(fs::file_size(in.model), fs::file_size(needle_model()));
  for (const std::string& path : {in.text, in.config}) {
    EXPECT_EQ(read_file(path), "# some words\n");
  }
  cli::CommandLine line;
  EXPECT_EQ(tried, options_where(line.root(), "", cli::is_output)) << "add new outputs to runs()";
}

// A record file does not replace any of the texts, so it may lie in their folder.
TEST(OutputFiles, RecordsMayLieAmongTheTexts) {
  const Inputs in;
  const std::string records = in.folder + "/data/records.jsonl";
  std::ofstream(records).flush();
  for (const Args& args : {Args{"eval", "longbench", "--data", in.folder + "/data"},
                           Args{"eval", "needle", "--haystack", in.folder + "/data"},
                           Args{"eval", "fidelity", "--text", in.folder + "/data"}}) {
    Args all = args;
    all.insert(all.end(), {"-m", "nowhere.gguf", "--out", records, "--resume"});
    const Result result = run(all);
    EXPECT_EQ(result.err.find("would be lost"), std::string::npos) << result.err;
  }
  for (const char* text : {"/data/a.jsonl", "/text.txt"}) {
    const Result result = run({"eval", "needle", "-m", in.model, "--haystack", in.folder, "--out",
                               in.folder + text, "--resume"});
    EXPECT_NE(result.code, 0);
    EXPECT_EQ(read_file(in.folder + text), "# some words\n");
  }
}

TEST(OutputFiles, NoneIsPartOfTheModel) {
  const Inputs in;
  const std::string first = in.folder + "/m-00001-of-00002.gguf";
  const std::string second = in.folder + "/m-00002-of-00002.gguf";
  fs::copy_file(in.model, first);
  fs::copy_file(in.model, second);
  const std::string config = in.folder + "/data/config.json";
  const std::string tokenizer = in.folder + "/data/tokenizer.json";
  fs::copy_file(in.text, config);
  fs::create_symlink("../text.txt", tokenizer);
  const std::vector<std::array<std::string, 2>> kPairs = {
      {first, second}, {in.folder + "/data", config}, {in.folder + "/data", in.text}};
  for (const auto& [model, part] : kPairs) {
    expect_refused(run({"convert", model, "-o", part, "--force"}), "would be lost");
    expect_refused(run({"generate", "-m", model, "-p", "Hi", "--save-cache", part}),
                   "would be lost");
  }
}

TEST(OutputFiles, NoneIsAnotherOutput) {
  const Inputs in;
  const std::string page = in.folder + "/page.html";
  const Writing inspect{{"inspect", "-m", in.model, "-f", in.text, "--json", page}, {}};
  expect_refused(run_with(inspect, "--out", in.folder + "/data/../page.html"), "the same file");
  const Writing eval{{"eval", "needle", "-m", in.model, "--out", page}, {}};
  fs::create_symlink("page.html", in.folder + "/to_page");  // its target does not exist yet
  for (const std::string& path : {page, in.folder + "/to_page"}) {
    expect_refused(run_with(eval, "--html", path), "the same file");
  }
  EXPECT_FALSE(fs::exists(page));
  Command command;  // one name is relative; the other is relative, then absolute
  command.cwd = in.folder;
  command.args = {"eval", "needle", "-m", in.model, "--out", "page.html", "--html", "./page.html"};
  expect_refused(run(command), "the same file");
  command.args.back() = page;
  expect_refused(run(command), "the same file");
}

TEST(OutputFiles, NoneIsTheFileBehindStandardInput) {
  const Inputs in;
  Command command;
  command.args = {"generate", "-m", in.model, "-f", "-", "-n", "0", "--save-cache", in.text};
  command.shell = "exec < " + in.text;
  expect_refused(run(command), "would be lost");
}

TEST(OutputFiles, CachesReplaceCachesOnly) {
  const Inputs in;
  const std::string cache = in.folder + "/saved.cache";
  const auto save = [&](const std::string& path) {
    return run({"generate", "-m", in.model, "-p", "Some words", "-n", "0", "--save-cache", path});
  };
  const Result refused = save(in.text);
  expect_refused(refused, "not a saved cache");
  EXPECT_EQ(read_file(in.text), "# some words\n");
  expect_refused(run({"compress", "-m", in.model, "-f", in.config, "-o", in.text}),
                 "not a saved cache");
  EXPECT_EQ(save(make_file("empty.cache", "")).code, 0);
  EXPECT_EQ(save(cache).code, 0);
  EXPECT_EQ(save(cache).code, 0);
  // The new cache continues the old one, so nothing is lost.
  EXPECT_EQ(run({"generate", "-m", in.model, "--load-cache", cache, "-p", " and more", "-n", "0",
                 "--save-cache", cache})
                .code,
            0);
  EXPECT_EQ(run({"compress", "-m", in.model, "-f", in.text, "-o", cache, "--keep-full"}).code, 0);
  EXPECT_EQ(save(cache).code, 0);
}

TEST(OutputFiles, WhatCannotBeWrittenIsRefusedBeforeTheWork) {
  const std::string path = make_folder() + "/none/saved.cache";
  const std::vector<Args> kCommands = {
      {"generate", "-m", "nowhere.gguf", "-p", "x", "--save-cache", path},
      {"compress", "-m", "nowhere.gguf", "-f", "nowhere.txt", "-o", path},
      {"inspect", "-m", "nowhere.gguf", "-p", "x", "--json", path}};
  for (const Args& args : kCommands) {
    const Result result = run(args);
    EXPECT_EQ(result.code, 1) << result.err;
    EXPECT_NE(result.err.find(path), std::string::npos) << result.err;
  }
}

TEST(OutputFiles, LongNamesHaveRoomForTheTemporaryOne) {
  const std::string path = make_folder() + "/" + std::string(251, 'n') + ".kv";
  const Result result =
      run({"generate", "-m", needle_model(), "-p", "Hi", "-n", "0", "--save-cache", path});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_GT(fs::file_size(path), 0u);
  const std::string longer = make_folder() + "/" + std::string(256, 'n');
  const Result refused =
      run({"generate", "-m", "nowhere.gguf", "-p", "Hi", "--save-cache", longer});
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_NE(refused.err.find("name too long"), std::string::npos) << refused.err;
}

}  // namespace output_files_tests
}  // namespace snapkv::test
