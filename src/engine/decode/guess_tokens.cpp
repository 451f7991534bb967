// SPDX-License-Identifier: MIT
// guess_tokens(): the kept rows guess what all rows will say (MagicDec, arXiv 2408.11049; TriForce,
// arXiv 2404.11912), or a smaller model does what the model will (arXiv 2211.17192).
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
    const Draft draft = sessions[i]->options.draft;
    if (draft == Draft::self || draft == Draft::model) continue;
    fail(ErrorCode::kUsage, "guess_tokens: session {} was made with another {} than self or model",
         i, OptionName("draft"));
  }
}

/// A session that still guesses.
struct Guesser {
  size_t i = 0;                      // of the caller's sessions
  Session::Impl* reader = nullptr;   // that session, or the one of a smaller model that reads along
  std::vector<int32_t> unread = {};  // what it reads next
  int32_t pos = 0;                   // of the first of them
  int64_t most = 0;                  // guesses that the caller's session has room for
};

/// The guesses of all of the caller's sessions so far.
struct Guesses {
  const MoreGuesses& more;
  std::vector<std::vector<GuessedToken>> of;  // [sessions]
  std::vector<bool> began;                    // [sessions], whether it had anything guess for it

  /// Whether session i, which is about to read n tokens, shall have guesses. Notes it.
  bool begin(size_t i, const Session::Impl& s, int64_t n) {
    began[i] = n < decode_room(s) && more(i, {}, std::ssize(of));
    return began[i];
  }
  /// Adds a session's next guess, the most likely token of these logits, and has it read that next.
  void add(Guesser& g, std::span<const float> logits) {
    const GuessedToken guess = most_likely(logits);
    g.unread = {guess.id};
    if (guess.id >= 0) of[g.i].push_back(guess);
  }
  /// Takes out those that may not or cannot go on; n_guessing of them have made the last guesses.
  void drop_finished(std::vector<Guesser>& guessers, int64_t n_guessing) const {
    std::erase_if(guessers, [&](const Guesser& g) {
      return g.unread[0] < 0 || std::ssize(of[g.i]) >= g.most || !more(g.i, of[g.i], n_guessing);
    });
  }
};

/// One guess of each.
void guess_once(std::vector<Guesser>& guessers, Guesses& guesses) {
  const auto n_guessing = std::ssize(guessers);
  std::vector<Session::Impl*> states;
  std::vector<StepTokens> tokens;
  std::vector<int32_t> pos;
  for (const Guesser& g : guessers) {
    states.push_back(g.reader);
    tokens.push_back(g.unread);
    for (int32_t t = 0; t < std::ssize(g.unread); ++t) pos.push_back(g.pos + t);
  }
  reserve_pass(*states[0], std::ssize(pos));
  const std::span<const float> logits =
      run_pass({.sessions = states, .tokens = tokens, .pos = pos});
  const int64_t n_vocab = states[0]->info().n_vocab;
  int64_t end = 0;
  for (Guesser& g : guessers) {
    end += std::ssize(g.unread);
    g.pos += static_cast<int32_t>(g.unread.size());
    guesses.add(g, logits.subspan((end - 1) * n_vocab, n_vocab));
  }
  guesses.drop_finished(guessers, n_guessing);
}

/// Lets sessions of one model guess for as long as they may.
void guess_all(std::vector<Guesser> guessers, Guesses& guesses) {
  if (guessers.empty()) return;
  std::vector<Session::Impl*> readers;
  for (const Guesser& g : guessers) {
    Session::Impl& s = *g.reader;
    readers.push_back(&s);
    prepare_guesses(s, decode_room(s));
    for (size_t il = 0; il < s.draft_states.size(); ++il) {
      if (s.draft_states[il] == nullptr) continue;
      s.draft_states[il]->copy_now(s.backend(), *s.layers[il]->as_recurrent());
    }
  }
  const GuessScope scope(readers);
  while (!guessers.empty()) guess_once(guessers, guesses);
}

/// The smaller model reads what has come since it read last, and makes its first guesses from it.
/// Returns those that guess on.
std::vector<Guesser> read_along(std::span<Session::Impl* const> sessions,
                                std::span<const StepTokens> tokens, Guesses& guesses) {
  std::vector<Guesser> guessers;
  std::vector<Session::Impl*> readers;
  std::vector<StepTokens> unread;
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session::Impl& s = *sessions[i];
    const int64_t n = std::ssize(tokens[i]);
    if (s.options.draft != Draft::model || !guesses.begin(i, s, n)) continue;
    if (s.draft_reader == nullptr) {
      s.draft_reader = std::make_unique<DraftReader>(s.model->draft_model(), s.options);
    }
    if (!s.draft_reader->catch_up(s.text, tokens[i]) || s.draft_reader->unread().empty()) continue;
    unread.push_back(s.draft_reader->unread());
    readers.push_back(&s.draft_reader->state());
    guessers.push_back({.i = i, .reader = readers.back(), .most = decode_room(s) - n});
  }
  if (guessers.empty()) return guessers;
  check_step(readers, unread, "guess_tokens");
  decode_step(readers, unread);
  for (Guesser& g : guessers) {
    sessions[g.i]->draft_reader->advance();
    g.pos = static_cast<int32_t>(g.reader->n_past);
    guesses.add(g, g.reader->logits.values().last(g.reader->info().n_vocab));
  }
  guesses.drop_finished(guessers, std::ssize(guessers));
  return guessers;
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
  Guesses guesses{.more = more,
                  .of = std::vector<std::vector<GuessedToken>>(sessions.size()),
                  .began = std::vector<bool>(sessions.size())};
  guess_all(read_along(sessions, tokens, guesses), guesses);
  std::vector<Guesser> guessers;
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session::Impl& s = *sessions[i];
    const int64_t n = std::ssize(tokens[i]);
    if (s.options.draft != Draft::self || !guesses.begin(i, s, n)) continue;
    guessers.push_back({.i = i,
                        .reader = &s,
                        .unread = {tokens[i].begin(), tokens[i].end()},
                        .pos = static_cast<int32_t>(s.n_past),
                        .most = decode_room(s) - n});
  }
  guess_all(std::move(guessers), guesses);
  for (size_t i = 0; i < sessions.size(); ++i) {
    if (!guesses.began[i]) continue;
    sessions[i]->stats.decode_seconds += timer.seconds();
    sessions[i]->stats.guess_seconds += timer.seconds();
  }
  return std::move(guesses.of);
}

}  // namespace snapkv
