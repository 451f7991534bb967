// SPDX-License-Identifier: MIT
// Hostile models from loading to answering: tiny valid models with damaged headers and weights are
// loaded, read a prompt and answer. Each succeeds or gives an Error, and soon. A few hundred are
// tried; SNAPKV_FUZZ_SECONDS=N continues for N seconds (`make fuzz`), SNAPKV_FUZZ_SEED=N begins at
// another damage.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "bench/random_model.h"
#include "format/gguf.h"
#include "snapkv/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace hostile_model_tests {

constexpr double kMostSeconds = 5;  // of processor time per model

struct Base {
  std::vector<std::byte> bytes;
  size_t data_offset;  // where the header ends
};

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::vector<Base> bases(const TempDir& folder) {
  const RandomModelShape shape = {.n_embd = 32,
                                  .n_layer = 2,
                                  .n_head = 2,
                                  .n_head_kv = 1,
                                  .head_dim = 32,
                                  .n_ff = 64,
                                  .n_vocab = 300};
  std::vector<std::string> paths;
  for (const DType dtype : {DType::f32, DType::q8_0}) {
    paths.push_back(folder / std::string(name(dtype)));
    write_random_model(paths.back(), shape, {.dtype = dtype});
  }
  for (const char* family : {"gemma3", "phi3", "gpt2"}) paths.push_back(model_path(family));
  std::vector<Base> all;
  for (const std::string& path : paths) {
    size_t first = std::numeric_limits<size_t>::max();
    const GgufFile file = GgufFile::open(path);
    for (const GgufTensor& t : file.tensors()) {
      first = std::min<size_t>(first, t.file_offset);
    }
    all.push_back({bytes_of(path), first});
  }
  return all;
}

class Damager {
 public:
  explicit Damager(uint64_t seed) : random_(seed) {}

  std::vector<std::byte> damaged(const Base& base) {
    std::vector<std::byte> bytes = base.bytes;
    const int n = 1 + static_cast<int>(below(3));
    for (int i = 0; i < n; ++i) damage(bytes, base.data_offset);
    if (below(50) == 0) bytes.resize(below(bytes.size()));
    return bytes;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }

  template <typename T>
  void put(std::vector<std::byte>& bytes, size_t at, T value) {
    if (at + sizeof value <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof value);
  }

  void damage(std::vector<std::byte>& bytes, size_t data_offset) {
    static constexpr int64_t kWhole[] = {0,       1,         2,         3,          -1,
                                         7,       33,        255,       256,        1 << 16,
                                         1 << 30, INT32_MAX, 1 << 20,   0xffffffff, 1LL << 32,
                                         1000,    1LL << 40, INT64_MAX, INT64_MIN};
    static constexpr float kReal[] = {0.0f,   -1.0f, 1e-45f, 1e38f, INFINITY,
                                      -1e-9f, NAN,   1.0f,   1e-9f, 3.4e38f};
    const size_t at = below(data_offset);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<std::byte>(below(256));
        break;
      case 1:
        bytes[at] ^= static_cast<std::byte>(1 << below(8));
        break;
      case 2:
        put(bytes, at, static_cast<int32_t>(kWhole[below(std::size(kWhole))]));
        break;
      case 3:
        put(bytes, at, kWhole[below(std::size(kWhole))]);
        break;
      case 4:
        put(bytes, at, kReal[below(std::size(kReal))]);
        break;
      default:  // a weight
        put(bytes, data_offset + below((bytes.size() - data_offset) / 4) * 4,
            kReal[below(std::size(kReal))]);
    }
  }

  std::mt19937_64 random_;
};

/// Loads the model and answers; returns whether the model could be used.
bool load_and_answer(const std::string& path) {
  const auto model = Model::load({.path = path, .compute = Compute::f32, .n_threads = 1});
  SessionOptions options;
  options.n_ctx = 64;
  options.kv = {.budget = 10, .window_size = 4};
  options.memory_limit = size_t{256} << 20;
  Session session(model, options);
  std::vector<int32_t> ids = model->tokenize("one two three one two");
  for (int32_t& id : ids) id = std::clamp<int32_t>(id, 0, model->info().n_vocab - 1);
  ids.resize(24, 0);
  session.prefill(ids);
  Sampler sampler({});
  for (int i = 0; i < 2; ++i) session.decode(sampler.sample(session.logits()));
  return true;
}

double setting(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * usage.ru_utime.tv_usec;
}

TEST(HostileModel, EndsWellOrWithAnError) {
  using Clock = std::chrono::steady_clock;
  TempDir folder;
  const std::vector<Base> all = bases(folder);
  // This file stays there if the process dies.
  const std::string path = testing::TempDir() + "snapkv-hostile-" + std::to_string(getpid());
  const double seconds = setting("SNAPKV_FUZZ_SECONDS", 0);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto seed = static_cast<uint64_t>(setting("SNAPKV_FUZZ_SEED", 1));
  int n_tried = 0, n_worked = 0;
  for (; seconds > 0 ? Clock::now() < end : n_tried < 300; ++n_tried, ++seed) {
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, path));
    write_bytes(path, Damager(seed).damaged(all[seed % all.size()]));
    const double before = cpu_seconds();
    try {
      n_worked += load_and_answer(path);
    } catch (const Error& e) {
      EXPECT_FALSE(std::string(e.what()).empty());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "not an Error: " << e.what();
    }
    EXPECT_LT(cpu_seconds() - before, kMostSeconds);
    if (HasFailure()) return;
  }
  std::remove(path.c_str());
  fmt::print("{} models, {} of them usable\n", n_tried, n_worked);
  EXPECT_GT(n_worked, n_tried / 10) << "damage is too heavy to reach the computation";
  EXPECT_LT(n_worked, n_tried) << "damage does nothing";
}

}  // namespace hostile_model_tests
}  // namespace snapkv::test
