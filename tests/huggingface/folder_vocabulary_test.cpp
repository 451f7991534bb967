// SPDX-License-Identifier: MIT
// Vocabularies and chat templates of folders of transformers: the metadata they become, and errors
// that name the field, the expected and the actual value.
#include <gtest/gtest.h>

#include "tests/huggingface/folder_fixture.h"
#include "tests/support/hf_folder.h"

namespace snapkv::test {
namespace {

TEST_F(FolderTest, WrongVocabularies) {
  set_tokenizer([](Json& t) { t["model"]["type"] = "Unigram"; });
  expect_bad({path_ + "/tokenizer.json", "model.type is \"Unigram\"", "BPE"});
  set_tokenizer([](Json& t) { t["model"]["byte_fallback"] = false; });
  expect_bad({"pre_tokenizer", "byte_fallback"});
  set_tokenizer([](Json& t) { t["model"]["vocab"]["x"] = 262; });
  expect_bad({"model.vocab.x is 262", "'c'"});
  set_tokenizer([](Json& t) { t["model"]["vocab"]["x"] = -1; });
  expect_bad({"model.vocab.x is -1"});
  set_tokenizer([](Json& t) { t["model"]["merges"].push_back("b a"); });
  expect_bad({"model.merges makes 'ba'", "not a token"});
  set_tokenizer([](Json& t) { t["model"]["merges"].push_back("b"); });
  expect_bad({"model.merges holds \"b\""});
  set_tokenizer([](Json& t) { t["model"]["merges"].push_back(Json::array({"a", 1})); });
  expect_bad({"model.merges holds"});
  set_tokenizer([](Json& t) { t["normalizer"] = {{"type", "Lowercase"}}; });
  expect_bad({"normalizer.type is \"Lowercase\""});
  set_tokenizer([](Json& t) { t["pre_tokenizer"] = {{"type", "Whitespace"}}; });
  expect_bad({"pre_tokenizer.type is \"Whitespace\""});
  set_tokenizer([](Json& t) { t["added_tokens"][0]["id"] = 5; });
  expect_bad({"added_tokens[].id of '<unk>' is 5", "0"});
  set_tokenizer([](Json& t) { t["post_processor"]["type"] = "BertProcessing"; });
  expect_bad({"post_processor.type is \"BertProcessing\""});
  set_tokenizer([](Json& t) {
    Json& single = t["post_processor"]["single"];
    single.insert(single.begin(), Json::parse(R"({"SpecialToken": {"id": "</s>"}})"));
  });
  expect_bad({"post_processor.single", "one token before"});
  set_tokenizer([](Json& t) { t["post_processor"]["single"][0]["SpecialToken"]["id"] = "</s>"; });
  expect_bad({"post_processor adds '</s>' before"});
  set_tokenizer([](Json& t) { t["pre_tokenizer"] = {{"type", "ByteLevel"}}; });
  expect_bad({"pre_tokenizer", "a space before"});
}

// tokenizer_config.json lists added tokens too, in some folders more than tokenizer.json.
TEST_F(FolderTest, AddedTokensOfTheTokenizersConfigCount) {
  set_tokenizer([](Json&) {});
  const auto set_decoder = [&](const Json& tokens) {
    write_text(path_ + "/tokenizer_config.json", Json{{"added_tokens_decoder", tokens}}.dump());
  };
  const auto before = open().get_strings("tokenizer.ggml.tokens");
  EXPECT_EQ(before[310], "[PAD310]");
  set_decoder({{"0", {{"content", "<unk>"}, {"special", true}}},
               {"310", {{"content", "<|turn|>"}, {"special", true}}},
               {"311", {{"content", "two\u2581words"}, {"special", false}}},
               {"400", {{"content", "<far>"}, {"special", true}}}});
  const auto tokens = open().get_strings("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.size(), before.size());
  EXPECT_EQ(tokens[310], "<|turn|>");
  EXPECT_EQ(tokens[311], "two words");
  set_decoder({{"310", {{"content", "<unk>"}}}});
  expect_bad({"added_tokens_decoder.310.content is '<unk>'", "id 0 in tokenizer.json"});
  set_decoder({{"0", {{"content", "<other>"}}}});
  expect_bad({"added_tokens_decoder.0.content is '<other>'", "'<unk>' in tokenizer.json"});
  set_decoder({{"x", {{"content", "<other>"}}}});
  expect_bad({"added_tokens_decoder.x is", "a token's id"});
}

TEST_F(FolderTest, TokensBeyondTheEmbeddingsAreLeftOut) {
  set_tokenizer([](Json& t) {
    t["model"]["vocab"]["far"] = 320;
    t["added_tokens"].push_back({{"id", 400}, {"content", "<far>"}, {"special", true}});
  });
  EXPECT_EQ(open().get_strings("tokenizer.ggml.tokens").size(), 320u);
}

TEST_F(FolderTest, ByteLevelVocabularies) {
  const auto set_byte_level = [&](const Json& pre_tokenizer, bool ignore_merges) {
    set_tokenizer([&](Json& t) {
      t["normalizer"] = {{"type", "NFC"}};
      t["pre_tokenizer"] = pre_tokenizer;
      t["model"]["byte_fallback"] = false;
      t["model"]["ignore_merges"] = ignore_merges;
      t["post_processor"] = {{"type", "ByteLevel"}};
      t["added_tokens"].push_back({{"id", 310}, {"content", "<|im_end|>"}, {"special", false}});
      t["added_tokens"].push_back({{"id", 311}, {"content", "\u2581\u2581"}, {"special", false}});
      t["model"]["merges"] = Json::parse(R"([["a", "b"], ["ab", "c"]])");
    });
  };
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto split = [&](const char* regex) {
    const Json step = {{"type", "Split"},
                       {"pattern", {{"Regex", regex}}},
                       {"behavior", "Isolated"},
                       {"invert", false}};
    return Json{{"type", "Sequence"}, {"pretokenizers", Json::array({step, bytes})}};
  };
  constexpr const char* kLlama3 =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
      "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const Json falcon = Json::parse(R"([{"type": "Punctuation", "behavior": "Contiguous"},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
      {"type": "Digits", "individual_digits": false},
      {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated",
       "invert": false}])");
  set_byte_level({{"type", "Sequence"}, {"pretokenizers", falcon}}, false);
  EXPECT_EQ(open().get_string("tokenizer.ggml.pre"), "falcon");
  set_byte_level(split(kLlama3), true);
  const GgufFile file = open();
  EXPECT_EQ(file.get_string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(file.get_string("tokenizer.ggml.pre"), "llama-bpe");
  EXPECT_EQ(file.get_strings("tokenizer.ggml.merges"), (std::vector<std::string>{"a b", "ab c"}));
  EXPECT_TRUE(file.get_bool("tokenizer.ggml.normalizer.nfc", false));
  EXPECT_FALSE(file.get_bool("tokenizer.ggml.add_bos_token", true));
  EXPECT_EQ(file.get_ints("tokenizer.ggml.token_type")[310], 3);
  EXPECT_EQ(file.get_ints("tokenizer.ggml.token_type")[311], 4);
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens")[311], "  ");
  set_byte_level(split(kLlama3), false);
  EXPECT_EQ(open().get_string("tokenizer.ggml.pre"), "dbrx");
  set_byte_level({{"type", "ByteLevel"}, {"add_prefix_space", false}}, false);
  EXPECT_EQ(open().get_string("tokenizer.ggml.pre"), "gpt-2");
  set_byte_level(split("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
                       "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"),
                 false);
  EXPECT_EQ(open().get_string("tokenizer.ggml.pre"), "qwen35");
  set_byte_level(split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), false);
  EXPECT_EQ(open().get_string("tokenizer.ggml.pre"), "bloom");
  set_byte_level(split("\\p{L}+"), false);
  expect_bad({"pre_tokenizer", "no", "split \\p{L}+"});
}

TEST_F(FolderTest, EndsOfAnswersAndTemplates) {
  write_text(path_ + "/generation_config.json", R"({"eos_token_id": [5, 2, 6]})");
  write_text(path_ + "/tokenizer_config.json", R"({"bos_token": {"content": "<s>"},
      "eos_token": "</s>", "chat_template": [{"name": "default", "template": "one"},
      {"name": "tool_use", "template": "two"}]})");
  {
    const GgufFile file = open();
    EXPECT_EQ(file.get_uint("tokenizer.ggml.eos_token_id"), 2u);
    EXPECT_EQ(file.get_uint("tokenizer.ggml.eot_token_id"), 5u);
    EXPECT_EQ(file.get_uint("tokenizer.ggml.eom_token_id"), 6u);
    EXPECT_EQ(file.get_string("tokenizer.chat_template"), "one");
    EXPECT_EQ(file.get_string("tokenizer.chat_template.tool_use"), "two");
  }
  write_text(path_ + "/chat_template.jinja", "three\n");
  EXPECT_EQ(open().get_string("tokenizer.chat_template"), "three\n");
  write_text(path_ + "/generation_config.json", R"({"eos_token_id": 320})");
  expect_bad({"generation_config.json", "eos_token_id holds 320"});
}

}  // namespace
}  // namespace snapkv::test
