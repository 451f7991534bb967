// SPDX-License-Identifier: MIT
#include "eval/common/text_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {
namespace {

std::string read_all(std::istream& in, const std::string& path) {
  std::ostringstream content;
  if (in.peek() != std::istream::traits_type::eof()) content << in.rdbuf();
  if (in.bad() || content.bad()) fail(ErrorCode::kRuntime, "{}: can't be read", path);
  std::string text = to_utf8(content.str());
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    fail(ErrorCode::kUsage, "{}: no text in it", path == "-" ? "standard input" : path);
  }
  return text;
}

std::string read_one(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  return read_all(in, path);
}

std::vector<std::string> text_files_of(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  if (error) fail(ErrorCode::kRuntime, "{}: can't be read: {}", folder, error.message());
  if (files.empty()) fail(ErrorCode::kUsage, "{}: no .txt files in this folder", folder);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<TextFile> read_texts(const std::vector<std::string>& paths, std::istream& input) {
  std::vector<TextFile> texts;
  bool input_used = false;
  for (const std::string& path : paths) {
    std::error_code error;
    if (path == "-") {
      if (input_used) fail(ErrorCode::kUsage, "standard input (-) is named twice");
      input_used = true;
      texts.push_back({path, read_all(input, path)});
    } else if (std::filesystem::is_directory(path, error)) {
      for (const std::string& file : text_files_of(path)) texts.push_back({file, read_one(file)});
    } else {
      texts.push_back({path, read_one(path)});
    }
  }
  return texts;
}

}  // namespace snapkv::eval
