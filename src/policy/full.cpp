// SPDX-License-Identifier: MIT
// Policy "full": keeps every row. Uses no other field of its configuration. Made by the registry.
#include <memory>

#include "policy/policy_registry.h"

namespace snapkv {
namespace {

class FullPolicy final : public Policy {
 public:
  explicit FullPolicy(const PolicyConfig& config) : config_(config) {}

  const PolicyConfig& config() const override { return config_; }
  int64_t budget_for(int64_t n_tokens) const override { return n_tokens; }
  bool has_budget() const override { return false; }
  int64_t least_budget() const override { return 0; }
  int window_size() const override { return 0; }
  Selection select(Backend&, const PolicyInput&, int64_t) const override {
    Selection selection;
    selection.keep_all = true;
    return selection;
  }

 private:
  PolicyConfig config_;
};

}  // namespace

std::unique_ptr<Policy> make_full(const PolicyConfig& config) {
  return std::make_unique<FullPolicy>(config);
}

}  // namespace snapkv
