// SPDX-License-Identifier: MIT
#include "engine/kv_prefix.h"

#include <algorithm>

#include "base/error.h"
#include "engine/memory_plan.h"
#include "engine/option_range.h"

namespace snapkv {

KvPrefix::KvPrefix(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvPrefix::~KvPrefix() = default;

std::span<const int32_t> KvPrefix::tokens() const { return impl_->tokens; }
size_t KvPrefix::bytes() const { return impl_->bytes(); }
size_t KvPrefix::decoded_bytes() const { return impl_->decoded_bytes(); }

size_t KvPrefix::bytes_for(const ModelInfo& info, const SessionOptions& options, int64_t n_tokens) {
  validate_kv_type(options.kv_type, info.head_dim);
  return kv_row_bytes(info, scratch_dtype(options.kv_type)) * info.n_layer * n_tokens;
}

DType stored_kv_type(const ModelInfo& info) {
  return info.head_dim % block_size(DType::q8_0) == 0 ? DType::q8_0 : DType::f16;
}

void check_prefix(const KvPrefix& prefix, int64_t n, const Session::Impl& session,
                  std::span<const int32_t> tokens) {
  const KvPrefix::Impl& rows = prefix.impl();
  const int64_t n_tokens = std::ssize(tokens);
  require_range("n_from_prefix", n, 1, std::ssize(rows.tokens));
  if (session.n_past > 0) {
    fail(ErrorCode::kUsage, "a prefix is for a session that has read nothing, this one has read {}",
         session.n_past);
  }
  if (rows.model != session.model) fail(ErrorCode::kUsage, "the prefix is of another model");
  if (!rows.is_file() && rows.type != scratch_dtype(session.options.kv_type)) {
    fail(ErrorCode::kUsage, "the prefix has rows of {}, a session with kv_type {} needs {}",
         name(rows.type), name(session.options.kv_type),
         name(scratch_dtype(session.options.kv_type)));
  }
  if (!session.architecture().spec().rotate_alike(rows.n_ctx, session.n_ctx)) {
    fail(ErrorCode::kUsage,
         "the prefix was read with n_ctx {} and the session has {}: the model rotates keys of long "
         "contexts otherwise",
         rows.n_ctx, session.n_ctx);
  }
  if (session.policy->info().observes) {
    fail(ErrorCode::kUsage, "policy {} observes every query of a prompt: it can't use a prefix",
         session.policy->info().name);
  }
  const int64_t window = std::max(session.policy->window_size(), 1);
  if (n_tokens - n < window) {
    fail(ErrorCode::kUsage,
         "n_from_prefix {} leaves {} of {} tokens to read, the policy's window needs {}", n,
         n_tokens - n, n_tokens, window);
  }
  if (!std::equal(rows.tokens.begin(), rows.tokens.begin() + n, tokens.begin())) {
    fail(ErrorCode::kUsage, "the prompt does not begin with the {} tokens of the prefix", n);
  }
}

}  // namespace snapkv
