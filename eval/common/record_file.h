// SPDX-License-Identifier: MIT
// RecordFile: the JSONL file of an evaluation, one record per prompt and configuration, that a
// later run continues. Records are told apart by their "key". Used by the tasks and
// eval/command.cpp.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace snapkv::eval {

using Json = nlohmann::ordered_json;

/// One line without its newline; bytes that are not UTF-8 become U+FFFD.
std::string to_line(const Json& json);
/// The text with bytes that are not UTF-8 replaced, which is what a record can hold.
std::string to_utf8(const std::string& text);

class RecordFile {
 public:
  /// An empty `path`: records are kept in memory only.
  /// `resume`: reads the records that are there, and cuts off a last line that a killed run left
  /// unfinished. Otherwise the file must be empty or missing. Throws kUsage when it isn't, or when
  /// a line is no record (naming it); kRuntime when it can't be read or written.
  RecordFile(std::string path, bool resume);

  bool contains(const std::string& key) const { return records_.contains(key); }
  /// Throws kUsage when there is none.
  const Json& at(const std::string& key) const;
  /// Writes a line at once; the record needs a "key". Throws kRuntime.
  void append(Json record);
  /// Whether a torn line was cut off, for a message.
  bool repaired() const { return repaired_; }
  size_t size() const { return records_.size(); }
  /// All of the file, in its order, without the prompts' texts (they may be megabytes).
  Json records() const;

 private:
  void read();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  void keep(Json record);
  std::map<std::string, Json> records_;  // by key, without the prompt's text
  std::vector<std::string> keys_;        // in the file's order
  std::unique_ptr<std::FILE, Close> file_;
  bool repaired_ = false;
};

}  // namespace snapkv::eval
