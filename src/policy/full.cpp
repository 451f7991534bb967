// SPDX-License-Identifier: MIT
// Policy "full": keeps every row; it has no parameters.
#include "policy/policy_registry.h"

namespace snapkv {
namespace {

struct NoParams {};
void check(const NoParams&) {}

class FullSelector final : public LayerSelector {
 public:
  Selection select(const PolicyInput&, int64_t) override {
    Selection selection;
    selection.keep_all = true;
    return selection;
  }
};

class FullPolicy final : public Policy {
 public:
  using Params = NoParams;
  FullPolicy(const PolicyInfo& info, const PolicyConfig& config, const Params&)
      : Policy(info, config) {}

  int64_t budget_for(int64_t n_tokens) const override { return n_tokens; }
  int64_t least_budget() const override { return 0; }
  int window_size() const override { return 0; }
  std::unique_ptr<LayerSelector> make_selector(Backend&) const override {
    return std::make_unique<FullSelector>();
  }
};

}  // namespace

PolicyDefinition full_policy() {
  return define_policy<FullPolicy>(
      {.name = "full", .score = "nothing is dropped", .has_budget = false}, {});
}

}  // namespace snapkv
