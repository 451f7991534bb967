// SPDX-License-Identifier: MIT
#include "eval/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "eval/compare/paired.h"
#include "eval/compare/scores.h"

namespace snapkv::eval {
namespace {

enum Set : size_t { kSetA, kSetB };  // sets of conditions, in the order of read_scores()

using Groups = std::vector<const ScoreGroup*>;

/// One side of a comparison: a file, and the conditions that its records must meet.
struct Side {
  const ScoreFile* file = nullptr;
  Set set = kSetA;
  std::string option;  // the option that narrows it: "--a"
  bool is_narrowed = false;
  Groups groups;  // the groups with records that meet the conditions
};

/// One group of each side.
struct GroupPair {
  const ScoreGroup* a = nullptr;
  const ScoreGroup* b = nullptr;
};

/// The scores of a row that are compared.
struct Pairs {
  std::vector<double> a, b;
  int64_t n_only_a = 0, n_only_b = 0;  // prompts that the other side does not have
  int64_t n_paired = 0;                // pairs before the full cache's answers are considered
  int64_t n_unknown = 0;               // pairs without a record of the full cache
};

std::string list_of(const Groups& groups) {
  constexpr size_t kMost = 40;
  std::string text;
  for (size_t i = 0; i < std::min(groups.size(), kMost); ++i) text += "\n  " + groups[i]->label;
  if (groups.size() > kMost) text += fmt::format("\n  and {} more", groups.size() - kMost);
  return text;
}

Groups all_groups(const ScoreFile& file) {
  Groups groups;
  for (const ScoreGroup& group : file.groups) groups.push_back(&group);
  return groups;
}

bool any_meets(const ScoreGroup& group, Set set) {
  return std::any_of(group.scores.begin(), group.scores.end(),
                     [&](const Score& score) { return score.meets[set]; });
}

void choose_groups(Side& side) {
  const ScoreFile& file = *side.file;
  if (file.groups.empty()) {
    fail(ErrorCode::kUsage, "{} has no records with a score{}", file.path,
         file.n_without_score > 0 ? " (those of fidelity and overlap have none)" : "");
  }
  for (const ScoreGroup& group : file.groups) {
    if (any_meets(group, side.set)) side.groups.push_back(&group);
  }
  if (!side.groups.empty()) return;
  fail(ErrorCode::kUsage, "{}: no record of {} meets that; its configurations:{}", side.option,
       file.path, list_of(all_groups(file)));
}

const ScoreGroup* the_only_group(const Side& side) {
  if (side.groups.size() == 1) return side.groups.front();
  fail(ErrorCode::kUsage,
       "{} has {} configurations{}: choose one with {} \"FIELD=VALUE,...\", or compare all with "
       "one with --base:{}",
       side.file->path, side.groups.size(), side.is_narrowed ? " that meet the conditions" : "",
       side.option, list_of(side.groups));
}

// ---------------------------------------------------------------- rows

void check_models(const ScoreGroup& a, const ScoreGroup& b, bool any_model) {
  if (any_model || same_model(a, b)) return;
  const auto name_of = [](const ScoreGroup& group) {
    return group.fingerprint.empty() ? group.model
                                     : fmt::format("{} ({})", group.model, group.fingerprint);
  };
  fail(ErrorCode::kUsage,
       "the sides are of different models, {} and {}: choose records of one with model=NAME, or "
       "compare the models with --any-model",
       name_of(a), name_of(b));
}

std::vector<GroupPair> rows_of_base(const Side& a, const Side& b) {
  if (a.groups.size() > 1) {
    fail(ErrorCode::kUsage, "--base must leave one configuration of {}, it leaves {}:{}",
         a.file->path, a.groups.size(), list_of(a.groups));
  }
  std::vector<GroupPair> rows;
  for (const ScoreGroup* group : b.groups) {
    if (group != a.groups.front()) rows.push_back({a.groups.front(), group});
  }
  if (rows.empty()) {
    fail(ErrorCode::kUsage, "{} has no other configuration than {}", b.file->path,
         a.groups.front()->label);
  }
  return rows;
}

/// Pairs each configuration with the same one in the other file; the model may differ.
std::vector<GroupPair> rows_of_same(const Side& a, const Side& b) {
  std::vector<GroupPair> rows;
  for (const ScoreGroup* group : a.groups) {
    Groups same;
    for (const ScoreGroup* other : b.groups) {
      if (other->configuration != group->configuration || other->question != group->question) {
        continue;
      }
      if (!same.empty() && same_model(*group, *same.front())) continue;
      if (same_model(*group, *other)) same.clear();
      same.push_back(other);
    }
    if (same.size() > 1) {
      fail(ErrorCode::kUsage,
           "{} has records of {} models with the configuration {}: choose one with --b "
           "model=NAME:{}",
           b.file->path, same.size(), group->label, list_of(same));
    }
    if (!same.empty()) rows.push_back({group, same.front()});
  }
  if (rows.empty()) {
    fail(ErrorCode::kUsage,
         "no configuration is in both files: choose one of each with --a and --b, or compare all "
         "with one with --base\n{}:{}\n{}:{}",
         a.file->path, list_of(a.groups), b.file->path, list_of(b.groups));
  }
  return rows;
}

// ---------------------------------------------------------------- pairs

/// The scores that meet the side's conditions, ordered by id.
std::vector<const Score*> scores_of(const ScoreGroup& group, Set set) {
  std::vector<const Score*> scores;
  for (const Score& score : group.scores) {
    if (!score.meets[set]) continue;
    if (!scores.empty() && scores.back()->id == score.id) {
      fail(ErrorCode::kUsage,
           "{}: lines {} and {} are both of prompt {} with {}: they differ in version, precision "
           "or answer length; choose by a field, as in version=0.1.0",
           group.file, scores.back()->line, score.line, score.id, group.label);
    }
    scores.push_back(&score);
  }
  return scores;
}

/// Whether the full cache answers a prompt right, by id. If the prompt was run in several ways
/// (before and after the question, with rows of several types), all of them must be right.
using FullAnswers = std::map<std::string, bool>;

FullAnswers full_answers(const GroupPair& row, const std::vector<const ScoreFile*>& files) {
  FullAnswers answers;
  for (const ScoreFile* file : files) {
    for (const ScoreGroup& group : file->groups) {
      if (group.configuration.at("policy") != "full") continue;
      if (!same_model(group, *row.a) && !same_model(group, *row.b)) continue;
      for (const Score& score : group.scores) {
        const bool right = score.value >= kRightScore;
        const auto [answer, is_new] = answers.emplace(score.id, right);
        answer->second = answer->second && right;
      }
    }
  }
  return answers;
}

Pairs pair_up(const GroupPair& row, const std::vector<const ScoreFile*>& files, bool of_full) {
  const std::vector<const Score*> a = scores_of(*row.a, kSetA), b = scores_of(*row.b, kSetB);
  const FullAnswers full = of_full ? full_answers(row, files) : FullAnswers();
  Pairs pairs;
  bool differs = row.a != row.b;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const int order = i == a.size() ? 1 : j == b.size() ? -1 : a[i]->id.compare(b[j]->id);
    if (order != 0) {
      ++(order < 0 ? pairs.n_only_a : pairs.n_only_b);
      ++(order < 0 ? i : j);
      continue;
    }
    const Score &in_a = *a[i++], &in_b = *b[j++];
    differs = differs || in_a.line != in_b.line;
    ++pairs.n_paired;
    if (of_full) {
      const auto answer = full.find(in_a.id);
      if (answer == full.end()) ++pairs.n_unknown;
      if (answer == full.end() || !answer->second) continue;
    }
    pairs.a.push_back(in_a.value);
    pairs.b.push_back(in_b.value);
  }
  if (pairs.n_paired == 0) {
    fail(ErrorCode::kUsage,
         "no prompt is on both sides: A has {} ({} ...), B has {} ({} ...); records are paired by "
         "their id",
         a.size(), a.front()->id, b.size(), b.front()->id);
  }
  if (!differs) fail(ErrorCode::kUsage, "both sides are the same records, of {}", row.a->label);
  if (of_full && pairs.n_unknown == pairs.n_paired) {
    fail(ErrorCode::kUsage,
         "--of-full: no record of the full cache (policy full) has a prompt of {}", row.b->label);
  }
  if (pairs.a.empty()) {
    fail(ErrorCode::kUsage, "--of-full: the full cache answers none of the {} prompts of {} right",
         pairs.n_paired, row.b->label);
  }
  return pairs;
}

// ---------------------------------------------------------------- table

constexpr const char* kExplanation =
    "\nB - A: percentage points, with the 95% bootstrap interval of the paired difference ({} "
    "resamples).\nwon, lost: prompts with a higher, a lower score in B. p: McNemar's exact test, "
    "two-sided{}.\n";

std::string table_row(const GroupPair& row, const Pairs& pairs, const PairedResult& r,
                      bool of_full) {
  const std::string n =
      of_full ? fmt::format("{} of {}", r.n, pairs.n_paired) : fmt::format("{}", r.n);
  return fmt::format(
      "| {} | {} | {:.1f}% | {:.1f}% | {:+.1f} [{:+.1f}, {:+.1f}] | {} | {} | {} | {:.2g} |\n",
      row.b->label, n, 100 * r.mean_a, 100 * r.mean_b, 100 * r.difference, 100 * r.interval.low,
      100 * r.interval.high, r.won, r.lost, r.tied, r.p);
}

std::string remarks_of(const GroupPair& row, const Pairs& pairs) {
  std::string text;
  if (pairs.n_only_a + pairs.n_only_b > 0) {
    text += fmt::format("Not paired, {}: {} prompts only in A, {} only in B.\n", row.b->label,
                        pairs.n_only_a, pairs.n_only_b);
  }
  if (pairs.n_unknown > 0) {
    text += fmt::format("Not counted, {}: {} prompts without a record of the full cache.\n",
                        row.b->label, pairs.n_unknown);
  }
  return text;
}

std::string remarks_of(const ScoreFile& file) {
  std::string text;
  if (file.n_without_score > 0) {
    text += fmt::format("{}: {} records without a score are left out.\n", file.path,
                        file.n_without_score);
  }
  if (file.torn) text += fmt::format("{}: its last line is not complete, left out.\n", file.path);
  return text;
}

/// A remark about the configurations for which rows_of_same() found no partner.
std::string remarks_of_single(const std::vector<GroupPair>& rows, const Side& a, const Side& b) {
  std::vector<std::string> single;
  for (const Groups& groups : {a.groups, b.groups}) {
    for (const ScoreGroup* group : groups) {
      const bool has_row = std::any_of(rows.begin(), rows.end(), [&](const GroupPair& row) {
        return row.a == group || row.b == group;
      });
      if (!has_row) single.push_back(group->label);
    }
  }
  return single.empty() ? "" : fmt::format("Only in one file: {}.\n", fmt::join(single, "; "));
}

std::string comparison_table(const std::vector<GroupPair>& rows,
                             const std::vector<const ScoreFile*>& files, bool of_full) {
  std::string table =
      "| B | pairs | mean A | mean B | B - A | won | lost | tied | p |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  std::string remarks;
  bool graded = false;
  for (const GroupPair& row : rows) {
    const Pairs pairs = pair_up(row, files, of_full);
    const PairedResult result = compare_scores(pairs.a, pairs.b);
    table += table_row(row, pairs, result, of_full);
    remarks += remarks_of(row, pairs);
    graded = graded || result.graded;
  }
  table += fmt::format(
      kExplanation, kBootstrapResamples,
      graded ? fmt::format(", an answer being right from a score of {} on", kRightScore) : "");
  if (of_full) {
    table += fmt::format("Pairs: prompts that the full cache answers (score {} or more), of all.\n",
                         kRightScore);
  }
  return table + remarks;
}

}  // namespace

std::string compare_records(const CompareOptions& o) {
  const bool has_base = !o.base.empty(), is_one_file = o.file_a == o.file_b;
  const std::string option_a = has_base ? "--base" : "--a";
  const Conditions conditions_a = parse_conditions(has_base ? o.base : o.a, option_a);
  const Conditions conditions_b = parse_conditions(o.b, "--b");
  std::vector<ScoreFile> files;
  if (is_one_file) {
    files.push_back(read_scores(o.file_a, {conditions_a, conditions_b}));
    name_groups({&files[0]});
  } else {
    files.push_back(read_scores(o.file_a, {conditions_a, {}}));
    files.push_back(read_scores(o.file_b, {{}, conditions_b}));
    name_groups({&files[0], &files[1]});
  }
  Side a = {&files.front(), kSetA, option_a, !conditions_a.empty(), {}};
  Side b = {&files.back(), kSetB, "--b", !conditions_b.empty(), {}};
  choose_groups(a);
  choose_groups(b);
  const bool by_configuration = !has_base && !is_one_file && !a.is_narrowed && !b.is_narrowed &&
                                a.groups.size() > 1 && b.groups.size() > 1;
  std::vector<GroupPair> rows;
  std::string remarks;
  if (has_base) {
    rows = rows_of_base(a, b);
  } else if (by_configuration) {
    rows = rows_of_same(a, b);
    remarks = remarks_of_single(rows, a, b);
  } else {
    rows = {{the_only_group(a), the_only_group(b)}};
  }
  std::vector<const ScoreFile*> all;
  for (const ScoreFile& file : files) {
    all.push_back(&file);
    remarks += remarks_of(file);
  }
  for (const GroupPair& row : rows) check_models(*row.a, *row.b, o.any_model);
  const std::string what_a =
      by_configuration ? "the same configuration" : fmt::format("{}", rows[0].a->label);
  return fmt::format("A: {}, {}\nB: {}\n\n", a.file->path, what_a, b.file->path) +
         comparison_table(rows, all, o.of_full) + remarks;
}

}  // namespace snapkv::eval
