// SPDX-License-Identifier: MIT
#include "cli/generate/generation.h"

#include <limits>
#include <span>

#include "cli/common/signals.h"

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

}  // namespace

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::eos:
      return "eos";
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
  const Model& model = session.model();
  EosMask mask(model, limits.ignore_eos);
  const auto at_limit = [&] {
    return limits.n_predict >= 0 && static_cast<int64_t>(generation.ids.size()) >= limits.n_predict;
  };
  generation.stop_reason = StopReason::length;
  while (!at_limit()) {
    if (interrupted()) {
      generation.stop_reason = StopReason::cancelled;
      return;
    }
    const int32_t id = sampler.sample(mask.apply(session.logits()));
    if (model.is_end_of_generation(id)) {
      generation.stop_reason = StopReason::eos;
      return;
    }
    const std::string piece = model.piece(id);
    generation.ids.push_back(id);
    generation.text += piece;
    if (on_token) on_token(piece, static_cast<int64_t>(generation.ids.size()));
    if (at_limit()) return;
    if (session.n_past() >= session.n_ctx()) {
      generation.stop_reason = StopReason::context;
      return;
    }
    session.decode(id);
  }
}

}  // namespace snapkv::cli
