// SPDX-License-Identifier: MIT
// Policy "snapkv" (arXiv 2404.14469): the prompt's last queries vote for the rows they attend to;
// pooling keeps the neighbours of rows with many votes.
#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {

PolicyDefinition snapkv_policy() {
  return define_policy<ScorePolicy<SnapKvSelector<SnapKvParams>>>(
      {.name = "snapkv",
       .score = "sum of the window's attention, reduced over the group, pooled",
       .paper = "2404.14469",
       .reads = "window, keys"},
      snapkv_fields());
}

}  // namespace snapkv
