// SPDX-License-Identifier: MIT
// A small run of every command and task of `snapkv`, to test what all of them promise when the
// model is damaged, descriptors are closed or a signal comes. every_command_test.cpp checks that
// the list is complete.
#pragma once

#include <string>
#include <vector>

namespace snapkv::test {

struct EveryCommand {
  std::string name;               ///< "generate", "eval needle"
  std::vector<std::string> args;  ///< for a run that takes well under a second
  std::string records;            ///< the record file that the run writes, or empty
  bool computes = true;           ///< whether the run computes with the model
  std::string input = {};         ///< the text for stdin; empty if the run reads none
};

/// The runs with `model`; they write to a fresh folder.
std::vector<EveryCommand> every_command(const std::string& model);

}  // namespace snapkv::test
