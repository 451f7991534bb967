// SPDX-License-Identifier: MIT
// RecordFile: the JSONL file of an evaluation, one record per prompt and configuration, that a
// later run continues. Records are told apart by their "key". Used by the tasks and
// eval/command.cpp.
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

/// One line without its newline; bytes that are not UTF-8 become U+FFFD.
std::string to_line(const Json& json);
/// The text with bytes that are not UTF-8 replaced, which is what a record can hold.
std::string to_utf8(const std::string& text);

struct RecordScan {
  uint64_t good_bytes = 0;  ///< of whole records
  bool torn = false;        ///< what follows them is the beginning of another
};
/// Reads a file without changing it: calls `each` for every record, with its line, from 1. Throws
/// kUsage when a line is no record (naming it), kRuntime when the file can't be read.
RecordScan scan_records(const std::string& path,
                        const std::function<void(Json record, size_t line)>& each);

class RecordFile {
 public:
  /// An empty `path`: records are kept in memory only.
  /// `resume`: reads the records that are there, and cuts off a last line that a killed run left
  /// unfinished, which begins as records do. Otherwise the file must be empty or missing. Throws
  /// kUsage when it isn't, or when a line is no record (naming it), or when another process writes
  /// the file; kRuntime when it can't be read or written. The file is there from now on, and goes
  /// again if nothing is appended.
  RecordFile(std::string path, bool resume);

  bool contains(const std::string& key) const { return records_.contains(key); }
  /// Throws kUsage when there is none, and when a field that is asked for is not what it should be.
  JsonField at(const std::string& key) const;
  /// Writes a line, which is on the disk when this returns; the record needs a "key". Throws
  /// kRuntime; the file then holds what it held before.
  void append(Json record);
  /// Whether a torn line was cut off, for a message.
  bool repaired() const { return repaired_; }
  size_t size() const { return records_.size(); }
  /// All of the file, in its order, without the prompts' texts (they may be megabytes).
  Json records() const;

 private:
  struct Kept {
    Json record;      // without the prompt's text
    size_t line = 0;  // in the file, from 1
  };
  void read();
  void keep(Json record);

  std::string path_;
  std::map<std::string, Kept> records_;  // by key
  std::vector<std::string> keys_;        // in the file's order
  size_t n_lines_ = 0;
  std::optional<AppendFile> file_;  // nothing without a path
  bool repaired_ = false;
};

}  // namespace snapkv::eval
