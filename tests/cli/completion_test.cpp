// SPDX-License-Identifier: MIT
// snapkv completion and snapkv manual: bash completes with the script, and every command and option
// of --help-all is in the manual page.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_process.h"

namespace snapkv::test {
namespace completion_tests {

std::string output_of(const std::string& shell_command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(shell_command.c_str(), "r"), pclose);
  std::string out;
  char block[4096];
  while (const size_t n = fread(block, 1, sizeof block, pipe.get())) out.append(block, n);
  return out;
}

/// What bash offers for the words, the last of which is being typed.
std::string completed(const std::vector<std::string>& words) {
  const std::string script = make_file("completion.bash", run({"completion", "bash"}).out);
  std::string line = "source " + script + "; COMP_WORDS=(";
  for (const std::string& word : words) line += "'" + word + "' ";
  line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _snapkv; echo ${COMPREPLY[@]}";
  return output_of("bash " + make_file("complete.bash", line + "\n"));
}

TEST(Completion, BashOffersCommandsTasksAndOptions) {
  EXPECT_EQ(completed({"snapkv", "gen"}), "generate\n");
  EXPECT_EQ(completed({"snapkv", "eval", "need"}), "needle\n");
  EXPECT_EQ(completed({"snapkv", "generate", "-m", "x.gguf", "--kv-budg"}), "--kv-budget\n");
  EXPECT_EQ(completed({"snapkv", "eval", "needle", "--depth"}), "--depths\n");
  EXPECT_EQ(completed({"snapkv", "policies", "--kv-budg"}), "\n");
}

TEST(Completion, ZshAndFishHaveEveryCommand) {
  const std::string zsh = run({"completion", "zsh"}).out, fish = run({"completion", "fish"}).out;
  EXPECT_EQ(zsh.rfind("#compdef snapkv\n", 0), 0u);
  EXPECT_NE(fish.find("complete -c snapkv -f -n '__snapkv_command_is ' -a generate"),
            std::string::npos);
  EXPECT_NE(fish.find("-n '__snapkv_command_is eval needle'"), std::string::npos);
  EXPECT_EQ(run({"completion", "tcsh"}).code, 2);
}

TEST(Completion, TheManualHasEveryCommandAndOption) {
  const std::string page = run({"manual"}).out;
  for (const std::string command : {"generate", "chat", "serve", "eval needle", "completion"}) {
    std::string escaped = command;
    EXPECT_NE(page.find(".SH SNAPKV " + escaped + "\n"), std::string::npos) << command;
  }
  std::istringstream help(run({"generate", "--help-all"}).out);
  std::string line;
  int n = 0;
  while (std::getline(help, line)) {
    const size_t begin = line.find("--");
    if (line.rfind("  ", 0) != 0 || begin == std::string::npos || begin > 8) continue;
    std::string option = line.substr(begin + 2, line.find_first_of(" ,[", begin + 2) - begin - 2);
    for (size_t at = 0; (at = option.find('-', at)) != std::string::npos; at += 2) {
      option.insert(at, "\\");
    }
    EXPECT_NE(page.find("\\-\\-" + option), std::string::npos) << line;
    ++n;
  }
  EXPECT_GT(n, 30);
}

}  // namespace completion_tests
}  // namespace snapkv::test
