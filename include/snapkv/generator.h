// SPDX-License-Identifier: MIT
// Generator: writes an answer token by token from a session that has read its prompt.
//
//   snapkv::Sampler sampler({.temperature = 0.7});
//   snapkv::Generator answer(session, sampler, {.max_tokens = 200, .stops = {"\nUser:"}});
//   while (answer.step()) std::cout << answer.token().text << std::flush;
//   std::cout << answer.rest();
//
// step() chooses a token and lets the session read the one before. A program that decodes several
// sessions together asks each generator what its session reads next, and lets it choose for as long
// as the session has been ahead (with SessionOptions::draft it may read several tokens at a time):
//
//   while (!generators.empty()) {
//     for (Generator& g : generators) {
//       while (!g.must_read() && g.choose()) std::cout << g.token().text;
//     }                                      // take those out that are done()
//     Generator::guess(answers);             // with Draft::self and Draft::model
//     decode_steps(sessions, next_tokens);   // Generator::next_tokens() of each
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/engine.h"
#include "snapkv/sampler.h"
#include "snapkv/text_stream.h"

namespace snapkv {

/// Why an answer ended: the model ended it, a stop string (or is_end) was found, its paragraph
/// ended, it has max_tokens tokens, the context is full, or GeneratorOptions::cancelled said so.
enum class StopReason { eos, stop, paragraph, length, context, cancelled };
/// "eos", "stop", "paragraph", "length", "context", "cancelled"
std::string_view name(StopReason reason);

struct GeneratorOptions {
  int64_t max_tokens = -1;              ///< negative: until the context is full
  std::vector<std::string> stops = {};  ///< the answer ends before the first one in its text
  /// If set: receives the text of each token as it becomes certain, and returns whether the answer
  /// ends there.
  std::function<bool(std::string_view text)> is_end = {};
  bool one_paragraph = false;  ///< the answer ends with an empty line after some text
  bool ignore_eos = false;     ///< never choose a token that ends the answer
  /// Whether control tokens that do not end the answer are part of its text.
  bool shows_control_tokens = false;
  int top_logprobs = -1;  ///< alternatives reported with each token; -1: no probabilities
  /// If set: called before each token; true ends the answer.
  std::function<bool()> cancelled = {};
};

/// A token of the answer.
struct GeneratedToken {
  int32_t id = -1;
  /// The text that became certain with this token (TextStream); may be empty.
  std::string text;
  std::optional<TokenLogprobs> logprobs;  ///< with GeneratorOptions::top_logprobs
};

class Generator {
 public:
  /// `session` has read its prompt. Both must outlive the generator. `sampler` has the grammar, if
  /// there is one, and the history of the penalties (Sampler::accept()). Throws kUsage for a stop
  /// string that is empty or not valid UTF-8.
  Generator(Session& session, Sampler& sampler, GeneratorOptions options = {});
  /// Unless done(): lets the session forget what it has read beyond the tokens that were chosen. With
  /// SessionOptions::draft nothing else may use the session before that.
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Chooses the next token, for which the session must have read all before: not must_read().
  /// False when the answer has ended without a further token. The answer may also end with the
  /// token that was chosen: done() is true then, and it is not decoded. Throws as Sampler::sample().
  bool choose();
  /// Lets the session read the token that was chosen last, then chooses the next one. False when
  /// the answer has ended. Throws as Session::decode() and Sampler::sample().
  bool step();

  bool done() const { return reason_.has_value(); }
  /// Only when done().
  StopReason stop_reason() const { return reason_.value(); }
  /// The token that choose() or step() chose last.
  const GeneratedToken& token() const { return token_; }
  /// Whether the session must read next_tokens() before choose().
  bool must_read() const { return !done() && n_unread() > 0; }
  /// The tokens that the session reads next, for decode_steps(): those that it has not read, of
  /// which the last one was chosen last, and with SessionOptions::draft what is guessed to follow.
  /// Not empty if must_read(). Valid until the next call of choose().
  StepTokens next_tokens();
  /// With Draft::self and Draft::model, before next_tokens(): lets the kept rows of these answers'
  /// sessions, which have one model, or the smaller model guess together what will be checked. Answers that read nothing are left out.
  /// step() does it by itself. Throws as guess_tokens().
  static void guess(std::span<Generator* const> answers);
  /// The token that was chosen last: all that the session reads next unless there are guesses.
  int32_t next_token() const { return ids_.back(); }

  /// Ends the answer from outside; nothing happens if it has ended already.
  void stop(StopReason reason);
  /// The text that was held back because it could have begun a stop string or a character. For the
  /// end of the answer: empty before and after the first call.
  std::string rest();

  /// All tokens, including those of a stop string.
  const std::vector<int32_t>& ids() const { return ids_; }
  /// The stop string that was found; empty if none was.
  const std::string& stop_string() const { return stream_.stop(); }
  /// How many of ids() the session has not read: 1 after a token that ended the answer, else 0.
  /// Between choose() and decode_steps() it is 1 too. With guesses and a model with recurrent
  /// layers it may be more.
  int64_t n_unread() const;
  /// Tokens that were guessed and checked, and how many of them were right.
  int64_t n_drafted() const { return n_drafted_; }
  int64_t n_accepted() const { return n_accepted_; }

 private:
  class Drafter;
  int64_t n_ahead() const { return session_.n_past() - n_prompt_ - std::ssize(ids_); }
  std::span<const float> logits() const;
  void forget_ahead(int64_t n_ahead);
  void begin_step();
  int64_t most_guesses() const;
  std::span<const float> allowed_logits();
  bool end(StopReason reason);
  bool ends_paragraph(std::string_view text);

  Session& session_;
  Sampler& sampler_;
  const GeneratorOptions options_;
  TextStream stream_;
  bool has_text_ = false;           // with one_paragraph: a character that is not blank has come
  int n_newlines_ = 0;              // since the last such character
  int64_t n_prompt_;                // tokens that the session had read before the answer
  std::unique_ptr<Drafter> drafter_;  // with SessionOptions::draft
  std::vector<int32_t> step_;         // next_tokens()
  bool has_step_ = false;             // whether it is that of the next step
  int64_t n_guessed_ = 0, n_right_ = 0;  // of them
  int64_t n_read_in_step_ = 0;           // step_'s size once it has been read
  int64_t n_past_ = 0;                   // what the session had then read
  int64_t n_drafted_ = 0, n_accepted_ = 0;
  std::vector<size_t> end_tokens_;  // with ignore_eos
  std::vector<float> logits_;       // [n_vocab] without end_tokens_, if there are any
  std::vector<int32_t> ids_;
  GeneratedToken token_;
  std::optional<StopReason> reason_;
};

}  // namespace snapkv
