// SPDX-License-Identifier: MIT
// GrammarMatcher: the tokens that a grammar allows after the text so far.
#include <algorithm>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "text/grammar/grammar_impl.h"
#include "text/grammar/token_masks.h"

namespace snapkv {
namespace {

// A token's text for a message: in quotes, with bytes that are not printable ASCII as \xHH.
std::string quoted(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      text += fmt::format("\\x{:02X}", byte);
    } else {
      text += c;
    }
  }
  return text + "'";
}

}  // namespace

// The state that copies of a matcher share: the sets and masks that any of them has needed.
struct GrammarMatcher::Shared {
  Shared(Grammar g, std::shared_ptr<const GrammarVocabulary> v)
      : grammar(std::move(g)), vocabulary(std::move(v)), masks(make_masks()) {}
  std::shared_ptr<grammar::TokenMasks> make_masks() const {
    return std::make_shared<grammar::TokenMasks>(grammar.impl_->automaton, vocabulary->impl_->trie,
                                                 vocabulary->n_vocab());
  }

  const Grammar grammar;
  const std::shared_ptr<const GrammarVocabulary> vocabulary;
  std::mutex mutex;  // guards everything in `masks` and everything obtained from it
  std::shared_ptr<grammar::TokenMasks> masks;
};

struct GrammarMatcher::State {
  std::shared_ptr<Shared> shared;
  std::shared_ptr<grammar::TokenMasks> masks;  // `set` is a number of these masks
  int32_t set = 0;
  bool ended = false;  // whether an end token was accepted

  const GrammarVocabulary::Impl& vocabulary() const { return *shared->vocabulary->impl_; }
  bool is_complete() const { return !ended && masks->sets().is_complete(set); }

  /// Moves to newer masks if the current ones have grown too large. Needs the mutex.
  void use_current_masks() {
    if (shared->masks->sets().is_full()) shared->masks = shared->make_masks();
    if (masks == shared->masks) return;
    grammar::StateSets &from = masks->sets(), &to = shared->masks->sets();
    std::vector<int32_t> tops;
    std::vector<int32_t> path;
    for (const int32_t top : from.frames(set)) {
      for (int32_t f = top; f != grammar::StateSets::kBottom; f = from.frame(f).below) {
        path.push_back(f);
      }
      int32_t copy = grammar::StateSets::kBottom;
      for (; !path.empty(); path.pop_back())
        copy = to.frame_of(from.frame(path.back()).state, copy);
      tops.push_back(copy);
    }
    set = to.set_of(tops, from.is_complete(set));
    masks = shared->masks;
  }

  /// The set after more bytes; kDead if they are not allowed. Needs the mutex.
  int32_t after(std::string_view bytes) {
    constexpr int64_t kWorkPerByte = 1 << 16;
    int32_t next = set;
    for (const char c : bytes) {
      masks->sets().allow_work(kWorkPerByte);
      next = masks->sets().step(next, static_cast<uint8_t>(c));
      if (next == grammar::StateSets::kDead) break;
    }
    return next;
  }
};

GrammarMatcher::GrammarMatcher(Grammar grammar,
                               std::shared_ptr<const GrammarVocabulary> vocabulary) {
  if (vocabulary == nullptr) fail(ErrorCode::kUsage, "the grammar's vocabulary is null");
  grammar.impl();  // throws if there is none
  auto shared = std::make_shared<Shared>(std::move(grammar), std::move(vocabulary));
  auto masks = shared->masks;
  const int32_t initial = masks->sets().initial();
  state_ = std::make_unique<State>(State{std::move(shared), std::move(masks), initial});
}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(const GrammarMatcher& other)
    : state_(std::make_unique<State>(other.state())) {}
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(const GrammarMatcher& other) {
  if (this != &other) state_ = std::make_unique<State>(other.state());
  return *this;
}
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

GrammarMatcher::State& GrammarMatcher::state() const {
  if (state_ == nullptr) fail(ErrorCode::kUsage, "the grammar's matcher was moved from");
  return *state_;
}

void GrammarMatcher::mask(std::vector<uint64_t>& allowed) const {
  State& s = state();
  allowed.assign(static_cast<size_t>((s.shared->vocabulary->n_vocab() + 63) / 64), 0);
  if (s.ended) return;
  const std::lock_guard lock(s.shared->mutex);
  s.use_current_masks();
  s.masks->add_allowed(s.set, allowed);
  if (!s.is_complete()) return;
  for (const int32_t id : s.vocabulary().end_tokens) {
    allowed[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
}

size_t GrammarMatcher::mask_bytes() const {
  State& s = state();
  const std::lock_guard lock(s.shared->mutex);
  s.use_current_masks();  // lets go of masks that other copies have replaced
  return s.masks->n_bytes();
}

void GrammarMatcher::apply(std::span<float> logits) const {
  std::vector<uint64_t> allowed;
  mask(allowed);
  allowed.resize(std::max(allowed.size(), (logits.size() + 63) / 64));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t begin = 0; begin < logits.size(); begin += 64) {
    const uint64_t bits = allowed[begin / 64];
    if (bits == ~uint64_t{0}) continue;
    const std::span<float> part =
        logits.subspan(begin, std::min<size_t>(64, logits.size() - begin));
    for (size_t i = 0; i < part.size(); ++i) part[i] = (bits >> i & 1) != 0 ? part[i] : kNever;
  }
}

void GrammarMatcher::accept(int32_t id) {
  State& s = state();
  const GrammarVocabulary::Impl& vocabulary = s.vocabulary();
  if (id < 0 || id >= std::ssize(vocabulary.pieces)) {
    fail(ErrorCode::kUsage, "token {} is not one of the vocabulary's {}", id,
         vocabulary.pieces.size());
  }
  const std::string& piece = vocabulary.pieces[id];
  const std::string& name = s.shared->grammar.name();
  if (vocabulary.is_end[id]) {
    const std::lock_guard lock(s.shared->mutex);
    if (!s.is_complete()) {
      fail(ErrorCode::kUsage, "{}: the answer may not end here (token {})", name, id);
    }
    s.ended = true;
    return;
  }
  if (piece.empty()) fail(ErrorCode::kUsage, "{}: token {} has no text", name, id);
  accept_text(piece);
}

void GrammarMatcher::accept_text(std::string_view bytes) {
  State& s = state();
  const std::lock_guard lock(s.shared->mutex);
  s.use_current_masks();
  const int32_t next = s.ended ? grammar::StateSets::kDead : s.after(bytes);
  if (next == grammar::StateSets::kDead) {
    fail(ErrorCode::kUsage, "{}: {} is not allowed here", s.shared->grammar.name(), quoted(bytes));
  }
  s.set = next;
}

bool GrammarMatcher::is_complete() const {
  const std::lock_guard lock(state().shared->mutex);
  return state().is_complete();
}

bool GrammarMatcher::can_continue() const {
  const std::lock_guard lock(state().shared->mutex);
  return !state().ended && !state().masks->sets().frames(state().set).empty();
}

const Grammar& GrammarMatcher::grammar() const { return state().shared->grammar; }

}  // namespace snapkv
