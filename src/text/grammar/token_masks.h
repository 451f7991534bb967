// SPDX-License-Identifier: MIT
// TokenMasks: the tokens of a vocabulary that may come next, for every set of stacks that a text
// leads to.
//
// A mask is computed by walking the trie of all tokens' bytes with the automaton. Inside a string
// of a JSON document, this walk covers nearly the whole trie, and it is the same in every string of
// the document; strings differ only in how the text continues after them. So the walk is done once
// for the innermost rule alone, as if nothing were around it. It gives the tokens that stay inside
// the rule, and the trie nodes at which the rule has ended; the few hundred tokens below those
// nodes are then walked from the place that the rule returns to. A text that can be read in many
// ways returns to as many places; that walk starts from all of them together.
//
// In a string with a maximum length, every character leads to a new place for which that work would
// be repeated. So a walk does not enter the nodes below which all texts are allowed up to a number
// of characters (StateSets::open and reach): in a string it visits only quotes, escapes and broken
// characters.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "text/grammar/lru_cache.h"
#include "text/grammar/state_sets.h"
#include "text/grammar/token_trie.h"

namespace snapkv::grammar {

/// A set of tokens: a list if they are few, otherwise one bit for each.
class TokenSet {
 public:
  /// `bits`: one for every token of the vocabulary.
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
  /// The size of all cached masks.
  size_t n_bytes() const { return masks_.n_bytes() + inner_masks_.n_bytes(); }
  /// Sets the bits of the tokens that may follow. `bits` has n_vocab / 64 words, rounded up.
  void add_allowed(int32_t set, std::vector<uint64_t>& bits);

 private:
  /// The tokens that a set allows inside its rule, and the nodes that have children and where the
  /// rule can end.
  struct InnerMask {
    TokenSet tokens;
    std::vector<int32_t> ends;
    size_t n_bytes() const { return tokens.n_bytes() + ends.size() * sizeof(int32_t); }
  };
  /// The frames of a set, grouped by the frame they return to, with that frame replaced by the
  /// bottom. The key is the set of such frames; the value is the sorted list of all frames that the
  /// frames of this key return to.
  using Groups = std::map<int32_t, std::vector<int32_t>>;

  TokenSet compute(int32_t set);
  const InnerMask& inner_mask(int32_t set);
  Groups groups_of(int32_t set);
  /// Nodes [begin, end) of the trie. Their tokens are allowed if at most `most_characters`
  /// characters begin in them.
  struct Run {
    int32_t begin, end;
    int32_t most_characters;
  };
  /// Sets runs_ to the nodes that are allowed after `set`, among the siblings [begin, end) and all
  /// nodes below them. If `ends` is not null, adds the nodes where the text may end to it.
  void walk(int32_t begin, int32_t end, int32_t set, std::vector<int32_t>* ends);
  /// The most characters that an allowed token below node `i` may have; or kAnyNumber, kNone,
  /// kNotDecided. If the node's byte is the first of several in a character, this is about all
  /// tokens that begin with that character. These texts begin at `set`, after `n_before`
  /// characters.
  int32_t decide(int32_t i, int32_t set, int32_t n_before);
  std::vector<uint64_t> bits_of_runs() const;
  void add_run(const Run& run);  // to runs_
  void add_tokens(const Run& run, std::vector<uint64_t>& bits) const;

  const TokenTrie& trie_;
  size_t n_words_;
  StateSets sets_;
  std::vector<uint64_t> all_tokens_;
  std::vector<int32_t> path_;  // the set at each depth of the trie
  std::vector<Run> runs_;      // the result of the last walk, in order
  LruCache<TokenSet> masks_;
  LruCache<InnerMask> inner_masks_;
};

}  // namespace snapkv::grammar
