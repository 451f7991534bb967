// SPDX-License-Identifier: MIT
// window_votes of many queries, where a row's vote is the largest probability that any of them, in
// any query head of the group, gives it.
#pragma once

#include <cstddef>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// Whether largest_votes() computes these votes, faster than the way of window_votes.cpp.
bool suits_largest_votes(const WindowVotes& v);

void largest_votes(const CpuContext& ctx, const WindowVotes& v);
size_t largest_votes_workspace(const CpuContext& ctx, const WindowVotes& v);

}  // namespace snapkv::cpu
