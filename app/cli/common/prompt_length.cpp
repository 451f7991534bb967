// SPDX-License-Identifier: MIT
#include "cli/common/prompt_length.h"

#include <algorithm>

#include "base/error.h"
#include "cli/common/units.h"

namespace snapkv::cli {

namespace {

/// Tokens that a text has at least; 0 for one that is tokenized in no time.
int64_t least_tokens(const Model& model, std::string_view text) {
  constexpr size_t kShort = 1 << 20;
  if (text.size() <= kShort) return 0;
  size_t longest = 1;
  for (int64_t id = 0; id < model.info().n_vocab; ++id) {
    longest = std::max(longest, model.piece(static_cast<int32_t>(id), true).size());
  }
  // blanks may be joined before a text is cut into tokens
  const auto n_bytes =
      text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return c == ' ' || (c >= '\t' && c <= '\r');
      }));
  return static_cast<int64_t>(n_bytes / longest);
}

int64_t context_of(const ModelInfo& model, int64_t n_ctx) {
  return n_ctx > 0 ? n_ctx : model.n_ctx_train;
}

}  // namespace

bool is_hopeless_length(const Model& model, std::string_view text, int64_t n_ctx) {
  const int64_t most = context_of(model.info(), n_ctx);
  return most > 0 && least_tokens(model, text) > most;
}

void refuse_hopeless_length(const Model& model, std::string_view text, int64_t n_ctx) {
  if (!is_hopeless_length(model, text, n_ctx)) return;
  fail(ErrorCode::kContextExceeded,
       "the prompt has {} of text, which is more than {} whatever it says, and the context is {}",
       format_bytes(text.size()), plural(least_tokens(model, text), "token"),
       context_of(model.info(), n_ctx));
}

void refuse_beyond_context(const ModelInfo& model, int64_t n_tokens, int64_t n_ctx,
                           bool may_be_long) {
  const int64_t most = context_of(model, n_ctx);
  if (most <= 0 || n_tokens <= most) return;
  const bool may_grow = most < model.n_ctx_train;
  fail(ErrorCode::kContextExceeded,
       "the prompt has {}, and the context is {}: about {}% of it would fit\n"
       "a model with a longer context reads all of it{}; snapkv models lists those here{}",
       plural(n_tokens, "token"), most, 100 * most / n_tokens,
       may_grow ? ", as does a larger --ctx-size" : "",
       may_be_long ? "\n--long parts reads a document in parts and answers a question about it, "
                     "--long first its beginning"
                   : "");
}

}  // namespace snapkv::cli
