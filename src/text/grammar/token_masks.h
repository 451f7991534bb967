// SPDX-License-Identifier: MIT
// TokenMasks: which tokens of a vocabulary may come next, for every set of stacks that a text leads
// to. Used by GrammarMatcher.
//
// A mask is found by walking the trie of all tokens' bytes with the automaton. Inside the string of
// a JSON document nearly all of it is walked, which is the same work in every string of the
// document: what differs is only where the text goes on after the string. So the walk is done once
// for the innermost rule alone, as if nothing were around it. It gives the tokens that stay inside
// the rule, and the nodes of the trie where the rule has ended; what is below those nodes, a few
// hundred tokens, is then walked from where the rule returns to. A text that can be read in many
// ways returns to as many places: that walk is one from all of them together.
//
// A string with a length is another place after each of its characters, where that work has to be
// done again. So a walk does not go below a node where all texts are allowed whatever they are, up
// to their number of characters (StateSets::open and reach): in a string it goes to quotes, escapes
// and broken characters only.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "text/grammar/lru_cache.h"
#include "text/grammar/state_sets.h"
#include "text/grammar/token_trie.h"

namespace snapkv::grammar {

/// Tokens: a list while they are few, else a bit for each.
class TokenSet {
 public:
  /// Of the bits of all tokens.
  explicit TokenSet(const std::vector<uint64_t>& bits);
  void add_to(std::vector<uint64_t>& bits) const;
  size_t n_bytes() const { return ids_.size() * sizeof(int32_t) + bits_.size() * sizeof(uint64_t); }

 private:
  std::vector<int32_t> ids_;
  std::vector<uint64_t> bits_;
};

class TokenMasks {
 public:
  /// Both must outlive this object.
  TokenMasks(const Automaton& automaton, const TokenTrie& trie, int64_t n_vocab);

  StateSets& sets() { return sets_; }
  /// Of what is remembered.
  size_t n_bytes() const { return masks_.n_bytes() + inner_masks_.n_bytes(); }
  /// Sets the bits of the tokens that may follow, in n_vocab / 64 words, rounded up.
  void add_allowed(int32_t set, std::vector<uint64_t>& bits);

 private:
  /// What a set allows inside its rule, and the nodes with others below them where the rule ends.
  struct InnerMask {
    TokenSet tokens;
    std::vector<int32_t> ends;
    size_t n_bytes() const { return tokens.n_bytes() + ends.size() * sizeof(int32_t); }
  };
  /// By the set of those frames of a set that return to one frame, as if that were the bottom: all
  /// frames that one of these sets returns to, sorted.
  using Groups = std::map<int32_t, std::vector<int32_t>>;

  TokenSet compute(int32_t set);
  const InnerMask& inner_mask(int32_t set);
  Groups groups_of(int32_t set);
  /// Nodes from `begin` to `end` of the trie, whose tokens are allowed if no more than
  /// `most_characters` begin in them.
  struct Run {
    int32_t begin, end;
    int32_t most_characters;
  };
  /// Finds the nodes, among those from `begin` to `end`, siblings and what is below them, that are
  /// allowed after `set`: runs_. `ends`: gets those where the text may end, if not null.
  void walk(int32_t begin, int32_t end, int32_t set, std::vector<int32_t>* ends);
  /// The most characters that an allowed token has among those below node `i`, or all that begin
  /// with its character where its byte is the first of more; `set` is where these texts begin,
  /// after `n_before` characters. Or kAnyNumber, kNone, kNotDecided.
  int32_t decide(int32_t i, int32_t set, int32_t n_before);
  std::vector<uint64_t> bits_of_runs() const;
  void add_run(const Run& run);  // to runs_
  void add_tokens(const Run& run, std::vector<uint64_t>& bits) const;

  const TokenTrie& trie_;
  size_t n_words_;
  StateSets sets_;
  std::vector<uint64_t> all_tokens_;
  std::vector<int32_t> path_;  // sets, by depth in the trie
  std::vector<Run> runs_;      // of the last walk, in order
  LruCache<TokenSet> masks_;
  LruCache<InnerMask> inner_masks_;
};

}  // namespace snapkv::grammar
