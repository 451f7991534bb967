// SPDX-License-Identifier: MIT
#include "eval/longbench/data.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/json_field.h"
#include "eval/common/metrics.h"
#include "eval/common/record_file.h"

namespace snapkv::eval {
namespace {

constexpr const char* kPromptFile = "dataset2prompt.json";
constexpr const char* kLengthFile = "dataset2maxlen.json";
constexpr int64_t kMostAnswer = 1 << 20;  // tokens, the limit of --n-predict

// The texts of an array that has at least one.
std::vector<std::string> texts_of(const JsonField& array) {
  std::vector<std::string> texts = {array.at(0).text()};
  for (int64_t i = 1; i < array.size(); ++i) texts.push_back(array.at(i).text());
  return texts;
}

const LongbenchTask& longbench_task(const std::string& wanted) {
  std::string names;
  for (const LongbenchTask& task : longbench_tasks()) {
    if (task.name == wanted) return task;
    if (task.supported) names += (names.empty() ? "" : ", ") + task.name;
  }
  fail(ErrorCode::kUsage, "LongBench has no task {}; supported are {}", wanted, names);
}

std::string file_of(const std::string& folder, const LongbenchTask& task) {
  return (std::filesystem::path(folder) / (task.name + ".jsonl")).string();
}

std::vector<LongbenchTask> choose_tasks(const std::string& folder,
                                        const std::vector<std::string>& wanted,
                                        std::vector<std::string>& left_out) {
  std::vector<LongbenchTask> tasks;
  for (const std::string& name : wanted) {
    const LongbenchTask& task = longbench_task(name);
    if (!task.supported) {
      fail(ErrorCode::kUsage, "LongBench's {} is not supported: word segmentation of Chinese",
           name);
    }
    const auto is_it = [&](const LongbenchTask& other) { return other.name == task.name; };
    if (std::none_of(tasks.begin(), tasks.end(), is_it)) tasks.push_back(task);
  }
  if (!wanted.empty()) return tasks;
  for (const LongbenchTask& task : longbench_tasks()) {
    std::error_code error;
    if (!std::filesystem::exists(file_of(folder, task), error)) continue;
    if (task.supported) {
      tasks.push_back(task);
    } else {
      left_out.push_back(task.name);
    }
  }
  if (tasks.empty()) {
    fail(ErrorCode::kUsage,
         "{}: no file of a supported LongBench task here, such as hotpotqa.jsonl", folder);
  }
  return tasks;
}

std::string config_folder(const std::string& folder, const std::string& prompts) {
  std::error_code error;
  std::vector<std::filesystem::path> places = {prompts};
  if (prompts.empty()) places = {folder, std::filesystem::path(folder) / "config"};
  for (const std::filesystem::path& place : places) {
    if (std::filesystem::exists(place / kPromptFile, error)) return place.string();
  }
  fail(ErrorCode::kUsage,
       "no {} in {}: LongBench's prompts are not part of this program; copy {} and {} there from "
       "the folder config of its repository (github.com/THUDM/LongBench), or name their folder "
       "with --prompts",
       kPromptFile, prompts.empty() ? folder + " or its subfolder config" : prompts, kPromptFile,
       kLengthFile);
}

Json read_json(const std::string& folder, const char* name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read", path);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) fail(ErrorCode::kRuntime, "{}: can't be read", path);
  if (nests_too_deep(text.str())) {
    fail(ErrorCode::kUsage, "{}: nested deeper than {} levels", path, kMostJsonLevels);
  }
  try {
    Json json = Json::parse(text.str());
    if (json.is_object()) return json;
  } catch (const Json::exception& e) {
    fail(ErrorCode::kUsage, "{}: no JSON: {}", path, e.what());
  }
  fail(ErrorCode::kUsage, "{}: must be an object of one entry per task", path);
}

void read_config(const std::string& folder, std::vector<LongbenchSet>& sets) {
  const Json prompts = read_json(folder, kPromptFile), lengths = read_json(folder, kLengthFile);
  for (LongbenchSet& set : sets) {
    set.prompt = JsonField(prompts, folder + "/" + kPromptFile).at(set.task.name).text();
    set.n_predict =
        JsonField(lengths, folder + "/" + kLengthFile).at(set.task.name).integer(1, kMostAnswer);
    longbench_prompt(set, {});  // fails now, not later, if the prompt has an unknown field
  }
}

void read_lines(LongbenchSet& set, int64_t limit) {
  std::ifstream in(set.path, std::ios::binary);
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read", set.path);
  std::string line;
  int64_t offset = 0, number = 0;
  while (std::getline(in, line)) {
    const int64_t n_bytes = std::ssize(line);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      ++set.n_lines;
      if (limit == 0 || set.n_lines <= limit) {
        const LongbenchRow row =
            parse_longbench_row(line, set.task, fmt::format("{}:{}", set.path, number));
        set.lines.push_back({number, offset, n_bytes, row.id, hash64(line)});
      }
    }
    offset += n_bytes + 1;
  }
  if (in.bad()) fail(ErrorCode::kRuntime, "{}: can't be read", set.path);
  if (set.n_lines == 0) fail(ErrorCode::kUsage, "{}: no lines in it", set.path);
}

}  // namespace

const char* name(LongbenchMetric metric) {
  switch (metric) {
    case LongbenchMetric::qa_f1:
      return "F1";
    case LongbenchMetric::rouge_l:
      return "ROUGE-L";
    case LongbenchMetric::classification:
      return "classification";
    case LongbenchMetric::retrieval:
      return "retrieval";
    case LongbenchMetric::count:
      return "count";
    case LongbenchMetric::code:
      return "similarity";
  }
  return "";
}

const std::vector<LongbenchTask>& longbench_tasks() {
  using enum LongbenchMetric;
  static const std::vector<LongbenchTask> tasks = {
      {"narrativeqa", qa_f1},
      {"qasper", qa_f1},
      {"multifieldqa_en", qa_f1},
      {"multifieldqa_zh", qa_f1, false, true, false},
      {"hotpotqa", qa_f1},
      {"2wikimqa", qa_f1},
      {"musique", qa_f1},
      {"dureader", rouge_l, false, true, false},
      {"gov_report", rouge_l},
      {"qmsum", rouge_l},
      {"multi_news", rouge_l},
      {"vcsum", rouge_l, false, true, false},
      {"trec", classification, true},
      {"triviaqa", qa_f1, true},
      {"samsum", rouge_l, true},
      {"lsht", classification, true, true},
      {"passage_count", count},
      {"passage_retrieval_en", retrieval},
      {"passage_retrieval_zh", retrieval, false, true},
      {"lcc", code},
      {"repobench-p", code},
  };
  return tasks;
}

LongbenchRow parse_longbench_row(const std::string& line, const LongbenchTask& task,
                                 const std::string& where) {
  const Json json = parse_json(line);
  if (json.is_discarded()) fail(ErrorCode::kUsage, "{}: no valid JSON", where);
  const JsonField fields(json, where);
  LongbenchRow row;
  row.id = fields.at("_id").text();
  row.input = fields.at("input").text();
  row.context = fields.at("context").text();
  row.language = fields.at("language").text();
  row.answers = texts_of(fields.at("answers"));
  const std::string& dataset = fields.at("dataset").text();
  if (dataset != task.name) {
    fail(ErrorCode::kUsage, "{}: field dataset must be {}, it is {}", where, task.name, dataset);
  }
  row.length = fields.at("length").integer(0);
  if (task.metric == LongbenchMetric::classification) {
    row.classes = texts_of(fields.at("all_classes"));
  }
  if (task.metric == LongbenchMetric::retrieval) {
    for (const std::string& answer : row.answers) {
      if (!numbers_in(answer).empty()) continue;
      fail(ErrorCode::kUsage, "{}: field answers must name a paragraph's number, it is {}", where,
           answer);
    }
  }
  return row;
}

std::vector<LongbenchSet> open_longbench(const std::string& folder, const std::string& prompts,
                                         const std::vector<std::string>& tasks, int64_t n_lines,
                                         std::vector<std::string>& left_out) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    fail(ErrorCode::kRuntime, "{}: no folder there", folder);
  }
  std::vector<LongbenchSet> sets;
  for (const LongbenchTask& task : choose_tasks(folder, tasks, left_out)) {
    LongbenchSet set;
    set.task = task;
    set.path = file_of(folder, task);
    sets.push_back(std::move(set));
  }
  read_config(config_folder(folder, prompts), sets);
  for (LongbenchSet& set : sets) read_lines(set, n_lines);
  return sets;
}

LongbenchRow read_longbench_row(const LongbenchSet& set, const LongbenchLine& line) {
  std::ifstream in(set.path, std::ios::binary);
  std::string text(static_cast<size_t>(line.n_bytes), '\0');
  in.seekg(line.offset);
  in.read(text.data(), line.n_bytes);
  if (!in || hash64(text) != line.fingerprint) {
    fail(ErrorCode::kRuntime, "{}:{}: has changed since the run began", set.path, line.number);
  }
  return parse_longbench_row(text, set.task, fmt::format("{}:{}", set.path, line.number));
}

std::string longbench_prompt(const LongbenchSet& set, const LongbenchRow& row) {
  const std::string& pattern = set.prompt;
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c != '{' && c != '}') {
      text += c;
      ++at;
    } else if (at + 1 < pattern.size() && pattern[at + 1] == c) {
      text += c;
      at += 2;
    } else {
      const size_t close = pattern.find('}', at);
      const std::string name =
          c == '{' && close != std::string::npos ? pattern.substr(at + 1, close - at - 1) : "";
      if (name != "context" && name != "input") {
        fail(ErrorCode::kUsage, "{}: the prompt of {} may have {{context}} and {{input}}, not {}",
             kPromptFile, set.task.name, pattern.substr(at, 20));
      }
      text += name == "context" ? row.context : row.input;
      at = close + 1;
    }
  }
  return text;
}

}  // namespace snapkv::eval
