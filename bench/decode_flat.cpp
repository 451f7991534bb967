// SPDX-License-Identifier: MIT
// snapkv-bench-flat MODEL TURN BUDGET ROUNDS LENGTH...: measures whether a generated token costs
// the same after prompts of any length. One session per LENGTH reads that many random tokens, TURN
// at a time like a conversation (if TURN >= LENGTH, as one prompt), and is compressed to BUDGET
// rows after each turn. Then the sessions decode in turns, so that a disturbance of the machine
// affects all of them (docs/performance.md).
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "snapkv/engine.h"

namespace snapkv {
namespace {

constexpr int kSteps = 64;  // per round

int64_t number(const char* what, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    fail(ErrorCode::kUsage, "{} is '{}'; it must be a number from 1", what, text);
  }
  return value;
}

class RandomTokens {
 public:
  explicit RandomTokens(int64_t n_vocab) : n_vocab_(n_vocab) {}
  int32_t next() {  // never one of the control tokens 0 to 2
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int32_t>(3 + (state_ >> 33) % static_cast<uint64_t>(n_vocab_ - 3));
  }

 private:
  int64_t n_vocab_;
  uint64_t state_ = 1;
};

struct Line {
  int64_t length;
  Session session;
  std::vector<double> rates = {};  // tokens per second in each round
};

void read(Line& line, int64_t turn, RandomTokens& random) {
  for (int64_t n = 0; n < line.length; n += turn) {
    std::vector<int32_t> tokens(static_cast<size_t>(std::min(turn, line.length - n)));
    for (int32_t& id : tokens) id = random.next();
    line.session.prefill(tokens);
    fmt::print(stderr, "\r{} of {} tokens ", n + std::ssize(tokens), line.length);
  }
  fmt::print(stderr, "\n");
}

void decode(Line& line, RandomTokens& random, bool counts) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) line.session.decode(random.next());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (counts) line.rates.push_back(kSteps / seconds.count());
}

int run(int argc, char** argv) {
  if (argc < 6) {
    fail(ErrorCode::kUsage, "usage: snapkv-bench-flat MODEL TURN BUDGET ROUNDS LENGTH...");
  }
  const int64_t turn = number("TURN", argv[2]), rounds = number("ROUNDS", argv[4]);
  SessionOptions options;
  options.kv.budget = number("BUDGET", argv[3]);
  options.n_ctx = int64_t{1} << 30;
  const auto model = Model::load({.path = argv[1], .weights = WeightMemory::huge_pages});
  RandomTokens random(model->info().n_vocab);
  std::vector<Line> lines;
  for (int i = 5; i < argc; ++i) {
    lines.push_back({number("LENGTH", argv[i]), Session(model, options)});
  }
  for (Line& line : lines) read(line, turn, random);
  fmt::print(stderr, "decoding\n");
  for (int64_t round = 0; round <= rounds; ++round) {
    for (Line& line : lines) decode(line, random, round > 0);  // the first round is a warm-up
  }
  fmt::print("{}, budget {}, {} tokens a turn, {} rounds of {} steps\n\n",
             model->backend_description(), options.kv.budget, turn, rounds, kSteps);
  fmt::print("| tokens read | KV MiB | of a full cache | best tok/s | mean | best, first = 1 |\n");
  fmt::print("| ---: | ---: | ---: | ---: | ---: | ---: |\n");
  const auto best_of = [](const Line& l) {
    return *std::max_element(l.rates.begin(), l.rates.end());
  };
  for (const Line& l : lines) {
    double sum = 0;
    for (const double rate : l.rates) sum += rate;
    const SessionStats& s = l.session.stats();
    fmt::print("| {} | {:.1f} | {:.0f} | {:.2f} | {:.2f} | {:.3f} |\n", l.length,
               static_cast<double>(s.kv_bytes_used) / (1 << 20),
               static_cast<double>(s.kv_bytes_full) / (1 << 20), best_of(l),
               sum / static_cast<double>(l.rates.size()), best_of(l) / best_of(lines[0]));
  }
  return 0;
}

}  // namespace
}  // namespace snapkv

int main(int argc, char** argv) {
  try {
    return snapkv::run(argc, argv);
  } catch (const snapkv::Error& e) {
    fmt::print(stderr, "snapkv-bench-flat: {}\n", e.what());
    return static_cast<int>(e.code());
  }
}
