// SPDX-License-Identifier: MIT
// How snapkv pull reads names, and what it takes from the names of files.
#include "cli/pull/model_source.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/models/gguf_name.h"
#include "cli/pull/http_client.h"

namespace snapkv::cli {
namespace {

std::string hub_text(const std::string& name) {
  const ModelSource source = parse_source(name);
  const auto* hub = std::get_if<HubSource>(&source);
  if (hub == nullptr) return "a URL";
  return hub->repo + "@" + hub->revision + " quant=" + hub->quant + " file=" + hub->file;
}

TEST(ModelSource, ReadsRepositoriesOfTheHub) {
  const std::pair<const char*, const char*> kNames[] = {
      {"org/re.po-1", "org/re.po-1@main quant= file="},
      {"org/repo:q4_k_m", "org/repo@main quant=q4_k_m file="},
      {"org/repo:latest", "org/repo@main quant= file="},
      {"hf.co/org/repo:Q8_0", "org/repo@main quant=Q8_0 file="},
      {"huggingface.co/org/repo", "org/repo@main quant= file="},
      {"https://huggingface.co/org/repo", "org/repo@main quant= file="},
      {"https://HF.co/org/repo/", "org/repo@main quant= file="},
      {"https://huggingface.co/org/repo/tree/v2", "org/repo@v2 quant= file="},
      {"org/repo:a-Q4_0.gguf", "org/repo@main quant= file=a-Q4_0.gguf"},
      {"org/repo/sub/a.gguf", "org/repo@main quant= file=sub/a.gguf"},
      {"https://huggingface.co/org/repo/resolve/main/a%20b.gguf?download=true",
       "org/repo@main quant= file=a b.gguf"},
      {"https://huggingface.co/org/repo/blob/0f1e/sub/a.gguf",
       "org/repo@0f1e quant= file=sub/a.gguf"}};
  for (const auto& [name, expected] : kNames) EXPECT_EQ(hub_text(name), expected) << name;
}

TEST(ModelSource, ReadsUrls) {
  const ModelSource source = parse_source("https://example.org/m/a%20b.gguf?x=1#top");
  const auto* url = std::get_if<UrlSource>(&source);
  ASSERT_NE(url, nullptr);
  EXPECT_EQ(url->url, "https://example.org/m/a%20b.gguf?x=1");
  EXPECT_EQ(url->file_name, "a b.gguf");
}

TEST(ModelSource, RefusesWhatItCannotFetch) {
  const std::pair<const char*, const char*> kNames[] = {
      {"llama3.2", "ollama's registry"},
      {"llama3.2:3b", "ollama's registry"},
      {"library/llama3.2", "ollama's registry"},
      {"ollama://llama3.2", "ollama's registry"},
      {"https://ollama.com/library/llama3.2", "ollama's registry"},
      {"registry.ollama.ai/library/llama3", "After ollama pull, snapkv run finds"},
      {"", "expected org/repo"},
      {"model.gguf", "expected org/repo"},
      {"ftp://example.org/a.gguf", "expected org/repo"},
      {"https://example.org/a.bin", "expected the URL of a .gguf file"},
      {"https://example.org/", "expected the URL of a .gguf file"},
      {"https://example.org/.gguf", "expected the URL of a .gguf file"},
      {"org/../x", "expected org/repo"},
      {"../models/x", "expected org/repo"},
      {"org/re po", "expected org/repo"},
      {"https://huggingface.co/org/repo/resolve/%2e%2e%2fmain/a.gguf", "expected"},
      {"org/repo/a.bin", "expected a .gguf file"}};
  for (const auto& [name, part] : kNames) {
    try {
      parse_source(name);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage) << name;
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << name << ": " << e.what();
    }
  }
}

TEST(ModelSource, TellsNamesOfTheHubFromPaths) {
  for (const char* name : {"org/repo", "org/repo:Q4_0", "hf.co/org/repo", "https://a.org/b.gguf"}) {
    EXPECT_TRUE(is_source(name)) << name;
  }
  for (const char* name :
       {"smollm2", "llama3:8b", "models/a.gguf", "./a/b", "../a", "/a/b", "a/b/c"}) {
    EXPECT_FALSE(is_source(name)) << name;
  }
}

TEST(GgufName, Quantizations) {
  const auto at_end = [](const char* name, const char* quant) {
    return has_quant(name, quant, QuantPlace::end);
  };
  EXPECT_TRUE(at_end("sub/model-Q4_K_M.gguf", "q4_k_m"));
  EXPECT_TRUE(at_end("model.q4_k_m.gguf", "Q4_K_M"));
  EXPECT_TRUE(at_end("model_Q8_0.gguf", "q8_0"));
  EXPECT_FALSE(at_end("model-Q4_K_M.gguf", "q4_k"));
  EXPECT_FALSE(at_end("model-IQ4_NL.gguf", "Q4_NL"));
  EXPECT_FALSE(at_end("Q4_K_M/model.gguf", "Q4_K_M"));
  EXPECT_FALSE(at_end("model-Q4_K_M-imat.gguf", "Q4_K_M"));
  EXPECT_TRUE(has_quant("model-Q4_K_M-imat.gguf", "Q4_K_M", QuantPlace::middle));
  EXPECT_FALSE(has_quant("model-Q4_K_M-imat.gguf", "Q4_K", QuantPlace::middle));
  EXPECT_FALSE(at_end("model.gguf", ""));
}

TEST(GgufName, PartsOfSplitFiles) {
  const SplitName part = split_name("q4/model-00002-of-00003.gguf");
  EXPECT_EQ(part.name, "q4/model.gguf");
  EXPECT_EQ(part.part, 2);
  EXPECT_EQ(part.count, 3);
  for (const char* name :
       {"model.gguf", "model-2-of-3.gguf", "model-00004-of-00003.gguf", "model-00000-of-00003.gguf",
        "-00001-of-00003.gguf", "model-0000x-of-00003.gguf"}) {
    EXPECT_EQ(split_name(name).name, name);
    EXPECT_EQ(split_name(name).count, 1);
  }
}

TEST(HttpClient, ComparesServers) {
  EXPECT_TRUE(same_server("https://Example.org/a", "https://example.org:443/b?c"));
  EXPECT_FALSE(same_server("https://example.org/", "http://example.org/"));
  EXPECT_FALSE(same_server("https://example.org/", "https://example.org:8443/"));
  EXPECT_FALSE(same_server("https://example.org/", "https://example.org.evil.net/"));
  EXPECT_FALSE(same_server("", ""));
}

TEST(HttpClient, RefusesATokenThatWouldBreakTheHeader) {
  EXPECT_THROW(HttpClient("https://example.org", "hf_x\r\nHost: evil"), Error);
  EXPECT_TRUE(HttpClient("https://example.org", "hf_x").has_token());
}

}  // namespace
}  // namespace snapkv::cli
