// SPDX-License-Identifier: MIT
// LayerRanking: which rows stay if all layers and heads share a policy's budget
// (PolicyInfo::shares_layers). Layers come one after the other, and after each of them the best
// rows so far stay: a row that is not one of these is not one of the best of all layers either. So
// no more rows are ever held than in the end, but for a layer that is copied as it gives up some.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "backend/backend.h"
#include "model/model_spec.h"
#include "policy/policy.h"

namespace snapkv {

class LayerRanking {
 public:
  /// For a prompt of n_tokens. Layers whose rows have the same size share the budgets that the
  /// policy gives them; a row of another layer would not take the same memory.
  LayerRanking(Backend& backend, const ModelSpec& spec, const Policy& policy, int64_t n_tokens);

  /// What stays of the rows that a layer has.
  struct Change {
    int il = 0;
    Selection selection;
  };
  /// Ranks the rows of a further layer. Returns the layers that must give up rows, in order: the
  /// new one or earlier ones. In a dry run it is the new one, as if all layers were alike.
  std::vector<Change> add(int il, RowScores scores);

  /// The most rows that all heads of layer il together ever have.
  int64_t most_rows(int il) const;

 private:
  struct Group {
    int64_t budget = 0;               // rows of all its layers and heads
    std::map<int, RowScores> layers;  // of the rows that stay
    int64_t n_rows() const;
  };
  static int64_t row_bytes(const StateShape& shape);
  Selection keep_best(RowScores& scores, float least, int64_t& n_least) const;
  void allocate(Selection& selection) const;
  Selection make_selection(const std::vector<std::vector<int32_t>>& kept) const;
  std::vector<Change> add_dry(int il, const RowScores& scores, const Group& group) const;

  Backend& backend_;
  const ModelSpec& spec_;
  const Policy& policy_;
  const int64_t n_tokens_;
  std::map<int64_t, Group> groups_;  // by the bytes of a row
};

}  // namespace snapkv
