// SPDX-License-Identifier: MIT
// UnigramTokenizer is compared with SentencePiece: a model is trained here, with its table of
// replacements (NFKC), and both load it. Also the checks of that table.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "format/gguf.h"
#include "snapkv/tokenizer.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "text/chars_map.h"

namespace snapkv {
namespace {

using test::ByteWriter;
using test::expect_error;
using test::GgufWriter;

/// A field of a message in protobuf's wire format.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      // for a varint
  std::string_view bytes;  // for a string, a message or a float
};

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; !message.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message[0]);
      message.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (!message.empty()) {
    const uint64_t tag = varint();
    Field field;
    field.number = tag >> 3;
    const uint64_t type = tag & 7;
    if (type == 0) {
      field.value = varint();
    } else {
      const size_t n = type == 5 ? 4 : type == 1 ? 8 : varint();
      field.bytes = message.substr(0, n);
      message.remove_prefix(n);
    }
    fields.push_back(field);
  }
  return fields;
}

/// Trains a model on this repository's documents.
std::string train() {
  const std::string folder = testing::TempDir() + "/snapkv_unigram";
  std::filesystem::create_directories(folder);
  {
    std::ofstream corpus(folder + "/corpus.txt");
    for (const char* name : {"README.md", "docs/architecture.md", "docs/policies.md"}) {
      corpus << std::ifstream(std::string(SNAPKV_SOURCE_DIR) + "/" + name).rdbuf() << '\n';
    }
    corpus << "Gr\xc3\xb6\xc3\x9f"
              "e na\xc3\xafve caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac\n";
  }
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + folder +
          "/corpus.txt --model_type=unigram --vocab_size=600 "
          "--character_coverage=0.999 --normalization_rule_name=nmt_nfkc --minloglevel=2 "
          "--num_threads=1",
      nullptr, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

GgufWriter gguf_of(const std::string& model) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::vector<int8_t> table;
  for (const Field& field : fields_of(model)) {
    if (field.number == 1) {  // a piece
      tokens.emplace_back();
      scores.push_back(0);
      types.push_back(1);
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 1) tokens.back() = part.bytes;
        if (part.number == 2) std::memcpy(&scores.back(), part.bytes.data(), 4);
        if (part.number == 3) types.back() = static_cast<int32_t>(part.value);
      }
    } else if (field.number == 3) {  // the normalizer
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 2) table.assign(part.bytes.begin(), part.bytes.end());
      }
    }
  }
  EXPECT_GT(table.size(), 1000u);
  GgufWriter w;
  w.add("tokenizer.ggml.model", "t5").add("tokenizer.ggml.tokens", tokens);
  w.add("tokenizer.ggml.scores", scores).add("tokenizer.ggml.token_type", types);
  w.add("tokenizer.ggml.precompiled_charsmap", table);
  w.add("tokenizer.ggml.add_space_prefix", true);
  w.add("tokenizer.ggml.remove_extra_whitespaces", true);
  w.add("tokenizer.ggml.unknown_token_id", uint32_t{0});
  w.add("tokenizer.ggml.eos_token_id", uint32_t{2});
  return w;
}

std::string random_text(std::mt19937& random) {
  const char* const kParts[] = {"the",
                                " cache",
                                " of ",
                                "budget",
                                ".",
                                ", ",
                                "  ",
                                "\n",
                                "42",
                                "SnapKV",
                                ("Gr\xc3\xb6\xc3\x9f"
                                 "e"),
                                "\xef\xac\x81",
                                "\xe2\x91\xa0",
                                "\xef\xbc\xa1",
                                "e\xcc\x81",
                                "\xe6\x97\xa5",
                                "\xf0\x9f\x9a\x80",
                                "\xc2\xa0",
                                "\xe3\x80\x80",
                                "q",
                                "zx"};
  std::string text;
  for (auto n = random() % 25; n > 0; --n) text += kParts[random() % std::size(kParts)];
  return text;
}

TEST(UnigramTest, IdsAreSentencePieces) {
  const std::string model = train();
  ASSERT_FALSE(model.empty());
  sentencepiece::SentencePieceProcessor oracle;
  ASSERT_TRUE(oracle.LoadFromSerializedProto(model).ok());
  const auto bytes = gguf_of(model).bytes();
  const auto tokenizer = Tokenizer::from_gguf(GgufFile::parse(bytes, "trained"));
  EXPECT_EQ(tokenizer->description(), "SentencePiece Unigram");
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_text(random);
    std::vector<int> expected;
    ASSERT_TRUE(oracle.Encode(text, &expected).ok());
    ASSERT_EQ(tokenizer->encode(text, false, false), expected) << "'" << text << "'";
    std::string decoded;
    ASSERT_TRUE(oracle.Decode(expected, &decoded).ok());
    const bool unknown = std::count(expected.begin(), expected.end(), 0) > 0;
    if (unknown) continue;
    ASSERT_EQ(tokenizer->decode(expected), decoded) << "'" << text << "'";
  }
  EXPECT_EQ(tokenizer->encode("x", true, false).back(), 2) << "T5 ends texts with EOS";
}

std::string table(const std::vector<uint32_t>& trie, std::string_view replacements) {
  ByteWriter w;
  w.put(static_cast<uint32_t>(4 * trie.size()));
  for (const uint32_t node : trie) w.put(node);
  std::string out(reinterpret_cast<const char*>(w.bytes().data()), w.bytes().size());
  return out.append(replacements);
}

TEST(CharsMapTest, ReplacesTheLongestBeginning) {
  // "a" and "ab" are replaced: root -> 'a' at base ^ 'a', and its value at node ^ base.
  std::vector<uint32_t> trie(512, 0);
  const auto node = [](uint32_t base, uint32_t label, bool leaf) {
    return base << 10 | (leaf ? 1u << 8 : 0) | label;
  };
  trie[0] = node(0x100, 0, false);
  const uint32_t a = 0x100 ^ 'a';
  trie[a] = node(0x80, 'a', true);
  trie[a ^ 0x80] = 1u << 31 | 0;
  const uint32_t ab = a ^ 0x80 ^ 'b';
  trie[ab] = node(0x18, 'b', true);
  trie[ab ^ 0x18] = 1u << 31 | 2;
  const CharsMap map(table(trie, std::string("X\0YZ\0", 5)), "test");
  EXPECT_EQ(map.find("ac").text, "X");
  EXPECT_EQ(map.find("ac").length, 1u);
  EXPECT_EQ(map.find("abc").text, "YZ");
  EXPECT_EQ(map.find("abc").length, 2u);
  EXPECT_EQ(map.find("b").length, 0u);
  EXPECT_EQ(map.find("").length, 0u);
  EXPECT_EQ(CharsMap().find("a").length, 0u);
}

TEST(CharsMapTest, DamagedTablesAreErrors) {
  const auto make = [](const std::string& bytes) { CharsMap(bytes, "the-table"); };
  const std::string good = table({0}, std::string("\0", 1));
  make(good);
  for (const std::string& bad :
       {good.substr(0, 3), good.substr(0, 8), table({0}, "x"), table({}, std::string("\0", 1)),
        std::string("\x07\0\0\0abcdefg\0", 12),
        std::string("\xff\xff\xff\xff"
                    "abcdefg\0",
                    12)}) {
    expect_error(ErrorCode::kBadModel, {"the-table"}, [&] { make(bad); });
  }
  const CharsMap outside(table({0xfffu << 10}, std::string("\0", 1)), "the-table");
  expect_error(ErrorCode::kBadModel, {"the-table", "node"}, [&] { outside.find("a"); });
}

}  // namespace
}  // namespace snapkv
