// SPDX-License-Identifier: MIT
// InputFile: a fuzz target's input as a file, for code that reads files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace snapkv::test {

/// A file in $TMPDIR that belongs to this process alone and is removed with this object.
class InputFile {
 public:
  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  const std::string& path() const { return path_; }
  void write(std::string_view bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
  }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("snapkv-input-" + std::to_string(getpid())))
          .string();
};

}  // namespace snapkv::test
