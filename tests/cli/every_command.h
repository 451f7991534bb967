// SPDX-License-Identifier: MIT
// A small run of every command and task of `snapkv`, for tests of what all of them promise: a
// damaged model, closed descriptors, signals. every_command_test.cpp checks that none is missing.
#pragma once

#include <string>
#include <vector>

namespace snapkv::test {

struct EveryCommand {
  std::string name;               ///< "generate", "eval needle"
  std::vector<std::string> args;  ///< of a run that takes well under a second
  std::string records;            ///< the record file it writes; empty: none
  bool computes = true;           ///< whether it runs the model
  std::string input = {};         ///< of stdin; empty: it reads none
};

/// The runs with `model`; what they write goes into a fresh folder.
std::vector<EveryCommand> every_command(const std::string& model);

}  // namespace snapkv::test
