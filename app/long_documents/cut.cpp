// SPDX-License-Identifier: MIT
#include "long_documents/cut.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "snapkv/sources.h"

namespace snapkv::long_documents {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\f\v";

/// Where the paragraph that begins at `begin` ends: after the empty lines that follow it.
size_t paragraph_end(std::string_view text, size_t begin) {
  for (size_t at = text.find('\n', begin); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    const size_t next = std::min(text.find_first_not_of(kWhiteSpace, at), text.size());
    const std::string_view blank = text.substr(at, next - at);
    if (next == text.size() || std::count(blank.begin(), blank.end(), '\n') > 1) return next;
  }
  return text.size();
}

/// Where the first page after `begin` begins; the text's end if there is none.
size_t next_page(std::span<const PageMark> pages, size_t begin, size_t size) {
  const auto next = std::upper_bound(pages.begin(), pages.end(), begin,
                                     [](size_t at, const PageMark& m) { return at < m.begin; });
  return next == pages.end() ? size : std::min(next->begin, size);
}

class PieceCutter {
 public:
  PieceCutter(std::string_view text, std::span<const PageMark> pages, int64_t most,
              const CountTokens& count)
      : text_(text), pages_(pages), most_(most), count_(count) {}

  std::vector<TextPart> cut() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end =
          std::min(paragraph_end(text_, begin), next_page(pages_, begin, text_.size()));
      add(begin, end);
      begin = end;
    }
    return std::move(pieces_);
  }

 private:
  void add(size_t begin, size_t end) {
    const int64_t n = count_(text_.substr(begin, end - begin));
    if (n <= most_) return push(begin, end, n);
    const std::vector<ByteRange> sentences = split_sentences(text_.substr(begin, end - begin));
    if (sentences.size() < 2) return halve(begin, end);
    for (size_t i = 0; i < sentences.size(); ++i) {
      const size_t first = i == 0 ? begin : begin + sentences[i].begin;
      const size_t last = i + 1 == sentences.size() ? end : begin + sentences[i + 1].begin;
      const int64_t n_of_it = count_(text_.substr(first, last - first));
      if (n_of_it <= most_) {
        push(first, last, n_of_it);
      } else {
        halve(first, last);
      }
    }
  }

  /// Divides what has no sentences, between two characters.
  void halve(size_t begin, size_t end) {
    const int64_t n = count_(text_.substr(begin, end - begin));
    size_t middle = begin + (end - begin) / 2;
    while (middle > begin && (text_[middle] & 0xC0) == 0x80) --middle;
    if (n <= most_ || middle == begin) return push(begin, end, n);
    halve(begin, middle);
    halve(middle, end);
  }

  void push(size_t begin, size_t end, int64_t n_tokens) {
    const std::string_view piece = text_.substr(begin, end - begin);
    const size_t last = std::min(piece.find_last_not_of(kWhiteSpace), piece.size());
    pieces_.push_back({begin, end, n_tokens, page_at(pages_, begin),
                       page_at(pages_, begin + (last == piece.size() ? 0 : last))});
  }

  const std::string_view text_;
  const std::span<const PageMark> pages_;
  const int64_t most_;
  const CountTokens& count_;
  std::vector<TextPart> pieces_;
};

TextPart joined(std::span<const TextPart> pieces) {
  TextPart part = pieces.front();
  part.end = pieces.back().end;
  part.last_page = pieces.back().last_page;
  part.n_tokens = 0;
  for (const TextPart& piece : pieces) part.n_tokens += piece.n_tokens;
  return part;
}

}  // namespace

std::vector<TextPart> cut_pieces(std::string_view text, std::span<const PageMark> pages,
                                 int64_t most_tokens, const CountTokens& count) {
  return PieceCutter(text, pages, most_tokens, count).cut();
}

std::vector<TextPart> join_pieces(const std::vector<TextPart>& pieces, int64_t most_tokens) {
  SNAPKV_CHECK(most_tokens > 0);
  int64_t n_all = 0;
  for (const TextPart& piece : pieces) n_all += piece.n_tokens;
  const int64_t n_parts = std::max<int64_t>(1, (n_all + most_tokens - 1) / most_tokens);
  // an eighth more than an equal share, so that uneven pieces do not make one part more
  const int64_t share = (n_all + n_parts - 1) / n_parts;
  const int64_t limit = std::min(most_tokens, share + share / 8);
  std::vector<TextPart> parts;
  size_t first = 0, page = 0;  // pieces: the first of the part, and where a late page begins in it
  int64_t n = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool begins_page = i > 0 && pieces[i].first_page != pieces[i - 1].first_page;
    if (begins_page && n >= limit - limit / 4) page = i;
    if (i > first && n + pieces[i].n_tokens > limit) {
      const size_t end = page > first ? page : i;
      parts.push_back(joined(std::span(pieces).subspan(first, end - first)));
      first = end;
      n = 0;
      for (size_t k = first; k < i; ++k) n += pieces[k].n_tokens;
    }
    n += pieces[i].n_tokens;
  }
  if (first < pieces.size()) parts.push_back(joined(std::span(pieces).subspan(first)));
  return parts;
}

}  // namespace snapkv::long_documents
