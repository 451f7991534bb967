// SPDX-License-Identifier: MIT
// Runs the fuzz targets of tokenizers without a fuzzer, on valid inputs, on thousands of mutations
// of them from a fixed seed, and on every file of their corpora (seeds, and inputs that once
// failed). Each input has a time limit.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/cpu_timer.h"
#include "tests/fuzz/hostile_tokenizer.h"

namespace snapkv {
namespace {

using Bytes = std::vector<std::byte>;
using Use = bool (*)(std::span<const std::byte>);

Bytes bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

std::vector<Bytes> vocabularies() {
  const std::string space = "\xe2\x96\x81";
  const std::string text = "abc abab <x></s>\n\n don't 1234 \xc3\xa9\xff \xe4\xb8\xad";
  std::vector<Bytes> all;
  for (const uint8_t pre : {0, 9, 33, 60}) {
    all.push_back(test::hostile_vocabulary(1, pre, 1,
                                           {{3, "<s>"},
                                            {1, "ab"},
                                            {1, "abc"},
                                            {4, "<x>"},
                                            {1,
                                             "\xc4\xa0"
                                             "ab"},
                                            {1, "12"}},
                                           {"a b", "ab c", "\xc4\xa0 ab", "1 2", "b c"}, text));
  }
  all.push_back(test::hostile_vocabulary(
      0, 0, 3, {{2, "<unk>"}, {3, "<s>"}, {3, "</s>"}, {1, space}, {1, "ab"}, {4, "<x>"}}, {},
      text));
  all.push_back(test::hostile_vocabulary(
      2, 0, 1, {{3, "<s>"}, {1, space}, {1, "ab"}, {1, "a"}, {1, "b"}, {1, "\n\n"}}, {"a b"},
      text));
  all.push_back(test::hostile_vocabulary(
      3, 0, 1, {{3, "<s>"}, {1, "\\n\\n"}, {1, "ab"}, {1, "aba"}, {1, "\\xc3\\xa9"}, {4, "<x>"}},
      {}, text));
  return all;
}

std::vector<Bytes> files() {
  const std::string bpe =
      R"({"model":{"type":"BPE","unk_token":"<u>","fuse_unk":true,"byte_fallback":true,"vocab":
{"<u>":0,"a":1,"b":2,"ab":3,"<0x0A>":4,"_":5},"merges":["a b"]},"added_tokens":[{"id":0,
"content":"<u>","special":true},{"id":6,"content":"<x>","lstrip":true,"single_word":true}],)";
  const std::string text = std::string(1, '\0') + "ab abab <x> \n \xc3\xa9\xff";
  return {
      bytes_of(bpe + R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":
"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]},"decoder":
{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":
"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}})" +
               text),
      bytes_of(bpe +
               R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":
{"Regex":"\\s+|[^\\r\\n\\p{L}]?\\p{L}+(?i:'s)?"},"behavior":"MergedWithNext","invert":false},{"type":
"Digits","individual_digits":true},{"type":"ByteLevel"}]},"decoder":{"type":"ByteLevel"},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<u>"}},{"Sequence":
{"id":"A"}}],"special_tokens":{"<u>":{"ids":[0]}}}})" +
               text),
      bytes_of(R"({"model":{"type":"Unigram","unk_id":0,"byte_fallback":false,"vocab":[["<u>",0],
["a",-1.5],["ab",-2],["_",-3e0]]},"pre_tokenizer":{"type":"Metaspace","replacement":"_"},"decoder":
{"type":"Metaspace","replacement":"_"}})" +
               text)};
}

void mutate(Bytes& bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t at = below(bytes.size());
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto n = static_cast<std::ptrdiff_t>(std::min(below(30), bytes.size() - at));
  switch (below(6)) {
    case 0:
      if (!bytes.empty()) bytes[at] ^= static_cast<std::byte>(1u << below(8));
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<std::byte>("0\"[]{},\\:-9e*+?("[below(16)]);
      break;
    case 2:
      bytes.insert(here, static_cast<std::byte>(random()));
      break;
    case 3:
      bytes.erase(here, here + n);
      break;
    case 4:
      if (below(4) == 0) bytes.resize(at);
      break;
    default: {
      const Bytes piece(here, here + n);
      const auto to = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
      bytes.insert(to, piece.begin(), piece.end());
    }
  }
}

/// The time limit of split patterns is 2 s and inputs are short, so a longer time means that some
/// step has no limit. The margin up to 20 s is for sanitizers and busy machines.
bool use_in_time(Use use, std::span<const std::byte> input) {
  const CpuTimer timer;
  const bool read = use(input);
  EXPECT_LT(timer.seconds(), 20);
  return read;
}

void replay_mutations(const std::vector<Bytes>& seeds, Use use) {
  std::mt19937 random(20240415);
  int read = 0, refused = 0;
  for (const Bytes& seed : seeds) EXPECT_TRUE(use_in_time(use, seed));
  for (int i = 0; i < 6000; ++i) {
    Bytes bytes = seeds[static_cast<size_t>(i) % seeds.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) mutate(bytes, random);
    const Bytes exact(bytes);  // capacity equals size, so that a sanitizer sees reads past the end
    SCOPED_TRACE(i);
    ++(use_in_time(use, exact) ? read : refused);
  }
  EXPECT_GT(read, 300) << "mutations get through";
  EXPECT_GT(refused, 300);
}

void replay_corpus(const std::string& name, Use use) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SNAPKV_SOURCE_DIR) +
                                                               "/tests/fuzz/" + name)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    ASSERT_TRUE(file.good());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    use_in_time(use, bytes_of(text));
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

TEST(TokenizerFuzzTest, MutatedVocabularies) {
  replay_mutations(vocabularies(), test::use_hostile_vocabulary);
}
TEST(TokenizerFuzzTest, MutatedTokenizerFiles) {
  replay_mutations(files(), test::use_hostile_tokenizer_json);
}
TEST(TokenizerFuzzTest, Corpora) {
  replay_corpus("corpus_tokenizer", test::use_hostile_vocabulary);
  replay_corpus("corpus_tokenizer_json", test::use_hostile_tokenizer_json);
}

}  // namespace
}  // namespace snapkv
