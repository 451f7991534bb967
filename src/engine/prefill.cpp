// SPDX-License-Identifier: MIT
// Layer-major prefill (docs/architecture.md): every layer runs over the whole prompt in chunks,
// with one scratch layer for the keys and values of all tokens; then the policies select and the
// kept rows move to the sessions' caches. Nothing of a session changes for good before the last
// layer is done.
#include "engine/prefill_run.h"
#include "engine/sessions_in_use.h"

namespace snapkv {

void prefill_many(std::span<Session* const> batch, std::span<const int32_t> tokens,
                  const PrefillOptions& options) {
  const std::vector<Session::Impl*> sessions = Session::states(batch, "prefill");
  const SessionsInUse in_use(sessions, "prefill");
  const PrefillPlan plan = plan_prefill(sessions, tokens, options);
  PrefillTargets targets;
  for (Session::Impl* s : sessions) {
    targets.push_back(std::make_unique<PrefillTarget>(*s, plan.n_tokens, options.compress));
  }
  PrefillRun run(targets, plan, options);
  run.run();
  sessions[0]->file().check_unchanged();  // else what was computed may be wrong
  run.commit();
}

}  // namespace snapkv
