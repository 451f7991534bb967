// SPDX-License-Identifier: MIT
#include "cli/generate/generation.h"

#include <limits>
#include <span>

#include "cli/common/signals.h"
#include "snapkv/grammar.h"
#include "snapkv/text_stream.h"

namespace snapkv::cli {
namespace {

// A view of the logits in which tokens that end an answer can't win.
class EosMask {
 public:
  EosMask(const Model& model, bool enabled) {
    if (!enabled) return;
    for (int64_t id = 0; id < model.info().n_vocab; ++id) {
      if (model.is_end_of_generation(static_cast<int32_t>(id))) {
        masked_.push_back(static_cast<size_t>(id));
      }
    }
  }
  std::span<const float> apply(std::span<const float> logits) {
    if (masked_.empty()) return logits;
    copy_.assign(logits.begin(), logits.end());
    for (const size_t id : masked_) copy_[id] = -std::numeric_limits<float>::infinity();
    return copy_;
  }

 private:
  std::vector<size_t> masked_;
  std::vector<float> copy_;  // [n_vocab]
};

// Whether an empty line has come after some text.
class ParagraphEnd {
 public:
  bool add(std::string_view piece) {
    for (const char c : piece) {
      if (c == '\n') {
        if (has_text_ && ++n_newlines_ == 2) return true;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        has_text_ = true;
        n_newlines_ = 0;
      }
    }
    return false;
  }

 private:
  bool has_text_ = false;
  int n_newlines_ = 0;  // since the last character that is not blank
};

// Returns why no more tokens follow.
StopReason decode_tokens(Session& session, Sampler& sampler, const GenerationLimits& limits,
                         const std::function<void(std::string_view)>& on_piece,
                         const TextStream& stream, std::vector<int32_t>& ids) {
  const Model& model = session.model();
  EosMask mask(model, limits.ignore_eos);
  ParagraphEnd paragraph;
  const auto at_limit = [&] {
    return limits.n_predict >= 0 && std::ssize(ids) >= limits.n_predict;
  };
  while (!at_limit()) {
    if (interrupted()) return StopReason::cancelled;
    if (const GrammarMatcher* grammar = sampler.grammar()) {
      // nothing but the end may follow, whether the vocabulary has a token for it or not
      if (grammar->is_complete() && !grammar->can_continue()) return StopReason::eos;
    }
    const int32_t id = sampler.sample(mask.apply(session.logits()));
    if (model.is_end_of_generation(id)) return StopReason::eos;
    ids.push_back(id);
    const std::string piece = model.piece(id);
    on_piece(piece);
    if (stream.stopped()) return StopReason::stop;
    if (limits.one_paragraph && paragraph.add(piece)) return StopReason::paragraph;
    if (at_limit()) break;
    if (session.n_past() >= session.n_ctx()) return StopReason::context;
    session.decode(id);
  }
  return StopReason::length;
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

void generate(Session& session, Sampler& sampler, const GenerationLimits& limits,
              const TokenFn& on_token, Generation& generation) {
  TextStream stream(limits.stops);
  const auto add = [&](const std::string& text) {
    generation.text += text;
    if (on_token) on_token(text, std::ssize(generation.ids));
  };
  const auto add_rest = [&] {
    if (const std::string rest = stream.finish(); !rest.empty()) add(rest);
    generation.stop = stream.stop();
  };
  try {
    generation.stop_reason = decode_tokens(
        session, sampler, limits, [&](std::string_view piece) { add(stream.push(piece)); }, stream,
        generation.ids);
  } catch (const Error&) {
    add_rest();
    throw;
  }
  add_rest();
  if (stream.stopped()) generation.stop_reason = StopReason::stop;
}

}  // namespace snapkv::cli
