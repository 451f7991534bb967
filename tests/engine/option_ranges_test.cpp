// SPDX-License-Identifier: MIT
// Every number in SessionOptions, ModelOptions, PrefillOptions, SamplerConfig and the C API: the
// ends of its range work; values beyond give kUsage with the field's name, the value and the range.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "snapkv/compress.h"
#include "snapkv/engine.h"
#include "snapkv/snapkv.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace option_ranges_tests {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

/// A field of an options struct: how to set it, and its range.
template <typename Options>
struct Field {
  std::string name;
  std::function<void(Options&, int64_t)> set;
  int64_t low, high;
};

/// Calls `use` with each field at the ends of its range, and beyond.
template <typename Options>
void try_fields(const std::vector<Field<Options>>& fields,
                const std::function<void(const Options&)>& use) {
  for (const Field<Options>& field : fields) {
    for (const int64_t value : {field.low, field.high}) {
      SCOPED_TRACE(field.name + " " + std::to_string(value));
      Options options;
      field.set(options, value);
      EXPECT_NO_THROW(use(options));
    }
    std::vector<int64_t> beyond = {kLowest, kLowest + 1, -1, kHighest, kHighest - 255};
    if (field.low > kLowest) beyond.push_back(field.low - 1);
    if (field.high < kHighest) beyond.push_back(field.high + 1);
    for (const int64_t value : beyond) {
      if (value >= field.low && value <= field.high) continue;
      SCOPED_TRACE(field.name + " " + std::to_string(value));
      Options options;
      field.set(options, value);
      const std::string high =
          field.high == static_cast<int64_t>(kMostBytes) ? "1 EiB" : std::to_string(field.high);
      expect_error(ErrorCode::kUsage, {field.name, high}, [&] { use(options); });
    }
  }
}

TEST(OptionRanges, SessionOptions) {
  using F = Field<SessionOptions>;
  const int64_t bytes = static_cast<int64_t>(kMostBytes);
  const std::vector<F> fields = {
      {"n_ctx", [](auto& o, int64_t v) { o.n_ctx = v; }, 0, kMostTokens},
      {"chunk", [](auto& o, int64_t v) { o.chunk = v; }, 0, kMostChunk},
      {"decode_reserve", [](auto& o, int64_t v) { o.decode_reserve = v; }, 1, kMostReserve},
      {"kv_decode_limit", [](auto& o, int64_t v) { o.kv_decode_limit = v; }, 0, kMostTokens},
      {"kv_memory", [](auto& o, int64_t v) { o.kv_memory = v; }, 0, bytes},
      {"memory_limit", [](auto& o, int64_t v) { o.memory_limit = v; }, 0, bytes}};
  const std::shared_ptr<const Model> model = load_model("tiny-f32");
  const ModelInfo& info = model->info();
  try_fields<SessionOptions>(fields, [&](const SessionOptions& options) {
    resolve_options(options, info);
    for (const int64_t n : {int64_t{1}, int64_t{300}, kMostTokens}) {
      const MemoryPlan plan = plan_memory(info, options, n);
      EXPECT_GE(plan.total(), plan.weights) << "no overflow";
      EXPECT_LT(plan.total(), size_t{1} << 62);
    }
    Session(model, options);
  });
  for (const int64_t n : {kLowest, int64_t{-1}, int64_t{0}, int64_t{1} << 31, kHighest}) {
    expect_error(ErrorCode::kUsage, {"n_tokens is " + std::to_string(n)},
                 [&] { plan_memory(info, {}, n); });
  }
  SessionOptions wrong_type;
  wrong_type.kv_type = DType::q4_k;
  expect_error(ErrorCode::kUsage, {"kv_type", "q4_k"}, [&] { resolve_options(wrong_type, info); });
  wrong_type.kv_type = static_cast<DType>(77);
  expect_error(ErrorCode::kUsage, {"kv_type"}, [&] { resolve_options(wrong_type, info); });
}

// A session can really have the largest reserve.
TEST(OptionRanges, TheLargestReserveWorks) {
  Session session(load_model("tiny-f32"),
                  {.kv = {.budget = 40, .window_size = 8}, .decode_reserve = kMostReserve / 64});
  const std::vector<int32_t> prompt = generated_ids(60, 256, 1);
  session.prefill(prompt);
  session.decode(7);
  EXPECT_EQ(session.n_past(), 61);
  Session most(load_model("tiny-f32"), {.decode_reserve = kMostReserve, .memory_limit = 100 << 20});
  expect_error(ErrorCode::kDoesNotFit, {"MiB"}, [&] { most.prefill(prompt); });
}

// Every parameter of every policy, from the tables.
TEST(OptionRanges, PolicyParameters) {
  int n = 0;
  for (const PolicyInfo& policy : all_policies()) {
    for (const PolicyParam& param : policy.params) {
      if (param.type != PolicyParam::Type::integer && param.type != PolicyParam::Type::real) {
        continue;
      }
      SCOPED_TRACE(policy.name + " " + param.name);
      const bool real = param.type == PolicyParam::Type::real;
      const auto set = [&](const PolicyValue& value) {
        PolicyConfig config{.name = policy.name};
        if (param.name != "budget") config.budget = std::numeric_limits<int32_t>::max();
        set_param(config, param.name, value);
        validate(config);
      };
      EXPECT_TRUE(std::isfinite(param.least) && std::isfinite(param.most)) << "a stated range";
      if (param.name == "budget") {
        set(int64_t{100});  // must exceed the window plus the sinks
      } else if (real) {
        EXPECT_NO_THROW(set(param.least));
      } else {
        EXPECT_NO_THROW(set(static_cast<int64_t>(param.least)));
      }
      std::vector<PolicyValue> beyond = {std::string("nan")};
      if (real) {
        beyond.insert(beyond.end(), {param.least - 1e-9, param.most + 1e-9, double{NAN},
                                     double{INFINITY}, -double{INFINITY}, kHighest});
      } else {
        beyond.insert(beyond.end(), {static_cast<int64_t>(param.least) - 1, kLowest, double{NAN}});
        if (param.most < 0x1p63) {
          beyond.insert(beyond.end(), {static_cast<int64_t>(param.most) + 1, kHighest});
        }
      }
      for (const PolicyValue& value : beyond) {
        expect_error(ErrorCode::kUsage, {param.name, value_text(value)}, [&] { set(value); });
      }
      ++n;
    }
  }
  EXPECT_GT(n, 40);
}

TEST(OptionRanges, ModelAndPrefillOptions) {
  for (const int n : {-1, kMostThreads + 1, std::numeric_limits<int>::min()}) {
    expect_error(ErrorCode::kUsage, {"n_threads", std::to_string(n), "4096"},
                 [&] { Model::load({.path = model_path("tiny-f32"), .n_threads = n}); });
    expect_error(ErrorCode::kUsage, {"n_threads", std::to_string(n)},
                 [&] { Compressor({}, {.n_threads = n}); });
  }
  expect_error(ErrorCode::kUsage, {"device is tpu; it must be auto, cpu, cuda or reference"},
               [&] { Model::load({.path = model_path("tiny-f32"), .device = "tpu"}); });
  expect_error(ErrorCode::kUsage, {"compute is -1"}, [&] {
    Model::load({.path = model_path("tiny-f32"), .compute = static_cast<Compute>(-1)});
  });
  expect_error(ErrorCode::kUsage, {"weights is 4"}, [&] {
    Model::load({.path = model_path("tiny-f32"), .weights = static_cast<WeightMemory>(4)});
  });
  for (const char* device : {"auto", "tpu"}) {  // "auto" does not say where the views are
    expect_error(ErrorCode::kUsage,
                 {"device is " + std::string(device), "it must be cpu, cuda or reference"},
                 [&] { Compressor({}, {.device = device}); });
  }
  const std::vector<int32_t> prompt = generated_ids(20, 256, 1);
  for (const int64_t n : {kLowest, int64_t{-1}, int64_t{0}, kMostTokens + 1, kHighest}) {
    Session session(load_model("tiny-f32"), {});
    expect_error(ErrorCode::kUsage, {"n_logits is " + std::to_string(n)},
                 [&] { session.prefill(prompt, {.n_logits = n}); });
    EXPECT_EQ(session.n_past(), 0);
  }
  Session session(load_model("tiny-f32"), {});
  session.prefill(prompt, {.n_logits = kMostTokens});
  EXPECT_EQ(session.prefill_logits(19).size(), 512u);
}

TEST(OptionRanges, SamplerConfig) {
  struct Real {
    const char* name;
    double SamplerConfig::*field;
    double low, high;
  };
  const Real reals[] = {{"temperature", &SamplerConfig::temperature, 0, 1000},
                        {"top_p", &SamplerConfig::top_p, 0, 1},
                        {"min_p", &SamplerConfig::min_p, 0, 1},
                        {"repeat_penalty", &SamplerConfig::repeat_penalty, 0.001, 1000}};
  const std::vector<float> logits = {3.0f, -1e30f, 2.5f, 1e30f, 0.0f};
  const std::vector<int32_t> seen = {0, 1, 2, 3};
  for (const Real& real : reals) {
    for (const double value : {real.low, real.high}) {
      SamplerConfig config;
      config.*real.field = value;
      Sampler sampler(config);
      sampler.accept(seen);
      const int32_t id = sampler.sample(logits);
      EXPECT_TRUE(id >= 0 && id < 5) << real.name;
    }
    for (const double value : {real.low - 1e-9, real.high + 1e-6, double{NAN}, double{INFINITY},
                               -double{INFINITY}, -1e-300}) {
      SamplerConfig config;
      config.*real.field = value;
      expect_error(ErrorCode::kUsage, {real.name}, [&] { Sampler sampler(config); });
    }
  }
  for (const int value : {-1, std::numeric_limits<int>::min()}) {
    expect_error(ErrorCode::kUsage, {"top_k"}, [&] { Sampler sampler({.top_k = value}); });
    expect_error(ErrorCode::kUsage, {"repeat_last_n"},
                 [&] { Sampler sampler({.repeat_last_n = value - (value == -1 ? 1 : 0)}); });
  }
  for (const int value : {0, 1, std::numeric_limits<int>::max()}) {
    Sampler sampler({.top_k = value, .repeat_last_n = value});
    sampler.accept(seen);
    EXPECT_NO_THROW(sampler.sample(logits));
  }
}

// ---------------------------------------------------------------- the C API

struct CLayer {
  static constexpr int64_t kTokens = 120, kHeads = 4, kHeadsKv = 2, kDim = 16, kWindow = 8;
  std::vector<float> q = std::vector<float>(kWindow * kHeads * kDim, 0.5f);
  std::vector<float> k = std::vector<float>(kTokens * kHeadsKv * kDim, 0.25f);
  snapkv_layer layer{};
  snapkv_compressor* compressor = nullptr;
  char error[256] = "";

  CLayer() {
    layer.n_tokens = kTokens, layer.n_window = kWindow;
    layer.n_head = kHeads, layer.n_head_kv = kHeadsKv, layer.head_dim = kDim;
    layer.q = {q.data(), SNAPKV_F32, kDim, kHeads * kDim};
    layer.k = {k.data(), SNAPKV_F32, kDim, kHeadsKv * kDim};
    layer.n_layer = 1;
    snapkv_policy policy = snapkv_default_policy();
    policy.budget = 30, policy.window_size = kWindow;
    compressor = snapkv_compressor_new(&policy, SNAPKV_CPU, nullptr, error, sizeof error);
  }
  ~CLayer() { snapkv_compressor_free(compressor); }
  int select(const snapkv_layer& l, int64_t capacity = 60) {
    std::vector<int32_t> rows(kHeads * 60), n(kHeads);
    return snapkv_select(compressor, &l, capacity, rows.data(), n.data(), error, sizeof error);
  }
};

TEST(OptionRanges, CApiLayer) {
  CLayer c;
  ASSERT_NE(c.compressor, nullptr) << c.error;
  ASSERT_EQ(c.select(c.layer), SNAPKV_OK) << c.error;
  using Set = std::function<void(snapkv_layer&, int64_t)>;
  const std::pair<const char*, Set> fields[] = {
      {"n_tokens", [](auto& l, int64_t v) { l.n_tokens = v; }},
      {"n_window", [](auto& l, int64_t v) { l.n_window = v; }},
      {"n_head", [](auto& l, int64_t v) { l.n_head = v; }},
      {"n_head_kv", [](auto& l, int64_t v) { l.n_head_kv = v; }},
      {"head_dim", [](auto& l, int64_t v) { l.head_dim = v; }},
      {"head_stride", [](auto& l, int64_t v) { l.k.head_stride = v; }},
      {"row_stride", [](auto& l, int64_t v) { l.k.row_stride = v; }},
      {"head_stride", [](auto& l, int64_t v) { l.q.head_stride = v; }},
      {"il", [](auto& l, int64_t v) { l.il = static_cast<int>(v >> 32) | 1 << 30; }}};
  for (const auto& [name, set] : fields) {
    for (const int64_t value : {kLowest, int64_t{-1}, int64_t{0}, int64_t{1} << 62, kHighest}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(value));
      snapkv_layer wrong = c.layer;
      set(wrong, value);
      EXPECT_EQ(c.select(wrong), SNAPKV_ERROR_USAGE);
      EXPECT_NE(std::string(c.error).find(name), std::string::npos) << c.error;
      const int64_t most = snapkv_max_kept(c.compressor, &wrong);
      EXPECT_GE(most, 0);
      EXPECT_LE(most, std::max<int64_t>(30, 0)) << "no overflow";
    }
  }
  for (const float scale : {-1.0f, NAN, INFINITY}) {
    snapkv_layer wrong = c.layer;
    wrong.scale = scale;
    EXPECT_EQ(c.select(wrong), SNAPKV_ERROR_USAGE);
  }
  for (const int64_t capacity : {kLowest, int64_t{-1}, int64_t{29}, kHighest}) {
    EXPECT_EQ(c.select(c.layer, capacity), SNAPKV_ERROR_USAGE) << capacity;
  }
}

TEST(OptionRanges, CApiMaxKeptOfSharedBudgets) {
  snapkv_policy policy = snapkv_default_policy();
  policy.name = "ada-snapkv";
  policy.budget = kMostTokens;
  char error[200];
  snapkv_compressor* c = snapkv_compressor_new(&policy, SNAPKV_CPU, nullptr, error, sizeof error);
  ASSERT_NE(c, nullptr) << error;
  snapkv_layer layer{};
  layer.n_layer = 1;
  layer.n_tokens = kMostTokens, layer.n_head_kv = kMostHeads;
  EXPECT_EQ(snapkv_max_kept(c, &layer), kMostTokens);
  layer.n_head_kv = kHighest;
  EXPECT_EQ(snapkv_max_kept(c, &layer), 0);
  EXPECT_EQ(snapkv_max_kept(c, nullptr), 0);
  EXPECT_EQ(snapkv_max_kept(nullptr, &layer), 0);
  snapkv_compressor_free(c);
  snapkv_compressor_free(nullptr);
}

TEST(OptionRanges, CApiGatherRefusesOverlap) {
  CLayer c;
  std::vector<int32_t> rows = {0, 5, 9, 1, 2, 3}, n = {3, 3};
  std::vector<float> out(1000);
  const auto gather = [&](int64_t head_stride, int64_t row_stride, int64_t capacity = 3) {
    const snapkv_view dst = {out.data(), SNAPKV_F32, head_stride, row_stride};
    return snapkv_gather(c.compressor, &c.layer, &c.layer.k, capacity, rows.data(), n.data(), &dst,
                         c.error, sizeof c.error);
  };
  constexpr int64_t kDim = CLayer::kDim;
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_OK) << c.error;
  for (const int64_t stride : {int64_t{0}, int64_t{-1}, kLowest, kDim, kDim + 1, 3 * kDim - 1,
                               kHighest, int64_t{1} << 60}) {
    EXPECT_EQ(gather(stride, kDim), SNAPKV_ERROR_USAGE) << stride;
    EXPECT_NE(std::string(c.error).find("dst"), std::string::npos) << c.error;
  }
  EXPECT_NE((gather(2 * kDim, kDim), std::string(c.error)).find("overlap"), std::string::npos);
  EXPECT_EQ(gather(3 * kDim, kDim, -1), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(3 * kDim, kDim, kHighest), SNAPKV_ERROR_USAGE);
  n = {3, 4};
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_ERROR_USAGE);
  n = {3, -1};
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_ERROR_USAGE);
  n = {3, 3}, rows[4] = 120;
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_ERROR_USAGE);
  rows[4] = -1;
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_ERROR_USAGE);
  c.layer.n_head_kv = int64_t{1} << 40;
  EXPECT_EQ(gather(3 * kDim, kDim), SNAPKV_ERROR_USAGE) << c.error;
  // Rows of all heads side by side can be gathered from C++, where dst's rows may have gaps.
  const LayerView view = {.n_tokens = 120,
                          .n_head = 4,
                          .n_head_kv = 2,
                          .head_dim = kDim,
                          .q = {},
                          .k = {c.k.data(), DType::f32, kDim, 2 * kDim},
                          .v = {}};
  const KvSelection kept = {{0, 1, 2}, {3, 4, 5}};
  EXPECT_NO_THROW(gather_kv(view, view.k, kept, {out.data(), DType::f32, kDim, 2 * kDim}));
  expect_error(ErrorCode::kUsage, {"dst", "overlap"}, [&] {
    gather_kv(view, view.k, kept, {out.data(), DType::f32, kDim, 2 * kDim - 1});
  });
}

TEST(OptionRanges, CApiTakesNullWhereItSaysSo) {
  CLayer c;
  std::vector<int32_t> rows(60), n(2);
  std::vector<float> out(1000);
  const snapkv_view dst = {out.data(), SNAPKV_F32, 480, 16}, null_data = {nullptr, 0, 480, 16};
  char* const e = c.error;
  const size_t s = sizeof c.error;
  EXPECT_EQ(snapkv_compressor_new(nullptr, SNAPKV_CPU, nullptr, e, s), nullptr);
  EXPECT_EQ(snapkv_select(nullptr, &c.layer, 30, rows.data(), n.data(), e, s), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(snapkv_select(c.compressor, nullptr, 30, rows.data(), n.data(), e, s),
            SNAPKV_ERROR_USAGE);
  EXPECT_EQ(snapkv_select(c.compressor, &c.layer, 30, nullptr, n.data(), e, s), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(snapkv_select(c.compressor, &c.layer, 30, rows.data(), nullptr, e, s),
            SNAPKV_ERROR_USAGE);
  EXPECT_EQ(snapkv_select(c.compressor, &c.layer, 30, rows.data(), n.data(), nullptr, 0),
            SNAPKV_OK);
  const auto gather = [&](snapkv_compressor* compressor, const snapkv_layer* layer,
                          const snapkv_view* from, const int32_t* r, const int32_t* count,
                          const snapkv_view* to) {
    return snapkv_gather(compressor, layer, from, 30, r, count, to, e, s);
  };
  const snapkv_view* k = &c.layer.k;
  const int32_t *r = rows.data(), *count = n.data();
  EXPECT_EQ(gather(c.compressor, &c.layer, k, r, count, &dst), SNAPKV_OK) << e;
  EXPECT_EQ(gather(nullptr, &c.layer, k, r, count, &dst), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, nullptr, k, r, count, &dst), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, nullptr, r, count, &dst), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, k, nullptr, count, &dst), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, k, r, nullptr, &dst), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, k, r, count, nullptr), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, k, r, count, &null_data), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(gather(c.compressor, &c.layer, &null_data, r, count, &dst), SNAPKV_ERROR_USAGE);
}

}  // namespace option_ranges_tests
}  // namespace snapkv::test
