// SPDX-License-Identifier: MIT
#include "engine/core/draft_reader.h"

#include <algorithm>

#include "base/error.h"

namespace snapkv {
namespace {

/// Tokens read by one catch_up().
constexpr int64_t kReadAtOnce = 512;
/// Tokens at the beginning of a text that are always read: attention sinks (arXiv 2309.17453).
constexpr int64_t kFirstTokens = 4;

/// The first token, below n, whose text is not the same in both; and how many there are.
struct Differences {
  int32_t first = -1;
  int64_t n = 0;
};

Differences differences(const Model& a, const Model& b, int32_t n) {
  Differences found;
  for (int32_t id = 0; id < n; ++id) {
    if (a.piece(id, true) == b.piece(id, true)) continue;
    if (found.n++ == 0) found.first = id;
  }
  return found;
}

}  // namespace

void check_draft_vocabulary(const Model& model, const Model& draft) {
  const int64_t n_model = model.info().n_vocab, n_draft = draft.info().n_vocab;
  const int64_t n = std::min(n_model, n_draft);
  // models of one kind may have unused tokens at the end, and names of their own for a few others
  if (n < std::max(n_model, n_draft) / 10 * 9) {
    fail(ErrorCode::kUsage,
         "{}: a model that guesses must have the vocabulary of the one that checks; it has {} "
         "tokens, {} has {}",
         draft.info().path, n_draft, model.info().path, n_model);
  }
  const Differences found = differences(model, draft, static_cast<int32_t>(n));
  if (found.n <= n / 100) return;
  fail(ErrorCode::kUsage,
       "{}: a model that guesses must have the vocabulary of the one that checks; of {} tokens {} "
       "differ, first {}: '{}', in {} '{}'",
       draft.info().path, n, found.n, found.first, draft.piece(found.first, true),
       model.info().path, model.piece(found.first, true));
}

SessionOptions draft_reader_options(const ModelInfo& draft, const SessionOptions& options) {
  SessionOptions own;
  const int64_t n_ctx = draft.n_ctx_train > 0 ? std::min(draft.n_ctx_train, options.draft_ctx)
                                              : options.draft_ctx;
  own.n_ctx = std::max(n_ctx, 4 * kMostStepTokens);
  own.kv = {.name = "full"};
  own.draft = Draft::lookup;  // its steps may have several tokens
  own.draft_max = kMostStepTokens - 1;
  return own;
}

int64_t draft_reader_tokens(const ModelInfo& draft, const SessionOptions& options) {
  return draft_reader_options(draft, options).n_ctx - 2 * kMostStepTokens;
}

DraftReader::DraftReader(const std::shared_ptr<const Model>& model, const SessionOptions& options)
    : session_(model, draft_reader_options(model->info(), options)),
      most_tokens_(draft_reader_tokens(model->info(), options)),
      n_vocab_(static_cast<int32_t>(model->info().n_vocab)) {}

int32_t DraftReader::token(std::span<const int32_t> text, StepTokens last, int64_t i) const {
  if (i >= n_first_) i += from_ - n_first_;
  const int64_t n = std::ssize(text);
  const int32_t id = i < n ? text[i] : last[i - n];
  return id < n_vocab_ ? id : 0;  // a token that only the other model has
}

/// Chooses what to read of a text of n_text tokens: all of it, or as much of its end as leaves half
/// of the context to what will follow.
void DraftReader::begin_again(int64_t n_text) {
  session_.reset();
  read_.clear();
  n_first_ = from_ = 0;
  if (n_text <= most_tokens_ / 4 * 3) return;
  n_first_ = std::min(kFirstTokens, most_tokens_ / 4);
  from_ = n_text - most_tokens_ / 2;
}

bool DraftReader::catch_up(std::span<const int32_t> text, StepTokens last) {
  unread_.clear();
  const int64_t n_text = std::ssize(text) + std::ssize(last);
  const auto n_wanted = [&] { return n_first_ + n_text - std::max(from_, n_first_); };
  const auto is_same = [&] {
    for (int64_t i = 0; i < std::ssize(read_); ++i) {
      if (read_[i] != token(text, last, i)) return false;
    }
    return true;
  };
  if (std::ssize(read_) > n_wanted() || n_wanted() > most_tokens_ || !is_same()) {
    begin_again(n_text);
  }
  const int64_t begin = std::ssize(read_);
  const int64_t n_left = n_wanted() - begin;
  const bool is_step = begin > 0 && n_left <= kMostStepTokens;
  for (int64_t i = 0; i < std::min(n_left, is_step ? kMostStepTokens : kReadAtOnce); ++i) {
    unread_.push_back(token(text, last, begin + i));
  }
  if (is_step) return true;
  session_.prefill(unread_);
  advance();
  return false;
}

void DraftReader::advance() {
  read_.insert(read_.end(), unread_.begin(), unread_.end());
  unread_.clear();
}

}  // namespace snapkv
