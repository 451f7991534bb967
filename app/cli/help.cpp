// SPDX-License-Identifier: MIT
#include "cli/help.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "cli/common/policy_options.h"

namespace snapkv::cli {
namespace {

constexpr size_t kFewOptions = 15;  // a command with no more options shows all of them

struct Example {
  std::string_view command;
  const char* text;
};

constexpr Example kExamples[] = {
    {"run",
     "Examples:\n"
     "  snapkv run model.gguf\n"
     "  snapkv run llama3:8b report.pdf\n"
     "  snapkv run smollm2 report.pdf notes.md \"What does it cost?\"\n"
     "  snapkv run book.kv\n"
     "  git log | snapkv run model.gguf \"What has changed?\""},
    {"generate",
     "Examples:\n"
     "  snapkv generate -m models/needle.gguf -f models/sample_prompt.txt -n 8 --temp 0\n"
     "  snapkv generate -m model.gguf -f book.pdf -p \"Who is the narrator?\" --kv-budget 1024\n"
     "  snapkv generate -m model.gguf -f - -n 200 --kv-memory 256MiB < prompt.txt\n"
     "  snapkv generate -m model.gguf -p \"...\" --kv-policy full"},
    {"pull",
     "Examples:\n"
     "  snapkv pull Qwen/Qwen2.5-0.5B-Instruct-GGUF\n"
     "  snapkv pull bartowski/Llama-3.2-3B-Instruct-GGUF:Q5_K_M\n"
     "  snapkv pull https://example.org/model.gguf"},
    {"chat",
     "Examples:\n"
     "  snapkv chat -m model.gguf\n"
     "  snapkv chat -m model.gguf -f book.pdf --kv-budget 1024"},
    {"convert",
     "Examples:\n"
     "  snapkv convert DIR -o model.gguf\n"
     "  snapkv convert DIR -o model.gguf --type q8_0"},
    {"tokenize",
     "Examples:\n"
     "  snapkv tokenize -m model.gguf -p \"Hello\""},
    {"detokenize",
     "Examples:\n"
     "  snapkv detokenize -m model.gguf -i \"15496, 995\""},
    {"apply-template",
     "Examples:\n"
     "  snapkv apply-template -m model.gguf -f messages.json"},
    {"completion",
     "Examples:\n"
     "  snapkv completion bash"},
    {"compress",
     "Examples:\n"
     "  snapkv compress -m model.gguf -f book.txt -o book.kv\n"
     "  snapkv compress -m model.gguf -f book.txt -o book.kv --keep-full"},
    {"ask",
     "Examples:\n"
     "  snapkv ask book.kv -p \"Who is the narrator?\"\n"
     "  snapkv ask book.kv"},
    {"info",
     "Examples:\n"
     "  snapkv info -m model.gguf\n"
     "  snapkv info -m model.gguf -c 32000 --kv-budget 1024"},
    {"demo",
     "Examples:\n"
     "  snapkv demo\n"
     "  snapkv demo --length 8000 --kv-budget 64"},
    {"explain",
     "Examples:\n"
     "  snapkv explain\n"
     "  snapkv explain -m model.gguf -p \"...\" --layer 3 --head 0"},
    {"inspect",
     "Examples:\n"
     "  snapkv inspect -m models/needle.gguf -f models/sample_prompt.txt --kv-budget 128 -o "
     "cache.html"},
    {"serve",
     "Examples:\n"
     "  snapkv serve -m model.gguf\n"
     "  snapkv serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt --kv-memory 4G "
     "--snapshot-dir books"},
    {"bench",
     "Examples:\n"
     "  snapkv bench -m model.gguf\n"
     "  snapkv bench -m model.gguf -p 512,16384 -n 32 -d 0,16384 --kv-policy full,snapkv"},
    {"eval needle",
     "Examples:\n"
     "  snapkv eval needle -m models/needle.gguf --budgets 64,256 --kernels 7,15\n"
     "  snapkv eval needle -m model.gguf --policies full,snapkv,streaming-llm --out needle.jsonl"},
    {"eval ruler",
     "Examples:\n"
     "  snapkv eval ruler -m model.gguf --lengths 4096,8192 --out ruler.jsonl"},
    {"eval fidelity",
     "Examples:\n"
     "  snapkv eval fidelity -m model.gguf --text book.txt --lengths 4000,16000 --budgets "
     "512,1024"},
    {"eval longbench",
     "Examples:\n"
     "  snapkv eval longbench -m model.gguf --data LongBench --tasks hotpotqa --samples 20"},
    {"eval overlap",
     "Examples:\n"
     "  snapkv eval overlap -m models/needle.gguf --samples 4"},
    {"eval turns",
     "Examples:\n"
     "  snapkv eval turns -m models/needle.gguf --questions 4 --budgets 128,256"},
    {"eval qa",
     "Examples:\n"
     "  snapkv eval qa -m model.gguf --data questions.jsonl --texts texts --chat --budgets "
     "256,512"},
    {"eval summary",
     "Examples:\n"
     "  snapkv eval summary -m model.gguf --chat --texts texts --budgets 512,1024 "
     "--refresh-limits 0,32\n"
     "  snapkv eval summary -m model.gguf --chat --text book.txt --budgets 256"},
    {"eval make-qa",
     "Examples:\n"
     "  snapkv eval make-qa --texts texts -o questions.jsonl\n"
     "  snapkv eval make-qa --texts book.txt -m model.gguf --length 4000 --kinds fact,unique "
     "--per-text 8 -o questions.jsonl"},
    {"eval compare",
     "Examples:\n"
     "  snapkv eval compare needle.jsonl --base policy=full\n"
     "  snapkv eval compare needle.jsonl --a policy=snapkv,kernel=7 --b policy=snapkv,kernel=15\n"
     "  snapkv eval compare before.jsonl after.jsonl"},
};

// The defaults of these suit nearly everyone.
constexpr std::string_view kUncommon[] = {
    "--draft-max",
    "--draft-min",
    "--draft-ctx",
    "--prefill-attention",
    "--attention-share",
    "--compute",
    "--weights",
    "--cpu-target",
    "--check-tensors",
    "--no-check-tensors",
    "--gpu-layers",
    "--chunk",
    "--memory-limit",
    "--spill-dir",
    "--kv-ratio",
    "--kv-sinks",
    "--kv-pooling",
    "--kv-group",
    "--kv-critical",
    "--kv-refresh",
    "--kv-decode-limit",
    "--typical-p",
    "--min-p",
    "--repeat-penalty",
    "--presence-penalty",
    "--frequency-penalty",
    "--logit-bias",
    "--repeat-last-n",
    "--ignore-eos",
    "--no-bos",
    "--no-special",
    "--chat-template-kwargs",
    "--grammar-file",
    "--json-schema-file",
    "--show-timings",
    "--text-limit",
    "--no-warmup",
    "--no-check",
    "--max-queue",
    "--body-memory",
    "--prefill-share",
    "--store-limit",
    "--rope-scaling",
    "--yarn-factor",
    "--yarn-orig-ctx",
};

bool is_uncommon(const CLI::Option& option) {
  const std::string of_one_policy = fmt::format("{}, for ", kCacheGroup);
  if (option.get_group().rfind(of_one_policy, 0) == 0) {
    return !option.check_lname("kv-kernel");
  }
  return std::any_of(std::begin(kUncommon), std::end(kUncommon), [&](std::string_view name) {
    return option.check_lname(std::string(name.substr(2)));
  });
}

}  // namespace

std::string help_examples(const std::string& command) {
  const auto found = std::find_if(std::begin(kExamples), std::end(kExamples),
                                  [&](const Example& e) { return e.command == command; });
  return found == std::end(kExamples) ? "" : found->text;
}

std::string first_example(const std::string& command) {
  const std::string examples = help_examples(command);
  const size_t begin = examples.find("snapkv ");
  if (begin == std::string::npos) return "";
  return examples.substr(begin, examples.find('\n', begin) - begin);
}

void hide_uncommon_options(CLI::App& command) {
  const std::vector<CLI::Option*> options = command.get_options();
  if (options.size() <= kFewOptions) return;
  int n_hidden = 0;
  for (CLI::Option* option : options) {
    if (!is_uncommon(*option)) continue;
    option->group("");
    ++n_hidden;
  }
  if (n_hidden == 0) return;
  command.footer(
      fmt::format("--help-all shows {} more options.\n\n{}", n_hidden, command.get_footer()));
}

}  // namespace snapkv::cli
