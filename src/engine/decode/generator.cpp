// SPDX-License-Identifier: MIT
#include "snapkv/generator.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "base/timer.h"
#include "engine/decode/draft_length.h"
#include "engine/decode/lookup_draft.h"
#include "engine/decode/guess_length.h"
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

/// Guesses tokens, and decides how many of them are worth a check.
class Generator::Drafter {
 public:
  explicit Drafter(Draft kind) : kind_(kind) {}

  /// Adds tokens that may follow `text` to those of a step, `least` to `most` if it finds as many.
  /// Returns how many.
  int64_t look_up(std::span<const int32_t> text, int64_t least, int64_t most,
                  std::vector<int32_t>& step) {
    guesses_.clear();
    guess_seconds_ = 0;
    lookup_.update(text);
    most = std::min(most, room(step));
    if (most <= 0) return 0;
    const LookupDraft::Guess guess = lookup_.guess(most);
    const int64_t n_guessed = std::ssize(guess.tokens);
    const int64_t n_others = n_others_ + std::ssize(step) - 1;
    const int64_t n = std::max(length_.choose(n_guessed, guess.n_matched, n_others),
                               std::min(least, n_guessed));
    step.insert(step.end(), guess.tokens.begin(), guess.tokens.begin() + n);
    return n;
  }
  /// Whether the kept rows, or the smaller model, shall make another guess.
  bool more(std::span<const GuessedToken> guesses, int64_t n_guessing, int64_t least, int64_t most,
            const std::vector<int32_t>& step) {
    const int64_t n = std::ssize(guesses);
    if (kind_ == Draft::lookup || n >= std::min(most, room(step))) return false;
    const bool pays = self_.more(guesses, n_sessions_, n_guessing, length_.time());
    return pays || n < least;
  }
  /// Adds what they have guessed, n_guessing sequences at a time on average, in n_steps
  /// steps of so many seconds.
  void take(std::vector<GuessedToken> guesses, double n_guessing, int64_t n_steps, double seconds,
            std::vector<int32_t>& step) {
    const double per_step = seconds / static_cast<double>(n_steps);
    self_.learn_cost(n_guessing, per_step);
    guess_seconds_ = static_cast<double>(guesses.size()) * per_step / n_guessing;
    guesses_ = std::move(guesses);
    for (const GuessedToken& guess : guesses_) step.push_back(guess.id);
  }
  /// After a step with n_own tokens of this answer.
  void learn(const SessionStats::Step& step, int64_t n_own, int64_t n_guessed, int64_t n_right) {
    n_others_ = step.n_tokens - n_own;
    n_sessions_ = step.n_sessions;
    length_.learn(step.n_tokens, step.seconds, guesses_.empty() ? n_guessed : 0, n_right);
    if (kind_ == Draft::lookup) return;
    self_.learn(guesses_, guesses_.empty() ? 0 : n_right, guess_seconds_, step.n_sessions,
                step.seconds, length_.time());
  }

 private:
  /// How many guesses a step of these tokens has room for: with kMostStepTokens tokens of all
  /// sessions products cost as much for each token as in steps of one. Where all rows are read,
  /// attention costs more than products.
  int64_t room(const std::vector<int32_t>& step) const {
    const int64_t most = kind_ == Draft::self ? 4 * kMostStepTokens : kMostStepTokens;
    return most / n_sessions_ - std::ssize(step);
  }

  const Draft kind_;
  LookupDraft lookup_;
  DraftLength length_;
  GuessLength self_;
  std::vector<GuessedToken> guesses_;  // that were not looked up, in this step
  double guess_seconds_ = 0;           // that they took
  // in the last step
  int64_t n_others_ = 0;  // tokens of other answers
  int64_t n_sessions_ = kMostStepTokens;
};

Generator::Generator(Session& session, Sampler& sampler, GeneratorOptions options)
    : session_(session),
      sampler_(sampler),
      options_(std::move(options)),
      stream_(options_.stops),
      n_prompt_(session.n_past()) {
  if (options_.ignore_eos) end_tokens_ = end_tokens(session.model());
  const Draft draft = session.options().draft;
  if (draft != Draft::off) drafter_ = std::make_unique<Drafter>(draft);
}

Generator::~Generator() {
  if (done() || n_read_in_step_ == 0 || session_.n_past() != n_past_) return;
  try {
    forget_ahead(n_ahead());
  } catch (const Error&) {  // something else has used the session: there is nothing to forget
  }
}

/// Those after the last chosen token: the session's, or those in the middle of its last step.
std::span<const float> Generator::logits() const {
  if (n_ahead() <= 0) return session_.logits();
  return session_.step_logits(std::ssize(step_) - 1 - n_ahead());
}

std::span<const float> Generator::allowed_logits() {
  const std::span<const float> logits = this->logits();
  if (end_tokens_.empty()) return logits;
  logits_.assign(logits.begin(), logits.end());
  for (const size_t id : end_tokens_) logits_[id] = -std::numeric_limits<float>::infinity();
  return logits_;
}

/// Lets the session forget the last n_ahead tokens of its step, if there are any.
void Generator::forget_ahead(int64_t n_ahead) {
  if (n_ahead > 0) session_.keep_decoded(std::ssize(step_) - n_ahead);
}

StepTokens Generator::next_tokens() {
  if (!has_step_) begin_step();
  return step_;
}

/// Sets step_ to the tokens that the session has not read, and what is looked up.
void Generator::begin_step() {
  if (drafter_ != nullptr && n_read_in_step_ > 0) {
    drafter_->learn(session_.stats().last_step, n_read_in_step_, n_guessed_, n_right_);
  }
  has_step_ = true;
  n_read_in_step_ = n_guessed_ = n_right_ = 0;
  step_.assign(ids_.end() - n_unread(), ids_.end());
  // a token too many is left to decoding, which says why there is no room
  const int64_t room = session_.decode_room();
  if (std::ssize(step_) > room) step_.resize(std::max<int64_t>(room, 1));
  const int64_t most = most_guesses();
  if (most <= 0) return;
  n_guessed_ = drafter_->look_up(sampler_.history(), session_.options().draft_min, most, step_);
}

/// How many guesses may follow the tokens of step_.
int64_t Generator::most_guesses() const {
  if (drafter_ == nullptr || std::ssize(step_) < n_unread()) return 0;
  const SessionOptions& options = session_.options();
  int64_t most = std::min(session_.decode_room(), options.draft_max + 1) - std::ssize(step_);
  if (options_.max_tokens > 0) {
    most = std::min(most, options_.max_tokens - std::ssize(ids_) - 1);
  }
  return most;
}

void Generator::guess(std::span<Generator* const> answers) {
  std::vector<Generator*> guessing;
  std::vector<Session*> sessions;
  std::vector<StepTokens> steps;
  for (Generator* const answer : answers) {
    const Draft draft = answer->session_.options().draft;
    if (draft == Draft::off || draft == Draft::lookup || !answer->must_read()) continue;
    if (answer->has_step_) continue;
    answer->begin_step();
    if (answer->n_guessed_ > 0 || answer->most_guesses() <= 0) continue;
    guessing.push_back(answer);
    sessions.push_back(&answer->session_);
    steps.emplace_back(answer->step_);
  }
  if (guessing.empty()) return;
  const Timer timer;
  const auto more = [&](size_t i, std::span<const GuessedToken> guesses, int64_t n_guessing) {
    Generator& answer = *guessing[i];
    return answer.drafter_->more(guesses, n_guessing, answer.session_.options().draft_min,
                                 answer.most_guesses(), answer.step_);
  };
  std::vector<std::vector<GuessedToken>> guesses = guess_tokens(sessions, steps, more);
  const double seconds = timer.seconds();
  int64_t n_steps = 0, n_all = 0;
  for (const auto& of_answer : guesses) {
    n_steps = std::max(n_steps, std::ssize(of_answer));
    n_all += std::ssize(of_answer);
  }
  for (size_t i = 0; i < guessing.size(); ++i) {
    if (guesses[i].empty()) continue;
    Generator& answer = *guessing[i];
    answer.n_guessed_ = std::ssize(guesses[i]);
    answer.drafter_->take(std::move(guesses[i]), static_cast<double>(n_all) / n_steps, n_steps,
                          seconds, answer.step_);
  }
}

bool Generator::end(StopReason reason) {
  stop(reason);
  token_ = {};
  return false;
}

void Generator::stop(StopReason reason) {
  if (done()) return;
  reason_ = reason;
  forget_ahead(n_ahead());
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
  const int64_t n_ahead = this->n_ahead();
  has_step_ = false;
  if (n_read_in_step_ == 0 && !step_.empty()) {  // the first token after a step
    n_read_in_step_ = std::ssize(step_);
    n_past_ = session_.n_past();
    n_drafted_ += n_guessed_;
  }
  const int32_t id = sampler_.sample(allowed_logits());
  if (model.is_end_of_generation(id)) return end(StopReason::eos);
  token_.id = id;
  token_.text = stream_.push(model.piece(id, options_.shows_control_tokens));
  token_.logprobs.reset();
  if (options_.top_logprobs >= 0) {
    token_.logprobs = token_logprobs(logits(), id, options_.top_logprobs);
  }
  ids_.push_back(id);
  const bool was_guessed = n_ahead > 0 && step_[std::ssize(step_) - n_ahead] == id;
  if (was_guessed) {
    ++n_right_;
    ++n_accepted_;
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
  // a token that ends the answer has not been read
  if (!was_guessed || done()) forget_ahead(n_ahead);
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
  while (n_unread() > 0) {
    Session* const session = &session_;
    Generator* const self = this;
    guess({&self, 1});
    const StepTokens tokens = next_tokens();
    decode_steps({&session, 1}, {&tokens, 1});
  }
  return choose();
}

std::string Generator::rest() {
  if (!done()) return {};
  std::string text = stream_.finish();
  if (stream_.stopped()) reason_ = StopReason::stop;  // the last bytes completed a stop string
  return text;
}

int64_t Generator::n_unread() const { return std::max<int64_t>(0, -n_ahead()); }

}  // namespace snapkv
