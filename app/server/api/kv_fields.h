// SPDX-License-Identifier: MIT
// The fields `kv` and `kv_report`: how a request wants its cache compressed, according to the
// policies' tables of parameters (snapkv/policy.h), and what the answer reports about it.
#pragma once

#include "server/api/context.h"
#include "server/api/fields.h"

namespace snapkv::server {

/// Reads `kv` (policy, its parameters, memory, snapshot, reuse) and `kv_report` into the request.
void read_kv(const Fields& body, const ApiContext& context, Request& request);

/// Adds the text of the snapshot that the request continues to what its answer may be taken from.
/// Throws ApiError where the snapshot does not hold its whole text.
void cite_snapshot(const Model& model, Request& request);

/// Returns {"policy", "tokens_before", ...}.
Json kv_json(const KvReport& report);

/// {"policy": its name, and the value of each of its parameters}
Json policy_values(const PolicyConfig& config);

/// Returns the policies with their parameters, for /props and the page.
Json policies_json();

}  // namespace snapkv::server
