// SPDX-License-Identifier: MIT
#include "eval/common/record_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"

namespace snapkv::eval {
namespace {

[[noreturn]] void fail_io(const std::string& path, const char* what) {
  fail(ErrorCode::kRuntime, "{}: {}: {}", path, what, std::strerror(errno));
}

/// Whether a line without a newline can be what a killed run left of a record. All tasks begin a
/// record with its key and its id, in the form that to_line() writes. A line that disagrees with
/// this form, as far as it goes, was not written by a run.
bool may_be_torn(std::string_view line) {
  const auto agrees = [](std::string_view text, std::string_view begin) {
    const size_t n = std::min(text.size(), begin.size());
    return text.substr(0, n) == begin.substr(0, n);
  };
  constexpr std::string_view kKey = "{\"key\":\"", kId = "\",\"id\":\"";
  if (!agrees(line, kKey)) return false;
  size_t end = kKey.size();  // where the key ends
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  return end >= line.size() || agrees(line.substr(end), kId);
}

// Removes prompts, which can be megabytes and which summaries do not need.
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

RecordScan scan_records(const std::string& path,
                        const std::function<void(Json record, size_t line)>& each) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_io(path, "can't be read");
  RecordScan scan;
  size_t n_lines = 0;
  for (std::string line; std::getline(in, line); scan.good_bytes += line.size() + 1) {
    if (in.eof() && may_be_torn(line)) {  // no newline: the run that wrote the line was killed
      scan.torn = true;
      break;
    }
    Json record = in.eof() ? Json() : parse_json(line);
    const bool ok = record.is_object() && record.contains("key") && record["key"].is_string();
    ++n_lines;
    if (!ok) {
      fail(ErrorCode::kUsage, "{}:{}: no record of snapkv eval (an object with a \"key\")", path,
           n_lines);
    }
    each(std::move(record), n_lines);
  }
  if (in.bad()) fail_io(path, "can't be read");
  return scan;
}

RecordFile::RecordFile(std::string path, bool resume) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_.emplace(path_);
  if (resume && file_->size() > 0) {
    read();
  } else if (file_->size() > 0) {
    fail(ErrorCode::kUsage, "{} has records already: continue it with --resume, or name another",
         path_);
  }
}

void RecordFile::read() {
  const RecordScan scan =
      scan_records(path_, [this](Json record, size_t /*line*/) { keep(std::move(record)); });
  repaired_ = scan.torn;
  if (repaired_) file_->truncate(scan.good_bytes);
}

JsonField RecordFile::at(const std::string& key) const {
  const auto found = records_.find(key);
  if (found == records_.end()) fail(ErrorCode::kUsage, "{} has no record {}", path_, key);
  const Kept& kept = found->second;
  return {kept.record, path_.empty() ? "a record" : fmt::format("{}:{}", path_, kept.line)};
}

void RecordFile::append(Json record) {
  if (file_) file_->append(to_line(record) + "\n");
  keep(std::move(record));
}

void RecordFile::keep(Json record) {
  const std::string key = record.at("key");
  drop_text(record);
  if (!records_.contains(key)) keys_.push_back(key);
  records_[key] = {std::move(record), ++n_lines_};
}

Json RecordFile::records() const {
  Json all = Json::array();
  for (const std::string& key : keys_) all.push_back(records_.at(key).record);
  return all;
}

}  // namespace snapkv::eval
