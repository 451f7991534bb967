// SPDX-License-Identifier: MIT
// StateSets: runs an automaton. Since a text can often be read in several ways, its position in the
// grammar is a set of stacks. Equal sets have the same number, and the set that follows by a byte
// is computed only once, because TokenMasks asks for the same few sets again and again.
//
// Stacks share what is below their tops: a stack is a Frame (a state, and the frame that its rule
// returns to); frame 0 is the bottom. A set contains only frames whose states read bytes: every
// step that reads nothing has already been taken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/grammar/character_kinds.h"

namespace snapkv::grammar {

class StateSets {
 public:
  static constexpr int32_t kBottom = 0;
  static constexpr int32_t kDead = 0;  // the set of no stacks: the text is not allowed
  /// The deepest nesting of rules. Deeper texts are not allowed, whatever the grammar says.
  static constexpr int32_t kMostDepth = 10000;

  struct Frame {
    int32_t state = 0;
    int32_t below = kBottom;
    int32_t depth = 0;
  };

  /// The automaton must outlive this object.
  explicit StateSets(const Automaton& automaton);

  /// The set at the beginning of the root rule.
  int32_t initial() const { return initial_; }
  /// The set after one more byte. Throws Error{kRuntime} if the grammar has too many ways to read
  /// the text, or the work that allow_work() granted is used up.
  int32_t step(int32_t set, uint8_t byte) {
    const std::unique_ptr<int32_t[]>& next = sets_[set].next;
    if (next != nullptr) {
      const int32_t known = next[automaton_.interval(byte)];
      if (known >= 0) return known;
    }
    return compute_step(set, byte);
  }
  /// How many characters of certain kinds may follow a set, whichever they are. A token that ends
  /// inside a character counts like that character.
  struct Reach {
    CharacterKinds kinds = 0;
    /// Every text of up to this many characters of these kinds is allowed, and is_complete() is
    /// true after none of them.
    int32_t n_characters = 0;
    /// After this many characters, no character of these kinds is allowed.
    bool ends_there = false;
  };
  struct Open {
    /// The reach of the characters after which the usual continuations are possible: in a JSON
    /// string, all but the quote and the backslash.
    Reach reach;
    /// The kinds with some character that may follow; characters of other kinds may not.
    CharacterKinds possible = 0;
  };
  /// Throws as step() does.
  const Open& open(int32_t set) {
    const std::unique_ptr<const Open>& known = sets_[set].open;
    return known != nullptr ? *known : find_open(set);
  }
  /// The reach of these kinds. Throws as step() does.
  Reach reach(int32_t set, CharacterKinds kinds);
  /// The frames of a set, sorted.
  std::span<const int32_t> frames(int32_t set) const { return sets_[set].frames; }
  /// Whether the text may end here.
  bool is_complete(int32_t set) const { return sets_[set].is_complete; }
  const Frame& frame(int32_t f) const { return frames_[f]; }
  const Automaton& automaton() const { return automaton_; }

  /// The frame with this state and this frame below it.
  int32_t frame_of(int32_t state, int32_t below);
  /// The set of these frames; sorts them.
  int32_t set_of(std::span<int32_t> frames, bool is_complete);
  /// The set after returning to these frames, none of which is kBottom.
  int32_t resumed(std::span<const int32_t> frames);

  /// Sets how much work one call from outside may do before it throws, counted in visited frames.
  void allow_work(int64_t n) { work_left_ = n; }
  /// Counts work done elsewhere with the results of step().
  void spend_work(int64_t n) { work_left_ -= n; }
  /// Whether so much is stored that a new object should replace this one.
  bool is_full() const { return sets_.size() > kManySets || frames_.size() > kManyFrames; }

 private:
  /// The sets that characters lead to, by kind.
  struct Targets {
    struct Target {
      int32_t set = 0;
      CharacterKinds kinds = 0;
    };
    CharacterKinds all = 0;        // kinds allowed in full that lead to no complete set
    CharacterKinds possible = 0;   // kinds with some character that is allowed
    std::vector<Target> of_kinds;  // the sets that the kinds in `all` lead to
  };
  struct Set {
    std::vector<int32_t> frames;
    bool is_complete = false;
    std::unique_ptr<int32_t[]> next;  // by interval of the byte; -1: not yet known
    std::unique_ptr<const Open> open;
    std::unique_ptr<const Targets> targets;
    std::vector<Reach> reaches;  // the ones asked for so far
  };
  static constexpr size_t kManySets = 20000, kManyFrames = size_t{1} << 18;
  static constexpr size_t kMostSets = 100000, kMostFrames = size_t{1} << 20;  // within one call
  static constexpr size_t kMostWays = 4096;

  int32_t compute_step(int32_t set, uint8_t byte);
  /// The entry of frame_numbers_ for this frame, or the free entry where it belongs.
  int32_t& place_of_frame(int32_t state, int32_t below);
  void double_frame_numbers();
  const Open& find_open(int32_t set);
  Reach find_reach(int32_t set, CharacterKinds kinds);
  const Targets& targets(int32_t set);
  Targets find_targets(int32_t set);
  CharacterKinds kinds_that_go_on(int32_t set);
  /// Calls found(set) for each set that texts of one byte from each span lead to, and found(kDead)
  /// for a text that is not allowed or that is complete before its last byte.
  template <typename Found>
  void step_through(int32_t set, std::span<const ByteSpan> spans, Found&& found);
  void begin();
  /// Visits a stack and all stacks that follow from it without reading a byte.
  void visit(int32_t state, int32_t below);
  void visit_one(int32_t state, int32_t below);
  [[noreturn]] static void fail_too_much_work();
  /// Marks a stack as visited; returns whether it was not visited before.
  bool is_new(uint64_t key);
  int32_t finish();

  const Automaton& automaton_;
  std::vector<Frame> frames_;
  /// Hash table of frame numbers, keyed by state and frame below, with linear probing; 0: free. Its
  /// size is a power of 2, at least twice the number of frames.
  std::vector<int32_t> frame_numbers_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, int32_t> set_numbers_;  // key: hash of the set
  int32_t initial_ = 0;
  int64_t work_left_ = 0;
  // The set that is being made:
  std::vector<uint64_t> visited_;
  /// The same as a hash table, used when there are many. An entry of another set counts as free, so
  /// that nothing has to be erased. Its size is a power of 2, more than twice as many as can be
  /// visited.
  struct Visited {
    uint64_t key = 0;
    uint64_t set = 0;
  };
  std::vector<Visited> many_visited_;
  uint64_t set_being_made_ = 0;
  std::vector<std::pair<int32_t, int32_t>> pending_;
  std::vector<int32_t> tops_;
  bool complete_ = false;
};

}  // namespace snapkv::grammar
