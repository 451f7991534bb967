// SPDX-License-Identifier: MIT
#include "cli/demo/needle_task.h"

#include <fmt/core.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"

namespace snapkv::cli {
namespace {

// One sentence of filler; paragraphs are 3 to 7 of them on one line.
struct Sentence {
  std::string text;
  bool ends_line = false;
  int64_t n_tokens = 0;  // about: counted alone
};

std::string random_digits(eval::Random& random) {
  std::string digits;
  for (int i = 0; i < 5; ++i) digits += static_cast<char>('0' + random.below(10));
  return digits;
}

int64_t count_tokens(const Model& model, const std::string& text) {
  return std::ssize(model.tokenize(text, false));
}

// Sentences that fill about `room` tokens.
std::vector<Sentence> make_filler(const Model& model, const eval::Haystack& haystack,
                                  eval::Random& random, int64_t room) {
  std::vector<Sentence> sentences;
  int64_t n_tokens = 0;
  while (n_tokens < room) {
    for (size_t left = 3 + random.below(5); left > 0 && n_tokens < room; --left) {
      Sentence s{.text = haystack.sentence(random), .ends_line = left == 1};
      s.n_tokens = count_tokens(model, s.text) + (s.ends_line ? 1 : 0);
      n_tokens += s.n_tokens;
      sentences.push_back(std::move(s));
    }
  }
  return sentences;
}

// Puts the sentences, the fact and the question together; the fact stands after the line that ends
// closest to its depth.
void assemble(const std::vector<Sentence>& sentences, double depth, NeedlePrompt& prompt) {
  prompt.lines.clear();
  std::vector<int64_t> ends = {0};  // tokens before each line's beginning
  std::string line;
  int64_t n_tokens = 0;
  for (size_t i = 0; i < sentences.size(); ++i) {
    line += (line.empty() ? "" : " ") + sentences[i].text;
    n_tokens += sentences[i].n_tokens;
    if (!sentences[i].ends_line && i + 1 < sentences.size()) continue;
    prompt.lines.push_back(std::exchange(line, {}));
    ends.push_back(n_tokens);
  }
  const double target = depth * static_cast<double>(n_tokens);
  const auto distance = [&](size_t at) { return std::abs(static_cast<double>(ends[at]) - target); };
  size_t at = 0;
  for (size_t i = 1; i < ends.size(); ++i) {
    if (distance(i) < distance(at)) at = i;
  }
  prompt.fact_line = at;
  prompt.fact_token = ends[at];
  prompt.text.clear();
  for (size_t i = 0; i <= prompt.lines.size(); ++i) {
    if (i == at) prompt.text += "\n" + prompt.fact + "\n";
    if (i < prompt.lines.size()) prompt.text += prompt.lines[i] + "\n";
  }
  prompt.text += prompt.question;
}

std::string find_needle_model(const ModelSettings& settings) {
  if (!settings.path.empty()) return settings.path;
  std::vector<std::filesystem::path> places = {"models/needle.gguf"};
  std::error_code error;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back((binary.parent_path() / "../share/snapkv/needle.gguf").lexically_normal());
  }
  std::string tried;
  for (const auto& place : places) {
    if (std::filesystem::is_regular_file(place, error)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  fail(ErrorCode::kUsage, "found no needle model ({}): name it with -m FILE or SNAPKV_MODEL",
       tried);
}

}  // namespace

CacheSettings needle_cache_defaults() {
  CacheSettings cache;
  cache.params = {{"budget", 128}, {"window_size", 16}, {"kernel_size", 15}};
  return cache;
}

void add_needle_task_options(CLI::App& app, NeedleTaskSettings& settings, const char* seed_help) {
  app.add_option("--seed", settings.seed, seed_help)->type_name("N")->capture_default_str();
  add_model_options(app, settings.model);
  add_running_options(app, settings.model);
  add_cache_options(app, settings.cache);
}

std::shared_ptr<const Model> load_needle_model(const ModelSettings& settings, ProgressFn progress) {
  ModelSettings found = settings;
  found.path = find_needle_model(settings);
  return load_model(found, std::move(progress));
}

const std::vector<std::string>& needle_names() {
  static const std::vector<std::string> kNames = {
      "Rome",     "Seoul",    "Nice",    "Paris",    "London",   "Berlin",  "Cairo",   "Delhi",
      "Athens",   "Prague",   "Warsaw",  "Denver",   "Dallas",   "Austin",  "Seattle", "Perth",
      "Milan",    "Naples",   "Riga",    "Ghent",    "Lille",    "Nantes",  "Porto",   "Dakar",
      "Lagos",    "Accra",    "Rabat",   "Amman",    "Beirut",   "Doha",    "Kabul",   "Quito",
      "Madrid",   "Moscow",   "Miami",   "Montreal", "Florence", "Munich",  "Bremen",  "Tallinn",
      "Aarhus",   "Toulouse", "Tehran",  "Lahore",   "Mumbai",   "Beijing", "Phoenix", "Sydney",
      "Auckland", "Hamburg",  "Bangkok", "Leipzig",  "Stockholm"};
  return kNames;
}

NeedlePrompt make_needle_prompt(const Model& model, const eval::Haystack& haystack,
                                const NeedleSpec& spec) {
  eval::Random random(spec.seed);
  NeedlePrompt prompt;
  const std::string& drawn = needle_names()[random.below(needle_names().size())];
  prompt.name = spec.name.empty() ? drawn : spec.name;
  prompt.digits = random_digits(random);
  prompt.fact = fmt::format("The secret number of {} is {}.", prompt.name, prompt.digits);
  prompt.question = fmt::format(
      "\nQuestion: What is the secret number of {0}?\nAnswer: The secret number of {0} is",
      prompt.name);
  const int64_t n_fixed =
      std::ssize(model.tokenize("\n" + prompt.fact + "\n")) + count_tokens(model, prompt.question);
  std::vector<Sentence> sentences =
      make_filler(model, haystack, random, std::max<int64_t>(0, spec.length - n_fixed));
  for (;;) {
    assemble(sentences, spec.depth, prompt);
    prompt.tokens = model.tokenize(prompt.text);
    if (std::ssize(prompt.tokens) <= spec.length) return prompt;
    if (sentences.empty()) break;
    sentences.pop_back();
  }
  fail(ErrorCode::kUsage,
       "a length of {} tokens has no room for the question: at least {} are needed", spec.length,
       prompt.tokens.size());
}

std::string answer_of(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_first_of(".\n")));
}

NeedleRun run_needle(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                     const NeedlePrompt& prompt, int64_t n_predict, const ProgressFn& progress) {
  NeedleRun run;
  Session session(model, options);
  session.prefill(prompt.tokens, {.progress = progress});
  run.after_prefill = session.stats();
  Sampler sampler({.temperature = 0});
  generate(session, sampler, {.n_predict = n_predict}, {}, run.generation);
  if (run.generation.stop_reason == StopReason::cancelled) fail(ErrorCode::kCancelled, "cancelled");
  run.at_end = session.stats();
  run.answer = answer_of(run.generation.text);
  run.right = run.answer.substr(0, prompt.digits.size()) == prompt.digits;
  return run;
}

}  // namespace snapkv::cli
