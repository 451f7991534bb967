// SPDX-License-Identifier: MIT
// The patterns are llama.cpp's (src/llama-vocab.cpp), including the places where these differ from
// the models' tokenizer.json. They are rewritten to run fast: classes instead of a lookahead per
// character, possessive groups, and no pattern that scans a run again from each place in it.
#include "text/pre_tokenizers.h"

#include <algorithm>
#include <vector>

namespace snapkv {
namespace {

#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view kLlama3 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|)"
    R"(\s+)";
constexpr std::string_view kJais2 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!)"
    R"(\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|)"
    R"(\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kQwen2 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+)"
    R"((?!\S)|\s+)";
constexpr std::string_view kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBailingMoe =
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s)"
    R"(\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r)"
    R"(\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kK2Horizon = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\x{200C}\x{200D}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n])"
    R"(*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMiniCpm5 = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Capital and small letters: a letter outside ASCII counts as both.
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}]*[\p{Ll}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}]+[\p{Ll}]*|\p{N}| ?[^)"
    R"(\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}]*[\p{Ll}]+)" CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?[\p{Lu}]+[\p{Ll}]*)" CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Here any letter or mark counts as both.
constexpr std::string_view kTinyAya =
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)" CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)" CONTRACTIONS
    R"(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018})"
    R"(\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[)"
    R"(\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";

constexpr std::string_view kDeepseekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"
    R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F})"
    R"(\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481})"
    R"(\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
    R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kDeepseekCjk =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// White space at the end of the piece; tried only at the beginning of a run.
constexpr std::string_view kTrailingSpace = R"((?<!\s)\s++\z)";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSpark25 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kCjk = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F})"
    R"(\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF})"
    R"(\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF})"
    R"(\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
// For Poro, Bloom and others: everything except white space and some punctuation.
constexpr std::string_view kWordsToPunctuation =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

#define HAN                                                      \
  R"([\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF})"      \
  R"(\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F})" \
  R"(\x{2B820}-\x{2CEAF}\x{2CEB0}-\x{2EBEF}\x{2F800}-\x{2FA1F}])"
constexpr std::string_view kKimiK2 =
    HAN R"(+|[^\r\n\p{L}\p{N}]?(?:(?!)" HAN R"()\p{L})++)" CONTRACTIONS
        R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

#undef HAN
#undef CONTRACTIONS

constexpr SplitRule kDigitGroups = {SplitRule::Kind::digit_groups};
constexpr SplitRule kThousands = {SplitRule::Kind::thousands};
constexpr SplitRule pattern(std::string_view text) { return {SplitRule::Kind::pattern, text}; }

constexpr std::string_view kDefaultNames[] = {"default"};
constexpr SplitRule kDefaultRules[] = {pattern(R"([\p{P}\$\+<=>\^~\|]+)"), pattern(kGpt2),
                                       pattern(R"(\p{N}+)"), pattern(R"([0-9][0-9][0-9])")};
constexpr std::string_view kLlama3Names[] = {"llama3",    "llama-v3", "llama-bpe", "falcon3",
                                             "falcon-h1", "pixtral",  "midm-2.0",  "lfm2"};
constexpr SplitRule kLlama3Rules[] = {pattern(kLlama3)};
constexpr std::string_view kDbrxNames[] = {"dbrx", "smaug-bpe"};
constexpr SplitRule kDbrxRules[] = {pattern(kLlama3)};
constexpr std::string_view kGlm4Names[] = {"glm4", "chatglm-bpe"};
constexpr SplitRule kGlm4Rules[] = {pattern(kLlama3)};
constexpr std::string_view kJais2Names[] = {"jais-2"};
constexpr SplitRule kJais2Rules[] = {pattern(kJais2)};
constexpr std::string_view kQwen2Names[] = {
    "qwen2", "deepseek-r1-qwen", "kormo", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"};
constexpr SplitRule kQwen2Rules[] = {pattern(kQwen2)};
constexpr std::string_view kQwen35Names[] = {"qwen35"};
constexpr SplitRule kQwen35Rules[] = {pattern(kQwen35)};
constexpr std::string_view kUfakzekaNames[] = {"ufakzeka"};
constexpr SplitRule kUfakzekaRules[] = {pattern(kUfakzeka)};
constexpr std::string_view kLagunaNames[] = {"laguna"};
constexpr SplitRule kLagunaRules[] = {pattern(R"([^\n]+|[\n]+)"), pattern(kQwen2)};
constexpr std::string_view kSeedCoderNames[] = {"seed-coder"};
constexpr SplitRule kSeedCoderRules[] = {pattern(kSeedCoder)};
constexpr std::string_view kBailingmoeNames[] = {"bailingmoe", "bailingmoe2"};
constexpr SplitRule kBailingmoeRules[] = {pattern(kBailingMoe)};
constexpr std::string_view kExaoneMoeNames[] = {"exaone-moe"};
constexpr SplitRule kExaoneMoeRules[] = {pattern(kExaoneMoe)};
constexpr std::string_view kK2HorizonNames[] = {"k2-horizon"};
constexpr SplitRule kK2HorizonRules[] = {pattern(kK2Horizon)};
constexpr std::string_view kMinicpm5Names[] = {"minicpm5"};
constexpr SplitRule kMinicpm5Rules[] = {pattern(R"(\p{N}{1,3})"), pattern(kMiniCpm5)};
constexpr std::string_view kGpt2Names[] = {"gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum",
                                           "mpt",   "olmo",  "trillion", "exaone4", "jais"};
constexpr SplitRule kGpt2Rules[] = {pattern(kGpt2)};
constexpr std::string_view kStarcoderNames[] = {"starcoder", "refact", "command-r",  "smollm",
                                                "codeshell", "exaone", "minerva-7b", "mellum2"};
constexpr SplitRule kStarcoderRules[] = {pattern(R"(\p{N})"), pattern(kGpt2)};
constexpr std::string_view kFalconNames[] = {"falcon"};
constexpr SplitRule kFalconRules[] = {pattern(R"([\p{P}\$\+<=>\^~\|`]+)"), pattern(kGpt2),
                                      pattern(R"([0-9][0-9][0-9])")};
constexpr std::string_view kDeepseekLlmNames[] = {"deepseek-llm"};
constexpr SplitRule kDeepseekLlmRules[] = {pattern(R"([\r\n])"),          pattern(kDeepseekLetters),
                                           pattern(kDeepseekPunctuation), pattern(kTrailingSpace),
                                           pattern(kDeepseekCjk),         pattern(R"(\p{N}+)")};
constexpr std::string_view kDeepseekCoderNames[] = {"deepseek-coder"};
constexpr SplitRule kDeepseekCoderRules[] = {pattern(R"([\r\n])"), pattern(R"(\s?\p{L}+)"),
                                             pattern(R"(\s?\p{P}+)"), pattern(kDeepseekCjk),
                                             pattern(R"(\p{N})")};
constexpr std::string_view kDeepseekV3Names[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm",
                                                 "hy_v4"};
constexpr SplitRule kDeepseekV3Rules[] = {pattern(R"(\p{N}{1,3})"), pattern(kCjk),
                                          pattern(kDeepseek3)};
constexpr std::string_view kSpark25Names[] = {"spark2_5"};
constexpr SplitRule kSpark25Rules[] = {pattern(R"(\p{N}{1,3})"), pattern(kCjk), pattern(kSpark25),
                                       pattern(R"(\p{N})")};
constexpr std::string_view kYoutuNames[] = {"youtu"};
constexpr SplitRule kYoutuRules[] = {pattern(kYoutuScripts), pattern(kYoutu)};
constexpr std::string_view kTekkenNames[] = {"tekken"};
constexpr SplitRule kTekkenRules[] = {pattern(kTekken)};
constexpr std::string_view kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};
constexpr SplitRule kGpt4oRules[] = {pattern(kGpt4o)};
constexpr std::string_view kTinyAyaNames[] = {"tiny_aya", "cohere2moe"};
constexpr SplitRule kTinyAyaRules[] = {kDigitGroups, pattern(kTinyAya)};
constexpr std::string_view kAfmoeNames[] = {"afmoe"};
constexpr SplitRule kAfmoeRules[] = {kDigitGroups, pattern(kAfmoeScripts), pattern(kDeepseek3)};
constexpr std::string_view kSuperbpeNames[] = {"superbpe"};
constexpr SplitRule kSuperbpeRules[] = {pattern(R"(\p{N}+)"), kThousands};
constexpr std::string_view kKimiK2Names[] = {"kimi-k2"};
constexpr SplitRule kKimiK2Rules[] = {pattern(kKimiK2)};
constexpr std::string_view kPoroChatNames[] = {"poro-chat", "bloom", "gpt3-finnish"};
constexpr SplitRule kPoroChatRules[] = {pattern(kWordsToPunctuation)};
constexpr std::string_view kVikingNames[] = {"viking"};
constexpr SplitRule kVikingRules[] = {pattern(kWordsToPunctuation), pattern(R"(\p{N})")};
constexpr std::string_view kChameleonNames[] = {"chameleon"};
constexpr SplitRule kChameleonRules[] = {
    pattern(R"(<sentinel:[0-9]+>)"),    pattern(R"(IMGIMG[A-I]{1,4}Z)"),
    pattern(R"([\t\n]|    |  )"),       pattern(R"(\p{N})"),
    pattern(R"([\p{P}!-/:-@\[-`{-~])"), pattern(kGpt2)};
constexpr std::string_view kGemma4Names[] = {"gemma4"};
constexpr SplitRule kGemma4Rules[] = {pattern(R"([^\n]+|[\n]+)")};
constexpr std::string_view kSarvamMoeNames[] = {"sarvam-moe"};
constexpr SplitRule kSarvamMoeRules[] = {pattern(R"([^\n]+|[\n]+)")};

constexpr PreTokenizer kPreTokenizers[] = {
    {.names = kDefaultNames, .rules = kDefaultRules},
    {.names = kLlama3Names, .rules = kLlama3Rules, .ignore_merges = true, .add_bos = true},
    {.names = kDbrxNames, .rules = kDbrxRules},
    {.names = kGlm4Names, .rules = kGlm4Rules, .has_bos = false},
    {.names = kJais2Names, .rules = kJais2Rules},
    {.names = kQwen2Names, .rules = kQwen2Rules},
    {.names = kQwen35Names, .rules = kQwen35Rules},
    {.names = kUfakzekaNames, .rules = kUfakzekaRules},
    {.names = kLagunaNames, .rules = kLagunaRules},
    {.names = kSeedCoderNames, .rules = kSeedCoderRules},
    {.names = kBailingmoeNames, .rules = kBailingmoeRules},
    {.names = kExaoneMoeNames, .rules = kExaoneMoeRules},
    {.names = kK2HorizonNames, .rules = kK2HorizonRules},
    {.names = kMinicpm5Names, .rules = kMinicpm5Rules, .ignore_merges = true},
    {.names = kGpt2Names, .rules = kGpt2Rules},
    {.names = kStarcoderNames, .rules = kStarcoderRules},
    {.names = kFalconNames, .rules = kFalconRules},
    {.names = kDeepseekLlmNames, .rules = kDeepseekLlmRules},
    {.names = kDeepseekCoderNames, .rules = kDeepseekCoderRules},
    {.names = kDeepseekV3Names, .rules = kDeepseekV3Rules},
    {.names = kSpark25Names, .rules = kSpark25Rules},
    {.names = kYoutuNames, .rules = kYoutuRules, .ignore_merges = true},
    {.names = kTekkenNames, .rules = kTekkenRules, .ignore_merges = true, .add_bos = true},
    {.names = kGpt4oNames, .rules = kGpt4oRules},
    {.names = kTinyAyaNames, .rules = kTinyAyaRules},
    {.names = kAfmoeNames, .rules = kAfmoeRules},
    {.names = kSuperbpeNames, .rules = kSuperbpeRules},
    {.names = kKimiK2Names, .rules = kKimiK2Rules},
    {.names = kPoroChatNames, .rules = kPoroChatRules},
    {.names = kVikingNames, .rules = kVikingRules},
    {.names = kChameleonNames, .rules = kChameleonRules, .add_bos = true},
    {.names = kGemma4Names,
     .rules = kGemma4Rules,
     .sentencepiece = true,
     .whole_newlines = true,
     .always_adds_bos = true},
    {.names = kSarvamMoeNames, .rules = kSarvamMoeRules, .sentencepiece = true},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& p : kPreTokenizers) {
    if (std::find(p.names.begin(), p.names.end(), name) != p.names.end()) return &p;
  }
  return nullptr;
}

std::string pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreTokenizer& p : kPreTokenizers) {
    names.insert(names.end(), p.names.begin(), p.names.end());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace snapkv
