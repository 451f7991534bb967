// SPDX-License-Identifier: MIT
#include "engine/prefill/replay.h"

#include <algorithm>

#include "base/check.h"

namespace snapkv {
namespace {

/// Tokens before a piece that its request quotes.
constexpr int64_t kQuoted = 8;

/// What asks for the piece from token `begin` on.
std::vector<int32_t> make_request(const Model& model, std::span<const int32_t> prompt,
                                  int64_t begin) {
  const auto words = [&](const char* text) { return model.tokenize(text, false, false); };
  std::vector<int32_t> request =
      words(begin == 0 ? "\n\nRepeat the text exactly."
                       : "\n\nRepeat the text exactly, after the words ");
  const std::span quoted = prompt.first(begin).last(std::min(begin, kQuoted));
  request.insert(request.end(), quoted.begin(), quoted.end());
  const std::vector<int32_t> end = words("\n\n");
  request.insert(request.end(), end.begin(), end.end());
  SNAPKV_CHECK(std::ssize(request) <= kMostRequest);
  return request;
}

}  // namespace

bool wants_replays(const ModelSpec& spec, const Policy& policy, int64_t n_tokens) {
  return policy.info().replays && policy.budget_for(n_tokens) < n_tokens &&
         std::ranges::any_of(spec.layers, &LayerSpec::compressed);
}

std::vector<Replay> make_replays(const Model& model, std::span<const int32_t> prompt) {
  std::vector<Replay> replays;
  const int64_t n = std::ssize(prompt);
  int64_t at = n;
  for (int64_t begin = 0; begin < n; begin += kReplayPiece) {
    Replay replay{.tokens = make_request(model, prompt, begin),
                  .begin = begin,
                  .end = std::min(begin + kReplayPiece, n),
                  .first = at};
    const std::span piece = prompt.subspan(begin, replay.end - begin);
    replay.tokens.insert(replay.tokens.end(), piece.begin(), piece.end());
    at += std::ssize(replay.tokens);
    replays.push_back(std::move(replay));
  }
  return replays;
}

Replay longest_replay(int64_t n_tokens) {
  const int64_t n = std::min(n_tokens, kReplayPiece);
  return {.tokens = std::vector<int32_t>(kMostRequest + n, 0), .end = n, .first = n_tokens};
}

int64_t most_replayed(int64_t n_tokens) {
  return n_tokens + (n_tokens + kReplayPiece - 1) / kReplayPiece * kMostRequest;
}

}  // namespace snapkv
