// SPDX-License-Identifier: MIT
// The rules of SpmTokenizer, each on a vocabulary made for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "base/cpu_timer.h"
#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/spm_vocab.h"

namespace snapkv {
namespace {

using test::GgufWriter;
using test::SpmVocab;
using Ids = std::vector<int32_t>;

constexpr int32_t kBos = 1;
constexpr int32_t kEos = 2;
constexpr int32_t kByte0 = 3;  // the id of <0x00>

std::unique_ptr<Tokenizer> make(const SpmVocab& vocab, GgufWriter writer = GgufWriter()) {
  const auto bytes = vocab.write_to(writer).bytes();
  return Tokenizer::from_gguf(GgufFile::parse(bytes, "vocab"));
}

/// Has a space, "ab" (the better score) and "bc", so that "abc" can merge in two ways.
struct Abc : SpmVocab {
  int32_t space = add("\xe2\x96\x81", -9);
  int32_t a = add("a", -9), b = add("b", -9), c = add("c", -9);
  int32_t ab = add("ab", -1), bc = add("bc", -2);
  int32_t space_ab =
      add("\xe2\x96\x81"
          "ab",
          -3);
};

TEST(SpmTest, BestScoreMergesFirstThenTheLeftmost) {
  Abc v;
  const int32_t aa = v.add("aa", -4);
  const auto t = make(v);
  EXPECT_EQ(t->encode("abc", false, false), (Ids{v.space_ab, v.c}));
  EXPECT_EQ(t->encode("bc", false, false), (Ids{v.space, v.bc}));
  EXPECT_EQ(t->encode("aaa", false, false), (Ids{v.space, aa, v.a}));
  EXPECT_EQ(t->encode("aaab", false, false), (Ids{v.space, aa, v.ab}));
}

TEST(SpmTest, MergesGoThroughPiecesOnly) {
  SpmVocab v;
  const int32_t space = v.add("\xe2\x96\x81", -9);
  const int32_t x = v.add("x", -9), y = v.add("y", -9);
  v.add("xyx", -1);  // cannot form: neither "xy" nor "yx" is a piece
  const auto t = make(v);
  EXPECT_EQ(t->encode("xyx", false, false), (Ids{space, x, y, x}));
}

// The longest user-defined piece at each place, from the left; it is spelled as pieces are, and
// takes no space before what follows.
TEST(SpmTest, UserDefinedPiecesAreCutOutFirst) {
  Abc v;
  const int32_t abca = v.add("abca", 0);
  const int32_t cabcb = v.add("cabcb", 0);
  const int32_t spaces = v.add("\u2581\u2581", 0);
  const std::vector<int32_t> ids = {cabcb, abca, spaces, abca};
  const auto t = make(v, GgufWriter().add("snapkv.tokenizer.user_defined_pieces", ids));
  EXPECT_EQ(t->encode("acabcb", false, false), (Ids{v.space, v.a, cabcb}));
  EXPECT_EQ(t->encode("abcabcb", false, false), (Ids{v.space, abca, v.bc, v.b}));
  EXPECT_EQ(t->encode(" ab", false, false), (Ids{spaces, v.ab}));
  EXPECT_EQ(t->encode("abca", false, false), (Ids{v.space, abca}));
  EXPECT_EQ(t->decode(Ids{spaces, v.ab}, false), " ab");
  const auto expect_refused = [&](int32_t id) {
    const std::vector<int32_t> wrong = {id};
    test::expect_error(
        ErrorCode::kBadModel,
        {"'vocab': metadata key 'snapkv.tokenizer.user_defined_pieces' holds ", "below 266"},
        [&] { make(Abc(), GgufWriter().add("snapkv.tokenizer.user_defined_pieces", wrong)); });
  };
  expect_refused(-1);
  expect_refused(static_cast<int32_t>(Abc().tokens.size()));
}

TEST(SpmTest, SpacePrefixAndSpecialsByMetadata) {
  const Abc v;
  const auto defaults = make(v);
  EXPECT_TRUE(defaults->special().add_bos);
  EXPECT_FALSE(defaults->special().add_eos);
  EXPECT_EQ(defaults->encode("ab", true, false), (Ids{kBos, v.space_ab}));
  EXPECT_EQ(defaults->encode("ab", false, false), (Ids{v.space_ab}));
  EXPECT_EQ(defaults->encode(" ab", true, false), (Ids{kBos, v.space, v.space_ab}));
  EXPECT_EQ(defaults->encode("", true, false), (Ids{kBos})) << "nothing gets no space";

  GgufWriter w;
  w.add("tokenizer.ggml.add_bos_token", false).add("tokenizer.ggml.add_eos_token", true);
  w.add("tokenizer.ggml.add_space_prefix", false);
  const auto t = make(v, w);
  EXPECT_EQ(t->encode("ab", true, false), (Ids{v.ab, kEos}));
  EXPECT_EQ(t->encode("ab", false, false), (Ids{v.ab}));
  EXPECT_EQ(t->decode(Ids{v.space_ab}), " ab") << "no prefix was added, none is removed";
  EXPECT_EQ(defaults->decode(Ids{v.space_ab}), "ab");
  EXPECT_EQ(defaults->decode(Ids{kBos, v.space_ab, v.space_ab}), "ab ab");
}

TEST(SpmTest, ControlTokensAreTextUnlessParsed) {
  Abc v;
  const int32_t x = v.add_with_prefixes("<s", -5);  // "<" and "<s": "<s>" could merge
  v.add(">", -9);
  const auto t = make(v);
  const auto as_text = t->encode("<s>", false, false);
  EXPECT_EQ(as_text.size(), 3u) << "space, '<s', '>'";
  EXPECT_EQ(as_text[1], x);
  EXPECT_EQ(t->decode(as_text), "<s>");
  EXPECT_EQ(t->encode("<s>", false, true), (Ids{kBos}));
  // As in llama.cpp, a space is also added before the text after every special token.
  EXPECT_EQ(t->encode("ab<s>ab</s></s>ab", false, true),
            (Ids{v.space_ab, kBos, v.space_ab, kEos, kEos, v.space_ab}));
  EXPECT_EQ(t->encode("<unk>ab", true, true), (Ids{kBos, 0, v.space_ab}));
  // Text that spells the name of a byte token never becomes that token.
  const auto spelled = t->encode("<0x41>", false, true);
  EXPECT_EQ(std::count(spelled.begin(), spelled.end(), kByte0 + 0x41), 0);
  EXPECT_EQ(t->decode(spelled), "<0x41>");
}

TEST(SpmTest, UserDefinedTokensAreCutOutAlways) {
  Abc v;
  const int32_t long_one = v.add("bca", 0, SpmVocab::kUserDefined);
  const int32_t tabs = v.add("\t\t", 0, SpmVocab::kUserDefined);
  const int32_t three = v.add("\t\t\t", 0, SpmVocab::kUserDefined);
  const auto t = make(v);
  for (const bool parse_special : {false, true}) {
    EXPECT_EQ(t->encode("abca", false, parse_special), (Ids{v.space, v.a, long_one}));
    EXPECT_EQ(t->encode("\t\t\t\t\t", false, parse_special), (Ids{three, tabs}));
  }
  EXPECT_EQ(t->decode(Ids{three, tabs}), "\t\t\t\t\t");
}

TEST(SpmTest, Phi3DropsWhiteSpaceAfterSpecialTokens) {
  Abc v;
  const int32_t user = v.add("<|user|>", 0, SpmVocab::kControl);
  const auto t = make(v, GgufWriter().add("general.name", "Phi-3 Mini"));
  EXPECT_EQ(t->encode("<|user|> \n\tab", false, true), (Ids{user, v.space_ab}));
  EXPECT_EQ(t->encode("<|user|> \n", false, true), (Ids{user}));
  EXPECT_EQ(t->encode("<s> ab", false, true), (Ids{kBos, v.space, v.space_ab}));
  const auto other = make(v);
  EXPECT_EQ(other->encode("<|user|> ab", false, true), (Ids{user, v.space, v.space_ab}));
}

TEST(SpmTest, BytesSpellWhatHasNoToken) {
  const Abc v;
  const auto t = make(v);
  const auto ids = t->encode("a\xc3\xa9", false, false);
  EXPECT_EQ(ids, (Ids{v.space, v.a, kByte0 + 0xc3, kByte0 + 0xa9}));
  EXPECT_EQ(t->piece(kByte0 + 0xc3), "\xc3");
  EXPECT_EQ(t->decode(ids), "a\xc3\xa9");
  const std::string nul("a\0b", 3);
  EXPECT_EQ(t->encode(nul, false, false), (Ids{v.space, v.a, kByte0, v.b}));
  EXPECT_EQ(t->decode(t->encode(nul, false, false)), nul);
}

TEST(SpmTest, AnyBytesComeBack) {
  Abc v;
  v.add("\xc3\xa9", -4);
  v.add("\xe2\x96\x81\xc3\xa9", -5);
  const auto t = make(v);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 40; n > 0; --n) {
      constexpr unsigned char kBytes[] = {' ', 'a', 'b', 'c', 0xc3, 0xa9, 0xe2, 0x96, 0xf0, 0xff};
      text += static_cast<char>(random() % 3 == 0 ? random() : kBytes[random() % 10]);
    }
    if (text.find("\xe2\x96\x81") != std::string::npos) continue;  // decodes to a space
    ASSERT_EQ(t->decode(t->encode(text, true, false)), text);
  }
}

TEST(SpmTest, UnknownTokenWhereThereAreNoBytes) {
  SpmVocab v(/*with_bytes=*/false);
  const int32_t space = v.add("\xe2\x96\x81", -1);
  const int32_t x = v.add("\xc3", -1);  // a piece of one byte stands for that byte
  const auto t = make(v);
  EXPECT_EQ(t->encode("\xc3\xa9", false, false), (Ids{space, x, 0}));
  EXPECT_EQ(t->piece(0), "");
  EXPECT_EQ(t->piece(0, true), "<unk>");
}

TEST(SpmTest, PiecesAndRange) {
  const Abc v;
  const auto t = make(v);
  EXPECT_EQ(t->n_vocab(), static_cast<int64_t>(v.tokens.size()));
  EXPECT_EQ(t->piece(v.space_ab), " ab");
  EXPECT_EQ(t->piece(kBos), "");
  EXPECT_EQ(t->piece(kBos, true), "<s>");
  EXPECT_EQ(t->decode(Ids{kBos, v.ab, kEos}, true), "<s>ab</s>");
  EXPECT_FALSE(t->is_end_of_generation(-1));
  EXPECT_FALSE(t->is_end_of_generation(1 << 20));
}

TEST(SpmTest, EndsOfGeneration) {
  Abc v;
  const auto plain = make(v);
  EXPECT_TRUE(plain->is_end_of_generation(kEos));
  EXPECT_FALSE(plain->is_end_of_generation(kBos));
  EXPECT_FALSE(plain->is_end_of_generation(v.ab));
  EXPECT_EQ(plain->special().eot, -1);

  const int32_t im_end = v.add("<|im_end|>", 0, SpmVocab::kUserDefined);  // the wrong type
  const int32_t eot = v.add("<|eot_id|>", 0, SpmVocab::kControl);
  const int32_t other = v.add("<over>", 0, SpmVocab::kControl);
  const auto t = make(v);
  EXPECT_EQ(t->special().eot, eot);
  EXPECT_TRUE(t->is_end_of_generation(eot));
  EXPECT_TRUE(t->is_end_of_generation(im_end));
  EXPECT_EQ(t->piece(im_end), "") << "hidden from output";
  EXPECT_EQ(t->encode("<|im_end|>", false, false).size(), 11u) << "and plain text unless parsed";
  EXPECT_FALSE(t->is_end_of_generation(other));

  GgufWriter w;
  w.add("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(other));
  w.add("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(v.ab));
  w.add("tokenizer.ggml.padding_token_id", ~uint32_t{0});  // the value converters write for "none"
  const auto named = make(v, w);
  EXPECT_EQ(named->special().eot, other);
  EXPECT_EQ(named->special().eos, v.ab);
  EXPECT_EQ(named->special().pad, -1);
  EXPECT_TRUE(named->is_end_of_generation(other));
  EXPECT_TRUE(named->is_end_of_generation(v.ab));
  EXPECT_TRUE(named->is_end_of_generation(eot));
  EXPECT_TRUE(named->is_end_of_generation(kEos)) << "'</s>' ends one whatever else does";
}

// A text that has no place to cut must not take quadratic time. 512 kB take a fraction of a second;
// quadratic time would be many minutes, so the limit also holds on a busy machine with sanitizers.
TEST(SpmTest, LongTextsWithoutCutsAreFast) {
  SpmVocab v;
  for (int n = 1; n <= 16; n *= 2) {
    v.add(std::string(static_cast<size_t>(n), 'a'), -1.0f / static_cast<float>(n));
  }
  for (const char* piece : {"\xe2\x96\x81", "ab", "ba", "b"}) v.add(piece, -3);
  const auto t = make(v);
  std::string text(1 << 19, 'a');
  for (size_t i = 0; i < text.size(); i += 37) text[i] = 'b';
  const CpuTimer timer;
  const auto ids = t->encode(text, false, false);
  EXPECT_LT(timer.seconds(), 30);
  EXPECT_EQ(t->decode(ids), text);
}

}  // namespace
}  // namespace snapkv
