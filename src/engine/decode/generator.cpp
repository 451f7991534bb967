// SPDX-License-Identifier: MIT
#include "snapkv/generator.h"

#include <limits>

#include "base/check.h"
#include "snapkv/grammar.h"

namespace snapkv {
namespace {

std::vector<size_t> end_tokens(const Model& model) {
  std::vector<size_t> ids;
  for (int32_t id = 0; id < model.info().n_vocab; ++id) {
    if (model.is_end_of_generation(id)) ids.push_back(static_cast<size_t>(id));
  }
  return ids;
}

}  // namespace

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::eos:
      return "eos";
    case StopReason::stop:
      return "stop";
    case StopReason::paragraph:
      return "paragraph";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::cancelled:
      return "cancelled";
  }
  return "";
}

Generator::Generator(Session& session, Sampler& sampler, GeneratorOptions options)
    : session_(session),
      sampler_(sampler),
      options_(std::move(options)),
      stream_(options_.stops),
      n_prompt_(session.n_past()) {
  if (options_.ignore_eos) end_tokens_ = end_tokens(session.model());
}

std::span<const float> Generator::allowed_logits() {
  const std::span<const float> logits = session_.logits();
  if (end_tokens_.empty()) return logits;
  logits_.assign(logits.begin(), logits.end());
  for (const size_t id : end_tokens_) logits_[id] = -std::numeric_limits<float>::infinity();
  return logits_;
}

bool Generator::end(StopReason reason) {
  reason_ = reason;
  token_ = {};
  return false;
}

void Generator::stop(StopReason reason) {
  if (!done()) reason_ = reason;
}

bool Generator::choose() {
  if (done()) return false;
  if (options_.max_tokens == 0) return end(StopReason::length);
  if (options_.cancelled && options_.cancelled()) return end(StopReason::cancelled);
  if (const GrammarMatcher* grammar = sampler_.grammar()) {
    // only the end may follow, and a model may have no end token
    if (grammar->is_complete() && !grammar->can_continue()) return end(StopReason::eos);
  }
  const Model& model = session_.model();
  const int32_t id = sampler_.sample(allowed_logits());
  if (model.is_end_of_generation(id)) return end(StopReason::eos);
  ids_.push_back(id);
  token_.id = id;
  token_.text = stream_.push(model.piece(id, options_.shows_control_tokens));
  token_.logprobs.reset();
  if (options_.top_logprobs >= 0) {
    token_.logprobs = token_logprobs(session_.logits(), id, options_.top_logprobs);
  }
  const bool found_end = options_.is_end && options_.is_end(token_.text);
  if (stream_.stopped() || found_end) {
    reason_ = StopReason::stop;
  } else if (options_.one_paragraph && ends_paragraph(token_.text)) {
    reason_ = StopReason::paragraph;
  } else if (options_.max_tokens > 0 && std::ssize(ids_) >= options_.max_tokens) {
    reason_ = StopReason::length;
  } else if (n_prompt_ + std::ssize(ids_) > session_.n_ctx()) {
    reason_ = StopReason::context;  // there is no room to read this token
  }
  return true;
}

/// Whether an empty line has come after some text.
bool Generator::ends_paragraph(std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      if (has_text_ && ++n_newlines_ == 2) return true;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      has_text_ = true;
      n_newlines_ = 0;
    }
  }
  return false;
}

bool Generator::step() {
  if (done()) return false;
  if (n_unread() > 0) session_.decode(next_token());
  return choose();
}

std::string Generator::rest() {
  if (!done()) return {};
  std::string text = stream_.finish();
  if (stream_.stopped()) reason_ = StopReason::stop;  // the last bytes completed a stop string
  return text;
}

int64_t Generator::n_unread() const { return n_prompt_ + std::ssize(ids_) - session_.n_past(); }

}  // namespace snapkv
