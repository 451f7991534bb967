// SPDX-License-Identifier: MIT
// TextStream: makes text of a model's pieces as they come: whole UTF-8 characters only, ended by
// stop strings that may lie across pieces.
//
//   snapkv::TextStream stream({"\nUser:", "###"});
//   while (!stream.stopped()) {
//     ... std::cout << stream.push(model->piece(id));
//   }
//   std::cout << stream.finish();
//
// A piece may end in the middle of a character; its bytes are held back until the character is
// whole. Bytes that cannot become part of one are U+FFFD: one for each longest beginning of a
// character that breaks off, as in the Unicode standard (section 3.9, "U+FFFD Substitution of
// Maximal Subparts"), and at finish() for what is held back then.
//
// Text that may be the beginning of a stop string is held back until it is known not to be one. The
// text ends before the first stop string to be complete; of those that are complete with the same
// character, before the longest. All of this depends on the bytes alone, not on how they are cut
// into pieces, and takes time in proportion to their number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/error.h"

namespace snapkv {

class TextStream {
 public:
  /// Throws kUsage for a stop string that is empty or not valid UTF-8.
  explicit TextStream(std::vector<std::string> stops = {});

  /// The text that is certain after these bytes: valid UTF-8, without what push() returned before.
  /// Nothing once it has stopped.
  std::string push(std::string_view bytes);
  /// What is held back, at the end of the answer. Nothing may be pushed after it.
  std::string finish();

  bool stopped() const { return stopped_; }
  /// The stop string that was found; empty before.
  const std::string& stop() const { return stop_; }

 private:
  struct Pattern {
    std::string text;
    /// [text.size()]: for each prefix of `text`, how long its longest proper prefix is that also
    /// ends it (Knuth, Morris and Pratt's table).
    std::vector<size_t> border;
    size_t matched = 0;  // bytes of `text` that end the text so far
  };

  /// The whole characters of bytes_ and `bytes`; what may become one with later bytes stays in
  /// bytes_, or at the end of the answer is replaced.
  std::string decode(std::string_view bytes, bool at_end);
  /// What is certain of held_ and `text`; stops at the first stop string.
  std::string search(std::string text);

  std::vector<Pattern> patterns_;
  std::string bytes_;  // the beginning of a character
  std::string held_;   // text that may be the beginning of a stop string
  bool stopped_ = false;
  std::string stop_;
};

}  // namespace snapkv
