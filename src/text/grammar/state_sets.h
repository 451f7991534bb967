// SPDX-License-Identifier: MIT
// StateSets: runs an automaton. A text may be read in several ways at once, so where it stands is a
// set of stacks; equal sets have the same number here, and what follows from one by a byte is
// computed once. TokenMasks asks for the same few sets again and again.
//
// Stacks share what is below their tops: a stack is a Frame (a state, and the frame that its rule
// returns to), and frame 0 is the bottom. A set has only frames whose states read bytes; all that
// can be done without reading has been done.
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
  /// Rules inside each other. Deeper texts are not allowed, whatever the grammar says.
  static constexpr int32_t kMostDepth = 10000;

  struct Frame {
    int32_t state = 0;
    int32_t below = kBottom;
    int32_t depth = 0;
  };

  /// The automaton must outlive this object.
  explicit StateSets(const Automaton& automaton);

  /// At the beginning of the root rule.
  int32_t initial() const { return initial_; }
  /// After one more byte. Throws Error{kRuntime} when the grammar has too many ways to read the
  /// text, or work() has been used up.
  int32_t step(int32_t set, uint8_t byte) {
    const std::unique_ptr<int32_t[]>& next = sets_[static_cast<size_t>(set)].next;
    if (next != nullptr) {
      const int32_t known = next[automaton_.interval(byte)];
      if (known >= 0) return known;
    }
    return compute_step(set, byte);
  }
  /// How long texts of some kinds of characters may be that follow a set, whatever they are. Ends
  /// inside a character count as it does.
  struct Reach {
    CharacterKinds kinds = 0;
    /// Every text of up to so many characters of these kinds is allowed, and is_complete() after
    /// none of them.
    int32_t n_characters = 0;
    /// After so many none of these kinds is allowed.
    bool ends_there = false;
  };
  struct Open {
    /// Of the kinds after which the same may follow as after most others: in a string all but the
    /// quote and the backslash.
    Reach reach;
    /// Kinds of which a character may follow the set; all others may not.
    CharacterKinds possible = 0;
  };
  /// Throws as step().
  const Open& open(int32_t set) {
    const std::unique_ptr<const Open>& known = sets_[static_cast<size_t>(set)].open;
    return known != nullptr ? *known : find_open(set);
  }
  /// Of these kinds. Throws as step().
  Reach reach(int32_t set, CharacterKinds kinds);
  /// Sorted.
  std::span<const int32_t> frames(int32_t set) const {
    return sets_[static_cast<size_t>(set)].frames;
  }
  /// Whether the text may end here.
  bool is_complete(int32_t set) const { return sets_[static_cast<size_t>(set)].is_complete; }
  const Frame& frame(int32_t f) const { return frames_[static_cast<size_t>(f)]; }
  const Automaton& automaton() const { return automaton_; }

  /// The frame with this state and the frame below it.
  int32_t frame_of(int32_t state, int32_t below);
  /// The set of these frames, which need not be sorted, but are then.
  int32_t set_of(std::span<int32_t> frames, bool is_complete);
  /// The set after the return to any of these frames, none of which is kBottom.
  int32_t resumed(std::span<const int32_t> frames);

  /// What one call from outside may do before it throws: frames visited, or as much work.
  void allow_work(int64_t n) { work_left_ = n; }
  /// Takes other work, done with what step() gave, off that.
  void spend_work(int64_t n) { work_left_ -= n; }
  /// Whether so much is stored that another object should take over.
  bool is_full() const { return sets_.size() > kManySets || frames_.size() > kManyFrames; }

 private:
  /// What characters lead to, by their kinds.
  struct Targets {
    struct Target {
      int32_t set = 0;
      CharacterKinds kinds = 0;
    };
    CharacterKinds all = 0;        // of which every one is allowed, and leads to no complete set
    CharacterKinds possible = 0;   // of which any is
    std::vector<Target> of_kinds;  // each set to which those of `all` lead
  };
  struct Set {
    std::vector<int32_t> frames;
    bool is_complete = false;
    std::unique_ptr<int32_t[]> next;  // by interval of bytes; -1: not known yet
    std::unique_ptr<const Open> open;
    std::unique_ptr<const Targets> targets;
    std::vector<Reach> reaches;  // that were asked for
  };
  static constexpr size_t kManySets = 20000, kManyFrames = size_t{1} << 18;
  static constexpr size_t kMostSets = 100000, kMostFrames = size_t{1} << 20;  // within one call
  static constexpr size_t kMostWays = 4096;

  int32_t compute_step(int32_t set, uint8_t byte);
  /// Where the number of such a frame is in frame_numbers_, or would be.
  int32_t& place_of_frame(int32_t state, int32_t below);
  void double_frame_numbers();
  const Open& find_open(int32_t set);
  Reach find_reach(int32_t set, CharacterKinds kinds);
  const Targets& targets(int32_t set);
  Targets find_targets(int32_t set);
  CharacterKinds kinds_that_go_on(int32_t set);
  /// Calls found(set) for the sets to which texts of one byte from each span lead, and found(kDead)
  /// where one is not allowed or ends the text before its last byte.
  template <typename Found>
  void step_through(int32_t set, std::span<const ByteSpan> spans, Found&& found);
  void begin();
  /// To be done without reading: visits a stack and all that follow from it.
  void visit(int32_t state, int32_t below);
  void visit_one(int32_t state, int32_t below);
  [[noreturn]] static void fail_too_much_work();
  /// Whether this stack was not visited yet; it is now.
  bool is_new(uint64_t key);
  int32_t finish();

  const Automaton& automaton_;
  std::vector<Frame> frames_;
  /// Numbers of frames by the hash of their states and what is below them, each at the first free
  /// place from there on; 0: free. A power of 2, at least twice as many as there are frames.
  std::vector<int32_t> frame_numbers_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, int32_t> set_numbers_;  // by hash
  int32_t initial_ = 0;
  int64_t work_left_ = 0;
  // of the set being made
  std::vector<uint64_t> visited_;
  /// The same, where they are many: each at the first place from its hash on that is of another
  /// set, so that nothing has to be taken out. A power of 2, more than twice as many as can be
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
