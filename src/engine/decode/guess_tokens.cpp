// SPDX-License-Identifier: MIT
// guess_tokens(): the kept rows guess what all rows will say (MagicDec, arXiv 2408.11049; TriForce,
// arXiv 2404.11912).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/timer.h"
#include "engine/core/session_impl.h"
#include "engine/core/sessions_in_use.h"
#include "engine/decode/decode_step.h"
#include "engine/decode/step_pass.h"

namespace snapkv {
namespace {

/// Lets sessions read guesses, and forget them again.
class GuessScope {
 public:
  explicit GuessScope(std::span<Session::Impl* const> sessions) : sessions_(sessions) {
    for (Session::Impl* const s : sessions_) {
      s->n_run = 0;  // keep_decoded() has nothing to return to
      for (const auto& layer : s->layers) {
        if (RowState* const rows = layer->as_rows()) rows->snapshot();
      }
    }
  }
  ~GuessScope() {
    for (Session::Impl* const s : sessions_) {
      for (const auto& layer : s->layers) {
        if (RowState* const rows = layer->as_rows()) rows->roll_back();
      }
    }
  }
  GuessScope(const GuessScope&) = delete;
  GuessScope& operator=(const GuessScope&) = delete;

 private:
  std::span<Session::Impl* const> sessions_;
};

/// The most likely token and its probability. Of logits that are not finite, none: id is -1.
GuessedToken most_likely(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - *best));
  if (!std::isfinite(sum)) return {};
  return {static_cast<int32_t>(best - logits.begin()), static_cast<float>(1 / sum)};
}

void check_drafts(std::span<Session::Impl* const> sessions) {
  for (size_t i = 0; i < sessions.size(); ++i) {
    if (sessions[i]->options.draft == Draft::self) continue;
    fail(ErrorCode::kUsage, "guess_tokens: session {} was made with another {} than self", i,
         OptionName("draft"));
  }
}

/// A session that still guesses.
struct Guesser {
  size_t i = 0;                 // of the caller's sessions
  std::vector<int32_t> unread;  // what it reads next
  int32_t pos = 0;              // of the first of them
};

/// One guess of each; those that may not or cannot go on are taken out.
void guess_once(std::span<Session::Impl* const> sessions, std::vector<Guesser>& guessers,
                const MoreGuesses& more, std::vector<std::vector<GuessedToken>>& guesses) {
  const auto n_guessing = std::ssize(guessers);
  std::vector<Session::Impl*> states;
  std::vector<StepTokens> tokens;
  std::vector<int32_t> pos;
  for (const Guesser& g : guessers) {
    states.push_back(sessions[g.i]);
    tokens.push_back(g.unread);
    for (int32_t t = 0; t < std::ssize(g.unread); ++t) pos.push_back(g.pos + t);
  }
  reserve_pass(*states[0], std::ssize(pos));
  const std::span<const float> logits =
      run_pass({.sessions = states, .tokens = tokens, .pos = pos});
  const int64_t n_vocab = sessions[0]->info().n_vocab;
  int64_t end = 0;
  for (Guesser& g : guessers) {
    end += std::ssize(g.unread);
    const GuessedToken guess = most_likely(logits.subspan((end - 1) * n_vocab, n_vocab));
    g.pos += static_cast<int32_t>(g.unread.size());
    g.unread = {guess.id};
    if (guess.id >= 0) guesses[g.i].push_back(guess);
  }
  std::erase_if(guessers, [&](const Guesser& g) {
    const Session::Impl& s = *sessions[g.i];
    // the last one is only checked, not read here
    const int64_t room = decode_room(s) - (g.pos - s.n_past);
    return g.unread[0] < 0 || room <= 1 || !more(g.i, guesses[g.i], n_guessing);
  });
}

}  // namespace

void prepare_guesses(Session::Impl& s, int64_t n_tokens) {
  prepare_rows(s, n_tokens);
  for (size_t il = 0; il < s.layers.size(); ++il) {
    if (s.layers[il]->as_recurrent() == nullptr) continue;
    s.draft_states.resize(s.layers.size());
    if (s.draft_states[il] != nullptr) continue;
    const StateShape& shape = s.architecture().layer_spec(static_cast<int>(il)).state;
    s.draft_states[il] = std::make_unique<RecurrentState>(s.meter, shape);
    s.draft_states[il]->reserve(s.backend(), 0, 0);
  }
}

std::vector<std::vector<GuessedToken>> guess_tokens(std::span<Session* const> batch,
                                                    std::span<const StepTokens> tokens,
                                                    const MoreGuesses& more) {
  const Timer timer;
  const std::vector<Session::Impl*> sessions = Session::states(batch, "guess_tokens");
  const SessionsInUse in_use(sessions, "guess_tokens");
  check_step(sessions, tokens, "guess_tokens");
  check_drafts(sessions);
  std::vector<std::vector<GuessedToken>> guesses(sessions.size());
  std::vector<Guesser> guessers;
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session::Impl& s = *sessions[i];
    const int64_t n = std::ssize(tokens[i]);
    if (n == decode_room(s) || !more(i, {}, std::ssize(sessions))) continue;
    prepare_guesses(s, decode_room(s));
    for (size_t il = 0; il < s.draft_states.size(); ++il) {
      if (s.draft_states[il] == nullptr) continue;
      s.draft_states[il]->copy_now(s.backend(), *s.layers[il]->as_recurrent());
    }
    guessers.push_back({.i = i,
                        .unread = {tokens[i].begin(), tokens[i].end()},
                        .pos = static_cast<int32_t>(s.n_past)});
  }
  if (guessers.empty()) return guesses;
  std::vector<Session::Impl*> guessing;
  for (const Guesser& g : guessers) guessing.push_back(sessions[g.i]);
  {
    const GuessScope scope(guessing);
    while (!guessers.empty()) guess_once(sessions, guessers, more, guesses);
  }
  for (Session::Impl* const s : guessing) {
    s->stats.decode_seconds += timer.seconds();
    s->stats.guess_seconds += timer.seconds();
  }
  return guesses;
}

}  // namespace snapkv
