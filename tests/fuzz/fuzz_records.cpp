// SPDX-License-Identifier: MIT
// The fuzz target for the files that evaluations read: rows of LongBench, and records, which
// --resume continues, tables are made of and `eval compare` reads. libFuzzer's entry point (preset
// `fuzz`), also linked into tests/eval, which replays corpus_records/ and mutations of it.
#include "tests/fuzz/fuzz_records.h"

#include <fmt/core.h>

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "eval/common/page.h"
#include "eval/common/record_file.h"
#include "eval/compare/compare.h"
#include "eval/fidelity/fidelity.h"
#include "eval/longbench/data.h"
#include "eval/longbench/longbench.h"
#include "eval/overlap/overlap.h"
#include "eval/turns/turns.h"
#include "snapkv/error.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/time_limit.h"

namespace snapkv::test {
namespace {

using namespace eval;  // everything used here belongs to it

// A run of two prompts and two caches that is never computed.
struct Run {
  RunOptions options;
  std::vector<Item> items;
  TurnsOptions turns;
  FidelityPlan fidelity;
  OverlapOptions overlap;
  std::vector<LongbenchSet> longbench;

  Run() {
    options.model = Model::load({.path = SNAPKV_SOURCE_DIR "/models/needle.gguf", .n_threads = 1});
    options.configurations.resize(2);
    options.configurations[0].kv = {.name = "full"};
    longbench.resize(2);
    longbench[0].task = longbench_tasks().front();
    longbench[1].task = longbench_tasks().back();
    for (const LongbenchSet& set : longbench) {
      Item item;
      item.id = item.column = set.task.name;
      items.push_back(std::move(item));
    }
    turns.n_questions = 2;
    fidelity.n_continue = 3;
    fidelity.texts.push_back({"text", "0", std::vector<int32_t>(40)});
    fidelity.passages = {{0, 10, 0}, {0, 20, 0}};
    overlap.n_windows = overlap.n_gen_windows = 2;
    overlap.n_samples = 2;
  }

  std::string tables(char task, const RecordFile& file) const {
    switch (task) {
      case 's':
        return summary_table(options, items, file);
      case 't':
        return turns_tables(options, turns, items, file);
      case 'f':
        return fidelity_table(options, fidelity, file);
      case 'o':
        return overlap_tables(options, overlap, file);
      default:
        return longbench_table(options, longbench, items, file);
    }
  }

  // The keys that tables() looks for.
  std::vector<std::string> keys(char task) const {
    std::vector<std::string> keys;
    if (task == 'o') {
      for (const char* part : {"windows", "questions"}) {
        for (int i = 0; i < overlap.n_samples; ++i) {
          keys.push_back(overlap_key(options, overlap, part, i));
        }
      }
      return keys;
    }
    for (const SessionOptions& configuration : options.configurations) {
      for (size_t i = 0; i < items.size(); ++i) {
        keys.push_back(task == 'f'
                           ? fidelity_key(options, fidelity, fidelity.passages[i], configuration)
                           : record_key(options, items[i], configuration));
      }
    }
    return keys;
  }
};

// Replaces "@0" by the first key as spelled in a JSON string, and so on.
std::string with_keys(std::string_view text, const std::vector<std::string>& keys) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t number = i + 1 < text.size() ? static_cast<size_t>(text[i + 1] - '0') : SIZE_MAX;
    if (text[i] != '@' || number >= keys.size()) {
      out += text[i];
      continue;
    }
    const std::string spelt = to_line(Json(keys[number]));
    out += spelt.substr(1, spelt.size() - 2);
    ++i;
  }
  return out;
}

// Tables must never show anything that is not a number. A perplexity may be infinite.
void check_numbers(char task, const std::string& tables) {
  SNAPKV_CHECK(tables.find("nan") == std::string::npos);
  SNAPKV_CHECK(task == 'f' || tables.find("inf") == std::string::npos);
}

std::string read_records(char task, std::string_view text) {
  static const Run run;
  static InputFile input;
  input.write(with_keys(text, run.keys(task)));
  size_t n = 0;
  std::string tables;
  {
    RecordFile file(input.path(), true);
    n = file.size();
    SNAPKV_CHECK(file.records().size() == n);
    (void)to_line(records_page("eval", file.records()));
    file.append({{"key", "one more"}});
    try {
      tables = run.tables(task, file);
      check_numbers(task, tables);
    } catch (const Error& e) {
      const bool has_perplexity = task == 'f';  // which may exceed every double
      SNAPKV_CHECK(e.code() == ErrorCode::kUsage ||
                   (has_perplexity && e.code() == ErrorCode::kRuntime));
    }
  }
  RecordFile again(input.path(), true);
  SNAPKV_CHECK(!again.repaired() && again.contains("one more"));
  SNAPKV_CHECK(again.size() == n + 1 || again.size() == n);  // the input may contain it
  return tables;
}

std::string compare(std::string_view text) {
  static InputFile input;
  input.write(text);
  const std::string table =
      compare_records({.file_a = input.path(), .file_b = input.path(), .base = "policy=full"});
  for (const char* word : {"nan%", "inf%", "nan [", "inf ["}) {
    SNAPKV_CHECK(table.find(word) == std::string::npos);
  }
  return table;
}

std::string score_row(std::string_view text) {
  if (text.empty()) return "";
  const auto& tasks = longbench_tasks();
  LongbenchSet set;
  set.task = tasks[static_cast<unsigned char>(text[0]) % tasks.size()];
  set.prompt = text.substr(1, 100);
  const LongbenchRow row = parse_longbench_row(std::string(text.substr(1)), set.task, "input:1");
  SNAPKV_CHECK(!row.answers.empty() && row.length >= 0);
  if (!set.task.supported) return "not supported";
  for (const std::string* answer : {&row.context, &row.input, &row.answers[0]}) {
    const double score = longbench_score(set.task, row.answers, row.classes, *answer);
    SNAPKV_CHECK(score >= 0 && score <= 1);
  }
  try {
    (void)longbench_prompt(set, row);
  } catch (const Error& e) {
    SNAPKV_CHECK(e.code() == ErrorCode::kUsage);
  }
  return "scored";
}

}  // namespace

std::string use_hostile_records(std::string_view bytes) {
  if (bytes.empty()) return "";
  try {
    if (bytes[0] == 'r') return score_row(bytes.substr(1));
    if (bytes[0] == 'c') return compare(bytes.substr(1));
    return read_records(bytes[0], bytes.substr(1));
  } catch (const Error& e) {
    SNAPKV_CHECK(e.code() == ErrorCode::kUsage);
    return "";
  }
}

}  // namespace snapkv::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const snapkv::test::TimeLimit limit;
  snapkv::test::use_hostile_records({reinterpret_cast<const char*>(data), size});
  return 0;
}
