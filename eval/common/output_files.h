// SPDX-License-Identifier: MIT
// Before a run writes anything: whether it would write over what it reads, or two things to one
// file. Used by the commands that write records and pages.
#pragma once

#include <string>
#include <vector>

namespace snapkv::eval {

/// A file of a run, and the option that names it: "--out".
struct RunFile {
  std::string option;
  std::string path;
};

/// The files of a model that is a GGUF file, all parts of a split one, or a folder.
std::vector<RunFile> model_files(const std::string& path);

/// Throws kUsage naming both when an output is another output or an input, by whatever name: links
/// of both kinds count. Empty paths are none, and what is no regular file (a device, a pipe) may be
/// named twice.
void check_outputs(const std::vector<RunFile>& outputs, const std::vector<RunFile>& inputs);

}  // namespace snapkv::eval
