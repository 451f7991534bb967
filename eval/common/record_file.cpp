// SPDX-License-Identifier: MIT
#include "eval/common/record_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace snapkv::eval {
namespace {

[[noreturn]] void fail_io(const std::string& path, const char* what) {
  fail(ErrorCode::kRuntime, "{}: {}: {}", path, what, std::strerror(errno));
}

// Prompts may be megabytes; summaries don't need them.
void drop_text(Json& record) {
  record.erase("prompt");
  record.erase("question_prompt");
  record.erase("input");
}

}  // namespace

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_utf8(const std::string& text) {
  return Json::parse(to_line(Json(text))).get<std::string>();
}

RecordFile::RecordFile(std::string path, bool resume) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::error_code error;
  const bool there = std::filesystem::exists(path_, error);
  if (there && resume) {
    read();
  } else if (there && std::filesystem::is_regular_file(path_, error) &&
             std::filesystem::file_size(path_, error) > 0) {
    fail(ErrorCode::kUsage, "{} has records already: continue it with --resume, or name another",
         path_);
  }
  file_.reset(std::fopen(path_.c_str(), "ab"));
  if (!file_) fail_io(path_, "can't be written");
}

void RecordFile::read() {
  std::ifstream in(path_, std::ios::binary);
  if (!in) fail_io(path_, "can't be read");
  std::string line;
  uintmax_t good = 0;  // bytes of whole records
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) {  // no newline: the run that wrote it was killed
      repaired_ = true;
      break;
    }
    Json record = Json::parse(line, nullptr, false);
    const bool ok = record.is_object() && record.contains("key") && record["key"].is_string();
    if (!ok) {
      fail(ErrorCode::kUsage, "{}:{}: no record of snapkv eval (an object with a \"key\")", path_,
           number);
    }
    keep(std::move(record));
    good += line.size() + 1;
  }
  if (!repaired_) return;
  in.close();
  std::error_code error;
  std::filesystem::resize_file(path_, good, error);
  if (error) {
    fail(ErrorCode::kRuntime, "{}: can't cut off its torn last line: {}", path_, error.message());
  }
}

const Json& RecordFile::at(const std::string& key) const {
  const auto found = records_.find(key);
  if (found == records_.end()) fail(ErrorCode::kUsage, "{} has no record {}", path_, key);
  return found->second;
}

void RecordFile::append(Json record) {
  if (file_ == nullptr) {
    keep(std::move(record));
    return;
  }
  const std::string line = to_line(record) + "\n";
  const bool ok = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                  std::fflush(file_.get()) == 0;
  if (!ok) fail_io(path_, "can't be written");
  keep(std::move(record));
}

void RecordFile::keep(Json record) {
  const std::string key = record.at("key");
  drop_text(record);
  if (!records_.contains(key)) keys_.push_back(key);
  records_[key] = std::move(record);
}

Json RecordFile::records() const {
  Json all = Json::array();
  for (const std::string& key : keys_) all.push_back(records_.at(key));
  return all;
}

}  // namespace snapkv::eval
