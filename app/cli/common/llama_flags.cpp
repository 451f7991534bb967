// SPDX-License-Identifier: MIT
#include "cli/common/llama_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/parse_number.h"

namespace snapkv::cli {
namespace {

enum class Action {
  rename,   // becomes the option `text`
  accept,   // has no effect here
  refuse,   // `text` says why
  special,  // has its own function below
};

struct LlamaFlag {
  std::array<std::string_view, 4> names;  // empty: unused
  Action action;
  const char* text;
};

constexpr const char* kNoSampler =
    "there is no such sampler here; --temp, --top-k, --top-p, --min-p and the penalties are";
constexpr const char* kNoGrammar = "only the answers of generate can be constrained by a grammar";
constexpr const char* kRotation = "positions are rotated as the model's file says";
constexpr const char* kOneDevice = "a model runs on one device as a whole (--device)";
constexpr const char* kPinning = "start snapkv through taskset or numactl to choose its processors";
constexpr const char* kPull = "snapkv pull fetches models, and prints the path for -m";
constexpr const char* kDraftMax = "--draft-max is the most tokens that are guessed for a step";
constexpr const char* kNotInteractive = "this command answers one prompt";
constexpr const char* kNoPictures = "pictures and sound are not read";
constexpr const char* kTimeout = "serve --timeout ends a request after so many seconds";
constexpr const char* kReasoning =
    "reasoning is shown as the model writes it; where a template can do without, "
    "--chat-template-kwargs '{\"enable_thinking\": false}'";
constexpr const char* kServesText =
    "this server writes text; it makes no embeddings and ranks none";
constexpr const char* kOneModel = "one model is served, the one that -m names";
constexpr const char* kNoLora = "adapters are not supported; merge them into the model's file";

// The options of llama-completion, llama-cli and llama-bench that people type, and all whose short
// names would be read as a shorter option with a value ("-fit" as "-f it").
constexpr LlamaFlag kFlags[] = {
    {{"--temperature"}, Action::rename, "--temp"},
    {{"--typical"}, Action::rename, "--typical-p"},
    {{"-s"}, Action::rename, "--seed"},
    {{"--predict"}, Action::rename, "--n-predict"},
    {{"-bf", "--binary-file"}, Action::rename, "--file"},
    {{"-sys", "--system-prompt"}, Action::rename, "--system"},
    {{"--chat-template-file"}, Action::rename, "--chat-template"},
    {{"-jf"}, Action::rename, "--json-schema-file"},
    {{"--no-mmap"}, Action::special, ""},
    {{"-ngl"}, Action::special, ""},
    {{"-fa", "--flash-attn"}, Action::special, ""},
    {{"-ctk", "--cache-type-k"}, Action::special, ""},
    {{"-ctv", "--cache-type-v"}, Action::special, ""},
    {{"-b", "--batch-size"}, Action::special, ""},
    {{"-ub", "--ubatch-size"}, Action::special, ""},

    {{"--mmap"}, Action::accept, ""},
    {{"--no-warmup"}, Action::accept, ""},
    {{"--no-escape"}, Action::accept, ""},
    {{"--no-display-prompt"}, Action::accept, ""},
    {{"--no-context-shift"}, Action::accept, ""},
    {{"-no-cnv", "--no-conversation"}, Action::special, ""},
    {{"--simple-io"}, Action::accept, ""},
    {{"--log-disable"}, Action::accept, ""},
    {{"--perf", "--no-perf"}, Action::accept, ""},
    {{"--offline"}, Action::accept, ""},
    {{"-kvo", "--kv-offload"}, Action::accept, ""},
    {{"--repack"}, Action::accept, ""},
    {{"--jinja"}, Action::accept, ""},

    {{"--mlock"},
     Action::refuse,
     "weights can't be locked in memory; --weights copy or huge reads them all at the start"},
    {{"-lm", "--load-mode"}, Action::refuse, "--weights says where the weights are"},
    {{"-dio", "--direct-io"}, Action::refuse, "--weights says how the weights are read"},
    {{"-tb", "--threads-batch"},
     Action::refuse,
     "prompt and answer have the same threads (--threads)"},
    {{"-C", "--cpu-mask"}, Action::refuse, kPinning},
    {{"-Cr", "--cpu-range"}, Action::refuse, kPinning},
    {{"-Cb", "--cpu-mask-batch"}, Action::refuse, kPinning},
    {{"-Crb", "--cpu-range-batch"}, Action::refuse, kPinning},
    {{"--cpu-strict"}, Action::refuse, kPinning},
    {{"--numa"}, Action::refuse, kPinning},
    {{"--prio"}, Action::refuse, "start snapkv through nice to change its priority"},
    {{"--poll"}, Action::refuse, "OMP_WAIT_POLICY says how threads wait"},
    {{"--keep"}, Action::refuse, "the context is never shifted: the answer ends when it is full"},
    {{"--context-shift"},
     Action::refuse,
     "the context is never shifted: the answer ends when it is full; --kv-decode-limit bounds the "
     "cache instead"},
    {{"--swa-full"}, Action::refuse, "layers with a sliding window keep their window"},
    {{"-e", "--escape"},
     Action::refuse,
     "prompts are taken as they are; let the shell make the line breaks ($'a\\nb'), or use --file"},
    {{"--warmup"}, Action::refuse, "nothing is run before the prompt"},
    {{"--display-prompt", "--verbose-prompt"},
     Action::refuse,
     "stdout has the answer alone; snapkv tokenize shows a prompt's tokens"},
    {{"-nkvo", "--no-kv-offload"}, Action::refuse, "the cache is where the model runs"},
    {{"-nr", "--no-repack"}, Action::refuse, "weights are packed for a prompt's time only"},
    {{"-sm", "--split-mode"}, Action::refuse, kOneDevice},
    {{"-ts", "--tensor-split"}, Action::refuse, kOneDevice},
    {{"-mg", "--main-gpu"}, Action::refuse, kOneDevice},
    {{"-ot", "--override-tensor"}, Action::refuse, kOneDevice},
    {{"-cmoe", "--cpu-moe"}, Action::refuse, kOneDevice},
    {{"-ncmoe", "--n-cpu-moe"}, Action::refuse, kOneDevice},
    {{"-ncffn", "--n-cpu-ffn"}, Action::refuse, kOneDevice},
    {{"-dev", "--list-devices"}, Action::refuse, "--device names where the model runs"},
    {{"--rpc"}, Action::refuse, kOneDevice},
    {{"-fit", "--fit"},
     Action::refuse,
     "nothing is changed to fit; --kv-memory and --memory-limit bound the memory"},
    {{"-fitt", "--fit-target"}, Action::refuse, "--kv-memory and --memory-limit bound the memory"},
    {{"-fitc", "--fit-ctx"}, Action::refuse, "--kv-memory and --memory-limit bound the memory"},
    {{"-dt", "--defrag-thold"}, Action::refuse, "the cache has no gaps"},
    {{"-np"}, Action::rename, "--parallel"},
    {{"--parallel"}, Action::refuse, kNotInteractive},
    {{"-cb", "--cont-batching"}, Action::refuse, kNotInteractive},
    {{"--override-kv"}, Action::refuse, "a model runs as its file says"},
    {{"--lora", "--lora-scaled"}, Action::refuse, kNoLora},
    {{"--control-vector", "--control-vector-scaled"},
     Action::refuse,
     "control vectors are not supported"},
    {{"--rope-scale"}, Action::rename, "--yarn-factor"},
    {{"--rope-freq-base", "--rope-freq-scale"}, Action::refuse, kRotation},
    {{"--yarn-ext-factor", "--yarn-attn-factor"}, Action::refuse, kRotation},
    {{"--yarn-beta-slow", "--yarn-beta-fast"}, Action::refuse, kRotation},
    {{"-gan", "--grp-attn-n", "-gaw", "--grp-attn-w"},
     Action::refuse,
     "there is no self-extend here"},

    {{"-mu", "--model-url"}, Action::refuse, kPull},
    {{"-dr", "--docker-repo"},
     Action::refuse,
     "snapkv pull fetches from Hugging Face and URLs only"},
    {{"-hf", "-hfr", "--hf-repo"}, Action::refuse, kPull},
    {{"-hff", "--hf-file"}, Action::refuse, kPull},
    {{"-hft", "--hf-token"}, Action::refuse, "snapkv pull reads the token from HF_TOKEN"},
    {{"-cl", "--cache-list"}, Action::refuse, "snapkv models lists the models on this machine"},
    {{"-md", "--model-draft"}, Action::rename, "--draft-model"},
    {{"-cd", "--ctx-size-draft"}, Action::rename, "--draft-ctx"},
    {{"-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"}, Action::refuse, kOneDevice},
    {{"--draft-n"}, Action::refuse, kDraftMax},
    {{"-ctkd", "-ctvd"}, Action::refuse, "the cache of --draft-model is f16"},
    {{"-td", "--threads-draft"}, Action::refuse, "--draft-model has the threads of the model"},

    {{"--samplers", "--sampler-seq", "--sampling-seq"},
     Action::refuse,
     "the order of samplers is fixed: penalties, top-k, typical-p, top-p, min-p, temperature"},
    {{"--top-nsigma", "--top-n-sigma"}, Action::refuse, kNoSampler},
    {{"--xtc-probability", "--xtc-threshold"}, Action::refuse, kNoSampler},
    {{"--dry-multiplier", "--dry-base", "--dry-allowed-length", "--dry-penalty-last-n"},
     Action::refuse,
     kNoSampler},
    {{"--dry-sequence-breaker"}, Action::refuse, kNoSampler},
    {{"--adaptive-target", "--adaptive-decay"}, Action::refuse, kNoSampler},
    {{"--dynatemp-range", "--dynatemp-exp"}, Action::refuse, kNoSampler},
    {{"--mirostat", "--mirostat-lr", "--mirostat-ent"}, Action::refuse, kNoSampler},
    {{"-bs", "--backend-sampling"}, Action::refuse, "tokens are sampled on the host"},
    {{"--grammar", "--grammar-file"}, Action::refuse, kNoGrammar},
    {{"-j", "--json-schema", "--json-schema-file"}, Action::refuse, kNoGrammar},

    {{"-r", "--reverse-prompt"}, Action::refuse, "--stop TEXT ends an answer before a text"},
    {{"-i", "--interactive", "-if", "--interactive-first"}, Action::refuse, kNotInteractive},
    {{"-cnv", "--conversation"}, Action::refuse, kNotInteractive},
    {{"-st", "--single-turn"}, Action::refuse, kNotInteractive},
    {{"-mli", "--multiline-input"}, Action::refuse, kNotInteractive},
    {{"--in-prefix", "--in-suffix"}, Action::refuse, kNotInteractive},
    {{"--in-prefix-bos"}, Action::refuse, kNotInteractive},
    {{"-sysf", "--system-prompt-file"}, Action::refuse, "give the text itself with --system"},
    {{"-co", "--color"}, Action::refuse, "colours are used in a terminal unless NO_COLOR is set"},
    {{"-sp", "--special"}, Action::refuse, "control tokens are not printed"},
    {{"-ptc", "--print-token-count"}, Action::refuse, "the summary has the number of tokens"},
    {{"--prompt-cache"},
     Action::refuse,
     "--save-cache FILE writes a prompt's cache, --load-cache FILE continues from it"},
    {{"--prompt-cache-all", "--prompt-cache-ro"},
     Action::refuse,
     "--save-cache writes and --load-cache reads a prompt's cache"},
    {{"-lcs", "--lookup-cache-static", "-lcd", "--lookup-cache-dynamic"},
     Action::refuse,
     "--draft lookup guesses from the conversation itself"},
    {{"-lv", "--verbosity", "--log-verbosity"},
     Action::refuse,
     "--verbose prints the library's messages"},
    {{"--log-file"}, Action::refuse, "messages go to stderr"},
    {{"-rea", "--reasoning", "--reasoning-budget", "--reasoning-format"},
     Action::refuse,
     "reasoning is not told from the answer here"},
    {{"--no-jinja"},
     Action::refuse,
     "templates are always read as Jinja; --chat-template names a built-in format"},
    {{"-mm", "--mmproj", "-mmu", "--mmproj-url"}, Action::refuse, kNoPictures},
    {{"-to"}, Action::refuse, kTimeout},
    {{"-sps", "--slot-prompt-similarity"},
     Action::refuse,
     "any prompt that begins like an earlier one goes on from there (serve --reuse)"},
    {{"-cram", "--cache-ram"},
     Action::refuse,
     "serve --prefix-cache bounds what is kept of prompts"},
    {{"-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"},
     Action::refuse,
     "serve --prefix-cache bounds what is kept of prompts"},
    {{"-kvu", "--kv-unified"}, Action::accept, ""},
    {{"-nocb", "--no-cont-batching"},
     Action::refuse,
     "requests always share the model's steps; serve --parallel 1 answers one at a time"},

    // vLLM's
    {{"-tp", "--tensor-parallel-size"}, Action::refuse, kOneDevice},
    {{"-pp", "--pipeline-parallel-size"}, Action::refuse, kOneDevice},

    // ollama's
    {{"--think", "--hidethinking"}, Action::refuse, kReasoning},
    {{"--nowordwrap"},
     Action::refuse,
     "lines are wrapped at a terminal only; | cat leaves them as the model wrote them"},
    {{"--keepalive"},
     Action::refuse,
     "the model is loaded for this command alone; snapkv serve keeps it loaded"},
    {{"--format"}, Action::refuse, "--json-schema and --grammar say what an answer looks like"},
};

// The options of llama-server and of vLLM's server, and what some of those above mean to serve.
constexpr LlamaFlag kServerFlags[] = {
    {{"-cb", "--cont-batching"}, Action::accept, ""},
    {{"--metrics"}, Action::accept, ""},
    {{"--slots"}, Action::accept, ""},
    {{"--webui", "--ui"}, Action::accept, ""},
    {{"--cache-prompt"}, Action::accept, ""},
    {{"--enable-prefix-caching"}, Action::accept, ""},
    {{"--slot-save-path"}, Action::rename, "--snapshot-dir"},
    {{"--ssl-cert-file", "--ssl-certfile"}, Action::rename, "--tls-cert"},
    {{"--ssl-key-file", "--ssl-keyfile"}, Action::rename, "--tls-key"},
    {{"--served-model-name"}, Action::rename, "--alias"},
    {{"--max-model-len"}, Action::rename, "--ctx-size"},
    {{"--max-num-seqs"}, Action::rename, "--parallel"},

    {{"--no-webui", "--no-ui"}, Action::refuse, "the page is part of the server"},
    {{"--no-slots"}, Action::refuse, "GET /slots is always there; --api-key keeps strangers out"},
    {{"--props"}, Action::refuse, "GET /props is always there, and POST /props never"},
    {{"--path"}, Action::refuse, "the server has its own page and serves no other files"},
    {{"--api-prefix"}, Action::refuse, "a proxy in front of the server can add a prefix"},
    {{"--threads-http"}, Action::refuse, "--parallel is the number of answers at a time"},
    {{"--no-cache-prompt"}, Action::refuse, "--reuse off reads every prompt from its beginning"},
    {{"--cache-reuse"}, Action::refuse, "--reuse says what is read of a prompt that is known"},
    {{"--embedding", "--embeddings"}, Action::refuse, kServesText},
    {{"--rerank", "--reranking", "--pooling"}, Action::refuse, kServesText},
    {{"--models-dir", "--models-max", "--models-preset"}, Action::refuse, kOneModel},
    {{"--sleep-idle-seconds"}, Action::refuse, "the model stays loaded"},
    {{"-rea", "--reasoning", "--reasoning-budget", "--reasoning-format"},
     Action::refuse,
     "requests say it: \"reasoning_format\": \"none\", or \"chat_template_kwargs\": "
     "{\"enable_thinking\": false}"},
    {{"--grammar", "--grammar-file"}, Action::refuse, "requests bring their own: \"grammar\""},
    {{"-j", "--json-schema", "--json-schema-file"},
     Action::refuse,
     "requests bring their own: \"json_schema\""},
    {{"--gpu-memory-utilization"},
     Action::refuse,
     "--kv-memory is the memory of all caches together"},
    {{"--dtype"}, Action::refuse, "weights have the types of the file; see --compute"},
};

const LlamaFlag* find_flag(std::string_view name, const CLI::App& command) {
  const auto find = [&](std::span<const LlamaFlag> flags) -> const LlamaFlag* {
    for (const LlamaFlag& flag : flags) {
      if (!name.empty() && std::count(flag.names.begin(), flag.names.end(), name) > 0) return &flag;
    }
    return nullptr;
  };
  const LlamaFlag* const found = command.get_name() == "serve" ? find(kServerFlags) : nullptr;
  return found != nullptr ? found : find(kFlags);
}

// Returns the command that the arguments name; `begin` is where its own arguments start.
const CLI::App* find_command(const CLI::App& root, const std::vector<std::string>& args,
                             size_t& begin) {
  const CLI::App* command = &root;
  begin = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto subs =
        command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == args[i]; });
    if (subs.empty()) {
      if (command != &root) break;
      continue;
    }
    command = subs.front();
    begin = i + 1;
  }
  return command;
}

class Translator {
 public:
  Translator(const CLI::App& command, const std::vector<std::string>& args, size_t begin)
      : command_(command), args_(args), at_(begin), out_(args.begin(), args.begin() + begin) {}

  std::vector<std::string> run() {
    while (at_ < args_.size()) take_argument();
    finish();
    return std::move(out_);
  }

 private:
  const CLI::Option* option(const std::string& name) const {
    for (const CLI::App* app = &command_; app != nullptr; app = app->get_parent()) {
      if (const CLI::Option* found = app->get_option_no_throw(name)) return found;
    }
    return nullptr;
  }

  void take_argument() {
    const std::string arg = args_[at_++];
    const size_t equals = arg.rfind("--", 0) == 0 ? arg.find('=') : std::string::npos;
    const std::string name = arg.substr(0, equals);
    if (name.size() < 2 || name[0] != '-') {
      out_.push_back(arg);
      return;
    }
    const bool has_dashes = name.rfind("--", 0) == 0;
    const CLI::Option* const own = has_dashes || name.size() == 2 ? option(name) : nullptr;
    if (own != nullptr) {
      out_.push_back(arg);
      const bool takes_value = own->get_expected_min() > 0 && equals == std::string::npos;
      if (takes_value && at_ < args_.size()) out_.push_back(args_[at_++]);
      return;
    }
    const LlamaFlag* const flag = find_flag(name, command_);
    if (flag == nullptr) {
      out_.push_back(arg);
      return;
    }
    std::optional<std::string> attached;
    if (equals != std::string::npos) attached = arg.substr(equals + 1);
    apply(*flag, name, attached);
  }

  void apply(const LlamaFlag& flag, const std::string& name,
             const std::optional<std::string>& attached) {
    if (flag.action == Action::refuse) fail(ErrorCode::kUsage, "{}: {}", name, flag.text);
    if (flag.action == Action::accept) return;
    if (name == "-fa" || name == "--flash-attn") return apply_flash_attention(name, attached);
    if (name == "-no-cnv" || name == "--no-conversation") {
      if (option("--no-chat") != nullptr) out_.emplace_back("--no-chat");
      return;
    }
    if (name == "--no-mmap") return rename(name, "--weights", std::string("copy"));
    std::string value;
    if (attached) {
      value = *attached;
    } else if (at_ < args_.size()) {
      value = args_[at_++];
    } else {
      fail(ErrorCode::kUsage, "{}: 1 value is missing", name);
    }
    if (flag.action == Action::rename) return rename(name, flag.text, value);
    if (name == "-ngl") {
      return rename(name, "--gpu-layers", value == "all" ? "999" : value == "auto" ? "-1" : value);
    }
    if (name == "-ctk" || name == "--cache-type-k") {
      key_type_ = value;
    } else if (name == "-ctv" || name == "--cache-type-v") {
      value_type_ = value;
    } else if (name == "-b" || name == "--batch-size") {
      batch_ = tokens(name, value);
    } else {
      micro_batch_ = tokens(name, value);
    }
  }

  void rename(const std::string& name, const std::string& to, const std::string& value) {
    if (option(to) == nullptr) {
      fail(ErrorCode::kUsage, "{}: snapkv {} has no {}", name, command_.get_name(), to);
    }
    out_.push_back(to);
    out_.push_back(value);
  }

  // Flash attention is always "on" here; without a value the option means the same.
  void apply_flash_attention(const std::string& name, const std::optional<std::string>& attached) {
    static constexpr std::string_view kOn[] = {"on", "auto", "1", "true", "enabled"};
    static constexpr std::string_view kOff[] = {"off", "0", "false", "disabled"};
    const auto among = [](const auto& words, const std::string& word) {
      return std::find(std::begin(words), std::end(words), word) != std::end(words);
    };
    std::string word = attached.value_or(at_ < args_.size() ? args_[at_] : "on");
    if (!among(kOn, word) && !among(kOff, word)) {
      if (attached) fail(ErrorCode::kUsage, "{}: '{}' is not on, off or auto", name, word);
      word = "on";
    } else if (!attached && at_ < args_.size()) {
      ++at_;
    }
    if (among(kOff, word)) {
      fail(ErrorCode::kUsage, "{} {}: attention is always computed without the matrix of scores",
           name, word);
    }
  }

  static int64_t tokens(const std::string& name, const std::string& text) {
    const std::optional<int64_t> n = parse_whole(text);
    if (!n || *n < 1) {
      fail(ErrorCode::kUsage, "{}: '{}' is not a whole number of 1 or more", name, text);
    }
    return *n;
  }

  void finish() {
    // llama.cpp computes as many tokens at a time as both limits allow; these are its defaults
    if (batch_ || micro_batch_) {
      const int64_t chunk = std::min(batch_.value_or(2048), micro_batch_.value_or(512));
      rename(batch_ ? "-b" : "-ub", "--chunk", std::to_string(chunk));
    }
    if (!key_type_ && !value_type_) return;
    if (key_type_.value_or("f16") != value_type_.value_or("f16")) {
      fail(ErrorCode::kUsage,
           "-ctk {} and -ctv {}: keys and values have one type here; give both the same, or "
           "--kv-type",
           key_type_.value_or("f16 (the default)"), value_type_.value_or("f16 (the default)"));
    }
    rename(key_type_ ? "-ctk" : "-ctv", "--kv-type", key_type_.value_or("f16"));
  }

  const CLI::App& command_;
  const std::vector<std::string>& args_;
  size_t at_;
  std::vector<std::string> out_;
  std::optional<std::string> key_type_, value_type_;
  std::optional<int64_t> batch_, micro_batch_;
};

}  // namespace

std::vector<std::string> usable_llama_flags() {
  std::vector<std::string> names;
  for (const LlamaFlag& flag : kFlags) {
    if (flag.action == Action::refuse) continue;
    for (const std::string_view name : flag.names) {
      if (name.starts_with("--")) names.emplace_back(name);
    }
  }
  return names;
}

std::vector<std::string> translate_llama_flags(const CLI::App& root,
                                               const std::vector<std::string>& args) {
  size_t begin = 0;
  const CLI::App* const command = find_command(root, args, begin);
  if (command == &root) return args;
  return Translator(*command, args, begin).run();
}

}  // namespace snapkv::cli
