// SPDX-License-Identifier: MIT
// The fuzz target for the command line and the configuration file: libFuzzer's entry point (preset
// `fuzz`), also linked into tests/cli, which replays corpus_settings/ and mutations of it.
#include "tests/fuzz/fuzz_settings.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "cli/command_line.h"
#include "cli/common/plain_text.h"
#include "snapkv/error.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

// Making all commands takes longer than reading most inputs, so one command line reads many inputs.
// It forgets earlier ones, except values of settings, on which reading does not depend.
cli::CommandLine& command_line() {
  constexpr int kInputs = 200;
  static std::optional<cli::CommandLine> line;
  static int n = 0;
  if (n++ % kInputs == 0) line.emplace();
  return *line;
}

}  // namespace

std::string read_hostile_settings(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  std::vector<std::string> args;
  for (size_t begin = 0; begin < end;) {
    const size_t newline = std::min(bytes.find('\n', begin), end);
    args.emplace_back(bytes.substr(begin, newline - begin));
    begin = newline + 1;
  }
  static InputFile file;
  file.write(bytes.substr(std::min(end + 1, bytes.size())));
  args.push_back("--config");
  args.push_back(file.path());
  try {
    const cli::Command* command = command_line().parse(args);
    SNAPKV_CHECK(command == nullptr || command->run != nullptr);
    return "";
  } catch (const Error& e) {
    std::string message = cli::message_text(cli::message_of(e));
    SNAPKV_CHECK(!message.empty());
    return message;
  }
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::read_hostile_settings({reinterpret_cast<const char*>(data), size});
  return 0;
}
