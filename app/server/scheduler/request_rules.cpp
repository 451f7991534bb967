// SPDX-License-Identifier: MIT
#include "server/scheduler/request_rules.h"

#include <fmt/core.h>

#include "chat/document.h"
#include "server/read_prompt.h"

namespace snapkv::server {

void RequestRules::complete(Request& request) const {
  const SessionOptions& own = options_.session;
  SessionOptions& session = request.session;
  session.kv_type = own.kv_type;
  session.chunk = own.chunk;
  session.n_ctx = own.n_ctx;
  session.draft_ctx = own.draft_ctx;
  session.spill_dir = own.spill_dir;
  session.memory_limit = 0;  // kv_memory takes the place of this limit
  session.kv_refresh = false;
  session.decode_reserve = own.decode_reserve;
  if (request.document && !request.document->file.keeps_all) {  // the rows are already chosen
    const SessionOptions& chosen = request.document->file.options;
    session.kv = chosen.kv;
    session.kv_memory = 0;
    session.kv_decode_limit = chosen.kv_decode_limit;
    if (session.draft == Draft::self) {
      session.draft = Draft::lookup;
      request.notes.push_back("draft is lookup: of the document only the kept rows are there");
    }
  }
  if (request.read && session.draft == Draft::self) {
    session.draft = Draft::lookup;
    request.notes.push_back("draft is lookup: of the prompt only the kept rows are there");
  }
  if (session.draft == Draft::self && !policy_info(session.kv.name).has_budget) {
    session.draft = Draft::lookup;  // there are no rows that guess, and the answer is the same
  }
  if (request.max_tokens > 0 && request.max_tokens < own.decode_reserve) {
    session.decode_reserve = request.max_tokens;
  }
}

void RequestRules::complete_saved(Request& request) const {
  complete(request);
  request.session.draft = options_.session.draft;
  request.session.draft_max = options_.session.draft_max;
  request.session.draft_min = options_.session.draft_min;
}

RequestPlan RequestRules::plan(const Request& request) const {
  using Kind = Refused::Kind;
  if (request.prompt.tokens.empty()) throw Refused(Kind::bad_request, "the prompt has no tokens");
  if (request.n < 1 || request.n > options_.n_parallel) {
    throw Refused(Kind::bad_request,
                  fmt::format("n is {}; this server writes 1 to {} answers at a time", request.n,
                              options_.n_parallel));
  }
  if (request.read) {
    const std::string problem = prompt_problem(*request.read, request.prompt.tokens);
    if (!problem.empty()) {
      throw Refused(Kind::bad_request,
                    fmt::format("'kv.read' can't be continued by this request: {}", problem));
    }
  }
  RequestPlan plan;
  try {
    plan = plan_request(*model_, request);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw Refused(Kind::bad_request, e.what());
  }
  const size_t limit = options_.kv_memory;
  if (plan.needed_bytes() <= limit) return plan;
  throw Refused(
      Kind::never_fits,
      fmt::format("a prompt of {} tokens and its answer need {} MiB, this server has {} MiB for "
                  "caches; the longest prompt that it can read with these settings has {} tokens",
                  request.prompt.tokens.size(), plan.needed_bytes() >> 20, limit >> 20,
                  longest_prompt_within(*model_, request, limit)));
}

PromptFit RequestRules::fit(Request request) const {
  complete(request);
  try {
    return fit_prompt(*model_, request, options_.kv_memory);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw Refused(Refused::Kind::bad_request, e.what());
  }
}

}  // namespace snapkv::server
