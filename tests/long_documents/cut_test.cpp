// SPDX-License-Identifier: MIT
#include "long_documents/cut.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace snapkv::long_documents {
namespace {

/// A token for each letter or digit, so that a text says how many it has.
int64_t count_letters(std::string_view text) {
  int64_t n = 0;
  for (const char c : text) n += c > ' ' ? 1 : 0;
  return n;
}

void expect_whole(const std::string& text, const std::vector<TextPart>& parts) {
  size_t end = 0;
  for (const TextPart& part : parts) {
    EXPECT_EQ(part.begin, end) << "a gap, or text twice";
    EXPECT_GT(part.end, part.begin);
    end = part.end;
  }
  EXPECT_EQ(end, text.size());
}

std::vector<std::string> texts_of(const std::string& text, const std::vector<TextPart>& parts) {
  std::vector<std::string> texts;
  for (const TextPart& part : parts)
    texts.push_back(text.substr(part.begin, part.end - part.begin));
  return texts;
}

TEST(CutPieces, AreParagraphs) {
  const std::string text = "One.\ntwo\n\nThree.\n \n\nFour";
  const std::vector<TextPart> pieces = cut_pieces(text, {}, 100, count_letters);
  EXPECT_EQ(texts_of(text, pieces),
            (std::vector<std::string>{"One.\ntwo\n\n", "Three.\n \n\n", "Four"}));
  EXPECT_EQ(pieces[0].n_tokens, 7);
  EXPECT_EQ(pieces[0].first_page, 0);
}

TEST(CutPieces, EndAtPages) {
  const std::string text = "On the first page. On the second.";
  const PageMarks pages = {{0, 1}, {19, 2}};
  const std::vector<TextPart> pieces = cut_pieces(text, pages, 100, count_letters);
  EXPECT_EQ(texts_of(text, pieces),
            (std::vector<std::string>{"On the first page. ", "On the second."}));
  EXPECT_EQ(pieces[0].last_page, 1);
  EXPECT_EQ(pieces[1].first_page, 2);
}

TEST(CutPieces, ALongParagraphIsCutAtSentencesAndALongSentenceAnywhere) {
  const std::string text = "The first sentence is of some length. The second one is not shorter. " +
                           std::string(100, 'x') + "äöü" + std::string(60, 'y');
  const std::vector<TextPart> pieces = cut_pieces(text, {}, 40, count_letters);
  expect_whole(text, pieces);
  EXPECT_EQ(texts_of(text, pieces)[0], "The first sentence is of some length. ");
  for (const TextPart& piece : pieces) {
    EXPECT_LE(piece.n_tokens, 40);
    EXPECT_NE(text[piece.begin] & 0xC0, 0x80) << "in the middle of a character";
  }
}

TEST(CutPieces, NothingIsLostOfAnyText) {
  std::mt19937 random(7);
  const std::string kParts[] = {"a", "b. ", "\n", "\n\n", " ", "é", "\f", "Word", ".\n", "日本。"};
  for (int i = 0; i < 300; ++i) {
    std::string text;
    PageMarks pages;
    for (int k = 0; k < 60; ++k) {
      text += kParts[random() % std::size(kParts)];
      if (random() % 20 == 0) pages.push_back({text.size(), static_cast<int>(pages.size()) + 1});
    }
    const std::vector<TextPart> pieces = cut_pieces(text, pages, 5, count_letters);
    expect_whole(text, pieces);
    expect_whole(text, join_pieces(pieces, 12));
  }
}

std::vector<TextPart> pieces_of(const std::vector<int64_t>& sizes, const std::vector<int>& pages) {
  std::vector<TextPart> pieces;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int page = pages.empty() ? 0 : pages[i];
    pieces.push_back({i, i + 1, sizes[i], page, page});
  }
  return pieces;
}

TEST(JoinPieces, PartsAreFewAndAboutEqual) {
  const std::vector<TextPart> parts = join_pieces(pieces_of(std::vector<int64_t>(25, 10), {}), 100);
  ASSERT_EQ(parts.size(), 3u);
  for (const TextPart& part : parts) {
    EXPECT_GE(part.n_tokens, 70);
    EXPECT_LE(part.n_tokens, 100);
  }
  EXPECT_EQ(join_pieces(pieces_of({10, 20}, {}), 100).size(), 1u);
  EXPECT_TRUE(join_pieces({}, 100).empty());
}

TEST(JoinPieces, EndBeforeAPageThatBeginsNearTheEnd) {
  // parts of at most 56: the page that begins after 45 tokens is the better end
  const std::vector<TextPart> parts =
      join_pieces(pieces_of({15, 15, 15, 10, 15, 15, 15}, {1, 1, 1, 2, 2, 2, 2}), 60);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].n_tokens, 45);
  EXPECT_EQ(parts[0].last_page, 1);
  EXPECT_EQ(parts[1].first_page, 2);
}

TEST(Pages, AreFoundByBytes) {
  PageMarks marks;
  add_pages(marks, {0, 10, 10, 20}, 5);
  EXPECT_EQ(page_at(marks, 0), 0);
  EXPECT_EQ(page_at(marks, 5), 1);
  EXPECT_EQ(page_at(marks, 14), 1);
  EXPECT_EQ(page_at(marks, 15), 3) << "the second one is empty";
  EXPECT_EQ(page_at(marks, 99), 4);
  add_pages(marks, {}, 100);  // a document without pages
  EXPECT_EQ(page_at(marks, 100), 0);
  EXPECT_EQ(page_text(3, 3), "page 3");
  EXPECT_EQ(page_text(3, 5), "pages 3-5");
  EXPECT_EQ(page_text(0, 0), "");
}

}  // namespace
}  // namespace snapkv::long_documents
