// SPDX-License-Identifier: MIT
// snapkv completion: prints a shell's completion script. snapkv manual: prints the manual page.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common/terminal.h"
#include "cli/completion/scripts.h"

namespace snapkv::cli {

Command add_completion_command(CLI::App& root) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("completion", "Print the completion script of a shell");
  app->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return {app, [shell, &root] {
            write_stdout(*shell == "bash"  ? bash_completion(root)
                         : *shell == "zsh" ? zsh_completion(root)
                                           : fish_completion(root));
            return 0;
          }};
}

Command add_manual_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("manual", "Print the manual page: snapkv manual | man -l -");
  return {app, [&root] {
            write_stdout(manual_page(root));
            return 0;
          }};
}

}  // namespace snapkv::cli
