// SPDX-License-Identifier: MIT
// What is read of a document that is longer than the context: its beginning, the passages that
// share rare words with the question, or all of it in parts that fit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "long_documents/cut.h"
#include "long_documents/pages.h"

namespace snapkv::long_documents {

/// What a user asks for (--long).
enum class LongMode { automatic, first, parts, refuse };
/// "auto", "first", "parts" or "refuse"; nothing for other words.
std::optional<LongMode> long_mode(std::string_view name);
/// "auto, first, parts or refuse", for messages.
inline constexpr const char* kLongModes = "auto, first, parts or refuse";

/// What is done.
enum class Way { first, passages, parts };
const char* name(Way way);

struct LongDocument {
  std::string_view text = {};
  std::span<const PageMark> pages = {};
  std::span<const DocumentMark> documents = {};
};

/// Tokens that there are for the document in a prompt.
struct Room {
  int64_t n_once = 0;  ///< beside the question and the answer
  int64_t n_part = 0;  ///< beside what is asked of a part, and its answer
};

struct LongPlan {
  Way way = Way::first;
  int64_t n_document = 0;  ///< tokens of the document, about
  int64_t n_read = 0;      ///< those that are read, once each
  /// In the document's order. Way::first: its beginning, one part; Way::parts: all of it;
  /// Way::passages: those that are read, together.
  std::vector<TextPart> parts;
  /// The whole document as passages, about equally long, from which excerpts are made.
  std::vector<TextPart> passages;
  std::vector<double> scores;  ///< of these passages, by Bm25
  std::vector<std::string>
      words;  ///< words of the question, as written, that are rare in the document
};

/// The most tokens of the passages that are read at once, and of a part: small models find less in
/// longer texts, and a long text takes more time for each token.
inline constexpr int64_t kMostPassageTokens = 4096, kMostPartTokens = 8192;
/// About the length of a passage.
inline constexpr int64_t kPassageTokens = 200;

/// Decides. LongMode::automatic reads passages where words of the question are rare in the document
/// and occur in it, else parts. `mode` is not LongMode::refuse. Throws kContextExceeded where the
/// room is too small for anything.
LongPlan plan_reading(const LongDocument& document, std::string_view question, LongMode mode,
                      const Room& room, const CountTokens& count);

/// What is left of `room` tokens after a reading that was `excess` tokens too long. It is at least
/// three quarters, since a shorter text has fewer tokens too many as well.
int64_t less_room(int64_t room, int64_t excess);

/// plan_reading() with less room as long as `excess` says by how many tokens the longest reading of
/// a plan is too long: a text may have more tokens than its pieces, one by one.
LongPlan plan_that_fits(const LongDocument& document, std::string_view question, LongMode mode,
                        Room room, const CountTokens& count,
                        const std::function<int64_t(const LongPlan&)>& excess);

/// Indices of passages, in the document's order: the best ones that have `most_tokens` together.
/// Passages without a score are left out.
std::vector<size_t> best_passages(const std::vector<TextPart>& passages,
                                  const std::vector<double>& scores, int64_t most_tokens);

}  // namespace snapkv::long_documents
