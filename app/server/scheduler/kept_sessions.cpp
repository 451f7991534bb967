// SPDX-License-Identifier: MIT
#include "server/scheduler/kept_sessions.h"

#include <algorithm>
#include <utility>

#include "base/chat_part.h"

namespace snapkv::server {
namespace {

bool begins_with(std::span<const int32_t> tokens, std::span<const int32_t> beginning) {
  return tokens.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), tokens.begin());
}

/// Whether two configurations are equivalent: a parameter may be written out or left at its
/// default.
bool equal(const PolicyConfig& a, const PolicyConfig& b) {
  if (a.name != b.name) return false;
  const std::vector<PolicySetting> of_a = policy_settings(a), of_b = policy_settings(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const PolicySetting& x, const PolicySetting& y) {
                      return x.param->name == y.param->name && x.value == y.value;
                    });
}

bool equal(const SessionOptions& a, const SessionOptions& b) {
  return equal(a.kv, b.kv) && a.kv_memory == b.kv_memory &&
         a.kv_decode_limit == b.kv_decode_limit && a.kv_type == b.kv_type && a.draft == b.draft &&
         a.draft_max == b.draft_max && a.draft_min == b.draft_min;
}

/// Whether the same bytes of the kept prompt count as input in the request. A control token that a
/// message spells out is text; the same bytes written by the template are not.
bool has_same_input(const KeptSession& kept, const RenderedChat& chat) {
  auto own = kept.input.begin();
  for (const ByteRange& range : chat.input) {
    if (range.begin >= kept.prompt_bytes) break;
    if (own == kept.input.end() || own->begin != range.begin || own->end != range.end) return false;
    ++own;
  }
  return own == kept.input.end();
}

/// Returns how much of the request the session has seen: bytes of its text or, without text,
/// tokens. Nothing unless some of the request is left.
std::optional<size_t> seen(const KeptSession& kept, const Request& request) {
  const std::string& text = request.prompt.chat.text;
  if (!text.empty() && !kept.text.empty()) {
    if (text.size() > kept.text.size() && text.starts_with(kept.text) &&
        has_same_input(kept, request.prompt.chat)) {
      return kept.text.size();
    }
    return std::nullopt;
  }
  const std::vector<int32_t>& tokens = request.prompt.tokens;
  if (tokens.size() > kept.tokens.size() && begins_with(tokens, kept.tokens)) {
    return kept.tokens.size();
  }
  return std::nullopt;
}

}  // namespace

std::optional<Continuation> KeptSessions::take(const Model& model, const Request& request) {
  auto best = sessions_.end();
  size_t n_best = 0;
  for (auto kept = sessions_.begin(); kept != sessions_.end(); ++kept) {
    const std::optional<size_t> n = seen(*kept, request);
    if (!n || *n <= n_best || !equal(kept->options, request.session)) continue;
    best = kept;
    n_best = *n;
  }
  if (best == sessions_.end()) return std::nullopt;
  Continuation result{std::move(*best), {}};
  sessions_.erase(best);
  const std::vector<int32_t>& all = request.prompt.tokens;
  if (result.kept.text.empty() || request.prompt.chat.text.empty()) {
    result.tokens.assign(all.begin() + static_cast<int64_t>(n_best), all.end());
    return result;
  }
  result.tokens = result.kept.unread;
  const std::vector<int32_t> rest =
      model.tokenize(chat_part(request.prompt.chat, n_best), /*add_bos=*/false);
  result.tokens.insert(result.tokens.end(), rest.begin(), rest.end());
  return result;
}

void KeptSessions::add(KeptSession kept) { sessions_.push_front(std::move(kept)); }

size_t KeptSessions::drop_one() {
  if (sessions_.empty()) return 0;
  const size_t bytes = sessions_.back().bytes;
  sessions_.pop_back();
  return bytes;
}

std::optional<KeptSession> KeptSessions::take(int64_t id) {
  const auto kept = std::find_if(sessions_.begin(), sessions_.end(),
                                 [&](const KeptSession& each) { return each.id == id; });
  if (kept == sessions_.end()) return std::nullopt;
  KeptSession taken = std::move(*kept);
  sessions_.erase(kept);
  return taken;
}

size_t session_bytes(const Session& session) {
  const SessionStats& stats = session.stats();
  return stats.kv_bytes + stats.query_bytes + stats.history_bytes + stats.draft_bytes +
         session.logits().size() * sizeof(float);
}

}  // namespace snapkv::server
