// SPDX-License-Identifier: MIT
// TextStream: turns a model's pieces into text as they arrive: whole UTF-8 characters only, ended
// by stop strings that may span pieces.
//
//   snapkv::TextStream stream({"\nUser:", "###"});
//   while (!stream.stopped()) {
//     ... std::cout << stream.push(model->piece(id));
//   }
//   std::cout << stream.finish();
//
// A piece may end in the middle of a character; its bytes are held back until the character is
// complete. Bytes that cannot become part of a character are replaced by U+FFFD: one for each
// longest beginning of a character that breaks off, as in the Unicode standard (section 3.9,
// "U+FFFD Substitution of Maximal Subparts"). finish() does the same with bytes that are still held
// back.
//
// Text that may be the beginning of a stop string is held back until it is known not to be one. The
// text ends before the first stop string that is complete; if several are complete at the same
// character, before the longest. All of this depends on the bytes alone, not on how they are
// divided into pieces, and takes time proportional to their number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/error.h"

namespace snapkv {

class TextStream {
 public:
  /// Throws kUsage if a stop string is empty or not valid UTF-8.
  explicit TextStream(std::vector<std::string> stops = {});

  /// The text that is certain after these bytes: valid UTF-8, without what push() returned before.
  /// Empty once a stop string was found.
  std::string push(std::string_view bytes);
  /// The text that is still held back at the end of the answer. Do not call push() after it.
  std::string finish();

  bool stopped() const { return stopped_; }
  /// The stop string that was found; empty until then.
  const std::string& stop() const { return stop_; }

 private:
  struct Pattern {
    std::string text;
    /// [text.size()]: for each prefix of `text`, the length of its longest proper prefix that is
    /// also its suffix (Knuth, Morris and Pratt's table).
    std::vector<size_t> border;
    size_t matched = 0;  // bytes of `text` that the text so far ends with
  };

  /// The whole characters of bytes_ and `bytes`. Bytes that may become a character with later ones
  /// stay in bytes_; at the end of the answer they are replaced.
  std::string decode(std::string_view bytes, bool at_end);
  /// The text of held_ and `text` that is certain; stops at the first stop string.
  std::string search(std::string text);

  std::vector<Pattern> patterns_;
  std::string bytes_;  // the beginning of a character
  std::string held_;   // text that may be the beginning of a stop string
  bool stopped_ = false;
  std::string stop_;
};

}  // namespace snapkv
