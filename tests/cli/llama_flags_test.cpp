// SPDX-License-Identifier: MIT
// llama.cpp's options on the command line have the same meaning, or give an error that names the
// option and the reason; they are never read as another option.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace llama_flags_tests {

using Json = nlohmann::json;

Result generate(std::vector<std::string> more) {
  std::vector<std::string> args = {"generate", "-m", needle_model(), "-p", "At noon",
                                   "-n",       "2",  "--json"};
  args.insert(args.end(), more.begin(), more.end());
  return run(args);
}

Json settings_of(const std::vector<std::string>& more) {
  const Result r = generate(more);
  EXPECT_EQ(r.code, 0) << r.err;
  return r.code == 0 ? Json::parse(r.out).at("settings") : Json();
}

void expect_refused(const std::vector<std::string>& more, const std::vector<std::string>& parts) {
  const Result r = generate(more);
  EXPECT_EQ(r.code, 2) << more[0] << ": " << r.err;
  EXPECT_EQ(r.out, "");
  for (const std::string& part : parts) {
    EXPECT_NE(r.err.find(part), std::string::npos) << part << " in\n" << r.err;
  }
}

TEST(LlamaFlags, HaveTheSameMeaning) {
  EXPECT_EQ(settings_of({"--temperature", "0.25"})["sampler"]["temperature"], 0.25);
  EXPECT_EQ(settings_of({"-s", "17"})["sampler"]["seed"], 17);
  EXPECT_EQ(settings_of({"-ctk", "q8_0", "-ctv", "q8_0"})["kv"]["type"], "q8_0");
  EXPECT_EQ(settings_of({"--cache-type-k=bf16", "--cache-type-v", "bf16"})["kv"]["type"], "bf16");
  EXPECT_EQ(settings_of({"-ctk", "f16"})["kv"]["type"], "f16");
  EXPECT_EQ(settings_of({"-b", "64"})["chunk"], 64);
  EXPECT_EQ(settings_of({"-b", "4096"})["chunk"], 512);
  EXPECT_EQ(settings_of({"-b", "4096", "-ub", "128"})["chunk"], 128);
  const Result predict =
      run({"generate", "-m", needle_model(), "-p", "x", "--predict", "3", "--json"});
  EXPECT_EQ(Json::parse(predict.out).at("settings").at("n_predict"), 3) << predict.err;
}

TEST(LlamaFlags, ThatChangeNothingHereAreAccepted) {
  settings_of({"-fa", "on", "--no-warmup", "--mmap", "-no-cnv", "--no-display-prompt"});
  settings_of({"-fa", "-t", "1"});
  settings_of({"--flash-attn=auto"});
  settings_of({"--no-mmap"});
  settings_of({"-ngl", "0"});
  const Result on_gpu = generate({"-ngl", "99"});
  EXPECT_EQ(on_gpu.code, 0) << on_gpu.err;
  if (on_gpu.out.find("\"cpu (") != std::string::npos) {
    EXPECT_NE(on_gpu.err.find("--gpu-layers 99: there is no GPU"), std::string::npos) << on_gpu.err;
  }
}

TEST(LlamaFlags, NoGpuLayersMeansTheHost) {
  EXPECT_NE(generate({"-ngl", "0"}).out.find("\"cpu ("), std::string::npos);
  const Result chosen = generate({"-ngl", "0", "--device", "reference"});
  EXPECT_NE(chosen.out.find("\"ref ("), std::string::npos) << chosen.err;
  expect_refused({"-ngl", "0", "--device", "cuda"}, {"--gpu-layers 0", "--device is cuda"});
}

TEST(LlamaFlags, AreRefusedByNameWithTheReason) {
  expect_refused({"--mlock"}, {"--mlock", "--weights"});
  expect_refused({"-fa", "off"}, {"-fa off", "without the matrix"});
  expect_refused({"-ctk", "q8_0"}, {"-ctk q8_0", "-ctv f16 (the default)", "--kv-type"});
  expect_refused({"-ctk", "q4_0", "-ctv", "q4_0"}, {"--kv-type", "q4_0", "q8_0"});
  expect_refused({"-ngl"}, {"-ngl", "value"});
  expect_refused({"-tb", "4"}, {"-tb", "--threads"});
  expect_refused({"-hf", "a/b"}, {"-hf", "-m"});
  expect_refused({"-sm", "row"}, {"-sm", "one device"});
  expect_refused({"--prompt-cache", "f"}, {"--prompt-cache", "--save-cache"});
  expect_refused({"--dry-base", "2"}, {"--dry-base", "sampler"});
  expect_refused({"-r", "User:"}, {"-r", "--stop"});
  expect_refused({"-cnv"}, {"-cnv"});
  expect_refused({"-fit", "on"}, {"-fit", "--kv-memory"});
  expect_refused({"-b", "many"}, {"-b", "'many'"});
}

TEST(LlamaFlags, ValuesThatLookLikeThemAreLeftAlone) {
  const Result r = run({"generate", "-m", needle_model(), "-p", "-ngl", "-n", "1", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Result typed = run({"generate", "-n", "gl", "-m", needle_model(), "-p", "x"});
  EXPECT_EQ(typed.code, 2);
  EXPECT_NE(typed.err.find("--n-predict"), std::string::npos) << typed.err;
}

TEST(LlamaFlags, OfOtherCommands) {
  const Result chat = run({"chat", "-m", needle_model(), "--grammar", "x"});
  EXPECT_EQ(chat.code, 2);
  EXPECT_NE(chat.err.find("--grammar: only the answers of generate"), std::string::npos)
      << chat.err;
  const Result info = run({"info", "-m", needle_model(), "-ctk", "q8_0", "-ctv", "q8_0"});
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("q8_0"), std::string::npos);
  const Result bench =
      run({"bench", "-m", needle_model(), "-p", "16", "-n", "0", "-r", "1", "--no-check",
           "--no-limits", "-fa", "1", "-ngl", "0", "-ub", "16", "-b", "1"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  const Result convert = run({"policies", "-ngl", "99"});
  EXPECT_EQ(convert.code, 2);
  EXPECT_NE(convert.err.find("-ngl"), std::string::npos) << convert.err;
}

// llama-server's and vLLM's options of serve, some of which mean something else elsewhere.
TEST(LlamaFlags, OfTheServer) {
  const auto serve = [](std::vector<std::string> more) {
    std::vector<std::string> args = {"serve", "-m", "no-such-model"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  const std::vector<std::string> kAccepted = {
      "--jinja", "--metrics", "--slots",          "-cb",
      "--webui", "-kvu",      "--ssl-key-file=k", "--ssl-cert-file=c"};
  std::vector<std::string> meant = kAccepted;
  for (const char* const more : {"--max-model-len", "4096", "--served-model-name", "x",
                                 "--max-num-seqs", "4", "--chat-template-file", "t"}) {
    meant.emplace_back(more);
  }
  const Result read = serve(meant);
  EXPECT_NE(read.err.find("no model 'no-such-model'"), std::string::npos) << read.err;
  const std::pair<std::vector<std::string>, std::string> kRefused[] = {
      {{"-to", "30"}, "-to: serve --timeout"},
      {{"-tp", "2"}, "-tp: a model runs on one device"},
      {{"-mm", "f"}, "-mm: pictures"},
      {{"-cram", "100"}, "-cram: serve --prefix-cache"},
      {{"--cache-reuse", "256"}, "--cache-reuse: --reuse"},
      {{"--reasoning-format", "none"}, "--reasoning-format: requests say it"},
      {{"--embeddings"}, "--embeddings: this server writes text"},
      {{"--gpu-memory-utilization", "0.9"}, "--kv-memory"},
      {{"--json-schema", "{}"}, "--json-schema: requests bring their own"},
  };
  for (const auto& [args, part] : kRefused) {
    const Result r = serve(args);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find(part), std::string::npos) << part << " in\n" << r.err;
  }
}

TEST(UnknownOptions, BringTheirValuesAndTheirOtherNames) {
  const Result value = generate({"--zeta", "5"});
  EXPECT_EQ(value.code, 2);
  EXPECT_EQ(value.err.find("unexpected"), std::string::npos) << value.err;
  const Result beside = generate({"--zeta=5", "six"});
  EXPECT_NE(beside.err.find("unexpected argument six"), std::string::npos) << beside.err;
  const std::pair<const char*, const char*> kMeant[] = {
      {"--temparature", "--temperature?"}, {"--ctx", "--ctx-size?"}, {"--jinjaa", "--jinja?"}};
  for (const auto& [typed, meant] : kMeant) {
    const Result r = generate({typed, "1"});
    EXPECT_NE(r.err.find(std::string("; did you mean ") + meant), std::string::npos) << r.err;
  }
}

TEST(Options, GivenTwiceOrWithoutTheirValue) {
  const Result twice = generate({"--temp", "0", "--temp", "1"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("--temp is given 2 times; it takes one value"), std::string::npos)
      << twice.err;
  const Result none = generate({"--stop"});
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("--stop: its value is missing: TEXT"), std::string::npos) << none.err;
}

TEST(UnknownOptions, ArePrintedInTheOrderTypedWithTheNearestName) {
  const Result r = generate({"--zeta", "--kv-buget", "5", "--alpha"});
  EXPECT_EQ(r.code, 2);
  const size_t zeta = r.err.find("--zeta"), buget = r.err.find("--kv-buget"),
               alpha = r.err.find("--alpha");
  ASSERT_NE(alpha, std::string::npos) << r.err;
  EXPECT_LT(zeta, buget);
  EXPECT_LT(buget, alpha);
  EXPECT_NE(r.err.find("--kv-buget; did you mean --kv-budget?"), std::string::npos) << r.err;
}

}  // namespace llama_flags_tests
}  // namespace snapkv::test
