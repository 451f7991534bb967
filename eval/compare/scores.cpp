// SPDX-License-Identifier: MIT
#include "eval/compare/scores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/parse_number.h"

namespace snapkv::eval {
namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string value_as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_line(value);
}

bool equals(const Json& value, const std::string& text) {
  if (value_as_text(value) == text) return true;
  const std::optional<double> number = parse_real(text);
  return number && value.is_number() && value.get<double>() == *number;
}

bool is_off(const std::string& text) { return text == "0" || text == "false"; }

/// The field that a condition is about; nullptr if the record does not have it.
const Json* find_field(const Json& record, const std::string& name) {
  const auto configuration = record.find("configuration");
  if (configuration != record.end() && configuration->is_object()) {
    const auto found = configuration->find(name);
    if (found != configuration->end()) return &*found;
  }
  const auto found = record.find(name);
  return found != record.end() && found->is_primitive() ? &*found : nullptr;
}

/// The model's fingerprint: a field, or, in records of older versions, a word in the key:
/// "ID | NAME FINGERPRINT PRECISION | ...".
std::string fingerprint_of(const JsonField& record, const std::string& id) {
  if (record.json().contains("fingerprint")) return record.at("fingerprint").text();
  const std::string& key = record.at("key").text();
  if (!key.starts_with(id + " | ")) return "";
  const size_t begin = id.size() + 3;  // where the model begins
  const std::string_view rest = std::string_view(key).substr(begin);
  const std::string_view model = rest.substr(0, rest.find(" | "));
  constexpr size_t kDigits = 16;
  for (size_t space = model.find(' '); space != model.npos; space = model.find(' ', space + 1)) {
    const std::string_view word = model.substr(space + 1, kDigits);
    const bool ends = space + 1 + kDigits < model.size() && model[space + 1 + kDigits] == ' ';
    if (ends && word.find_first_not_of("0123456789abcdef") == word.npos) return std::string(word);
  }
  return "";
}

/// Collects the result of read_scores().
class Reader {
 public:
  Reader(const std::string& path, const std::vector<Conditions>& sets) : sets_(sets) {
    file_.path = path;
  }

  void add(const Json& json, size_t line) {
    if (!json.contains("score")) {
      ++file_.n_without_score;
      return;
    }
    const JsonField record(json, fmt::format("{}:{}", file_.path, line));
    Score score;
    score.id = record.at("id").text();
    score.value = record.at("score").number(0, 1);
    score.line = line;
    for (const Conditions& conditions : sets_) score.meets.push_back(meets(json, conditions));
    note_fields(json);
    const size_t group = group_of(record, score.id);
    std::vector<Score>& scores = file_.groups[group].scores;
    const auto [place, is_new] =
        places_.emplace(fmt::format("{} {}", group, record.at("key").text()), scores.size());
    if (is_new) {
      scores.push_back(std::move(score));
    } else {
      scores[place->second] = std::move(score);
    }
  }

  ScoreFile finish(bool torn) {
    file_.torn = torn;
    for (const Conditions& conditions : sets_) check_fields(conditions);
    for (ScoreGroup& group : file_.groups) {
      std::stable_sort(group.scores.begin(), group.scores.end(),
                       [](const Score& a, const Score& b) { return a.id < b.id; });
    }
    return std::move(file_);
  }

 private:
  size_t group_of(const JsonField& record, const std::string& id) {
    ScoreGroup group;
    group.file = file_.path;
    group.model = file_name(record.at("model").text());
    group.fingerprint = fingerprint_of(record, id);
    const JsonField configuration = record.at("configuration");
    configuration.at("policy").text();
    group.configuration = configuration.json();
    if (record.json().contains("question")) group.question = record.at("question").text();
    const std::string name = fmt::format("{}\n{}\n{}\n{}", group.model, group.fingerprint,
                                         group.question, to_line(group.configuration));
    const auto [found, is_new] = groups_.emplace(name, file_.groups.size());
    if (is_new) file_.groups.push_back(std::move(group));
    return found->second;
  }

  void note_fields(const Json& record) {
    for (const auto& [name, value] : record.items()) {
      if (value.is_primitive() && name != "key" && name != "score") fields_.insert(name);
    }
    const auto configuration = record.find("configuration");
    if (configuration == record.end() || !configuration->is_object()) return;
    for (const auto& [name, value] : configuration->items()) fields_.insert(name);
  }

  void check_fields(const Conditions& conditions) const {
    for (const Condition& condition : conditions) {
      if (fields_.contains(condition.field) || fields_.empty()) continue;
      fail(ErrorCode::kUsage, "{}: no record has a field {}; fields: {}", file_.path,
           condition.field, fmt::join(fields_, ", "));
    }
  }

  const std::vector<Conditions>& sets_;
  ScoreFile file_;
  std::unordered_map<std::string, size_t> groups_;  // by everything that distinguishes them
  std::unordered_map<std::string, size_t> places_;  // index in the group, by group and key
  std::set<std::string> fields_;
};

// ---------------------------------------------------------------- labels

/// The fields that a label may contain.
Json label_fields(const ScoreGroup& group) {
  Json fields = group.configuration;
  if (!group.question.empty()) fields["question"] = group.question;
  fields["model"] = group.model;
  return fields;
}

/// Whether a field distinguishes two groups: both have it, with different values, or they have the
/// same policy and only one of them has it (a missing field is off).
bool tells_apart(const Json& a, const Json& b, const std::string& name) {
  const auto in_a = a.find(name), in_b = b.find(name);
  if (in_a != a.end() && in_b != b.end()) return *in_a != *in_b;
  return a.at("policy") == b.at("policy") && (in_a != a.end() || in_b != b.end());
}

std::string label_of(const std::vector<Json>& all, size_t i, const std::set<std::string>& names) {
  const Json& fields = all[i];
  std::string label = "policy=" + value_as_text(fields.at("policy"));
  const auto add = [&](const std::string& name, const std::string& value) {
    label += fmt::format(",{}={}", name, value);
  };
  const auto is_shown = [&](const std::string& name) {
    if (name == "budget" || name == "ratio") return fields.contains(name);
    return std::any_of(all.begin(), all.end(),
                       [&](const Json& other) { return tells_apart(fields, other, name); });
  };
  for (const auto& [name, value] : fields.items()) {
    if (name != "policy" && is_shown(name)) add(name, value_as_text(value));
  }
  for (const std::string& name : names) {  // fields that this group does not have
    if (!fields.contains(name) && is_shown(name)) add(name, "0");
  }
  return label;
}

}  // namespace

Conditions parse_conditions(const std::string& text, const std::string& option) {
  Conditions conditions;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    begin = std::min(text.find_first_not_of(' ', begin), end);
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == part.size()) {
      fail(ErrorCode::kUsage, "{}: {} is not a condition, expected FIELD=VALUE,FIELD=VALUE,...",
           option, part.empty() ? "an empty text" : part);
    }
    conditions.push_back({part.substr(0, equals), part.substr(equals + 1)});
    begin = end + 1;
  }
  return conditions;
}

bool meets(const Json& record, const Conditions& conditions) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const Json* value = find_field(record, condition.field);
    if (value == nullptr) return is_off(condition.value);
    if (condition.field == "model" && value->is_string() &&
        file_name(value->get<std::string>()) == condition.value) {
      return true;
    }
    return equals(*value, condition.value);
  });
}

ScoreFile read_scores(const std::string& path, const std::vector<Conditions>& sets) {
  Reader reader(path, sets);
  const RecordScan scan =
      scan_records(path, [&](const Json& record, size_t line) { reader.add(record, line); });
  return reader.finish(scan.torn);
}

void name_groups(const std::vector<ScoreFile*>& files) {
  std::vector<ScoreGroup*> groups;
  std::vector<Json> fields;
  std::set<std::string> names;
  for (ScoreFile* file : files) {
    for (ScoreGroup& group : file->groups) {
      groups.push_back(&group);
      fields.push_back(label_fields(group));
      for (const auto& [name, value] : group.configuration.items()) names.insert(name);
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) groups[i]->label = label_of(fields, i, names);
}

bool same_model(const ScoreGroup& a, const ScoreGroup& b) {
  if (!a.fingerprint.empty() && !b.fingerprint.empty()) return a.fingerprint == b.fingerprint;
  return a.model == b.model;
}

}  // namespace snapkv::eval
