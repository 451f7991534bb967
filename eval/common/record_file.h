// SPDX-License-Identifier: MIT
// RecordFile: the JSONL file of an evaluation, with one record per prompt and configuration, which
// a later run can continue. Records are identified by their "key".
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/common/append_file.h"
#include "eval/common/json_field.h"

namespace snapkv::eval {

using Json = nlohmann::ordered_json;

/// One line without its newline; bytes that are not UTF-8 are replaced by U+FFFD.
std::string to_line(const Json& json);
/// The text as a record can hold it: bytes that are not UTF-8 are replaced.
std::string to_utf8(const std::string& text);

struct RecordScan {
  uint64_t good_bytes = 0;  ///< of complete records
  bool torn = false;        ///< an unfinished record follows them
};
/// Reads a file without changing it and calls `each` with every record and its line, counted from
/// 1. Throws kUsage naming the line if it is not a record, kRuntime if the file cannot be read.
RecordScan scan_records(const std::string& path,
                        const std::function<void(Json record, size_t line)>& each);

class RecordFile {
 public:
  /// If `path` is empty, records are kept only in memory. `resume`: reads the records in the file,
  /// and cuts off a last line that begins like a record and that a killed run left unfinished.
  /// Otherwise the file must be empty or missing. Throws kUsage if it is not, if a line is not a
  /// record (naming it), or if another process writes the file; kRuntime if it cannot be read or
  /// written. The file exists from now on; it is removed again if nothing is appended.
  RecordFile(std::string path, bool resume);

  bool contains(const std::string& key) const { return records_.contains(key); }
  /// Throws kUsage if there is no such record, and later if a field that is read is not as
  /// expected.
  JsonField at(const std::string& key) const;
  /// Writes a line, which is on the disk when this returns. The record needs a "key". Throws
  /// kRuntime; the file is then unchanged.
  void append(Json record);
  /// Whether an unfinished line was cut off, for a message.
  bool repaired() const { return repaired_; }
  size_t size() const { return records_.size(); }
  /// All records in the file's order, without the prompts' texts (which can be megabytes).
  Json records() const;

 private:
  struct Kept {
    Json record;      // without the prompt's text
    size_t line = 0;  // in the file, counted from 1
  };
  void read();
  void keep(Json record);

  std::string path_;
  std::map<std::string, Kept> records_;  // by key
  std::vector<std::string> keys_;        // in the file's order
  size_t n_lines_ = 0;
  std::optional<AppendFile> file_;  // empty without a path
  bool repaired_ = false;
};

}  // namespace snapkv::eval
