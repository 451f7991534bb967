// SPDX-License-Identifier: MIT
// Multi-head latent attention: what heads compute from shared rows in absorbed form is what the
// paper computes from keys and values of their own (arXiv 2405.04434, equations 9 to 11 and 14 to
// 19), and so are the votes that policies rank these rows by.
#include "model/blocks/latent_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "backend/ops.h"
#include "format/gguf.h"
#include "model/model_spec.h"
#include "model/rotation_table.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace latent_tests {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr int64_t kTokens = 23, kWindow = 5;

/// Attention in plain loops over the rows that it is given, which it keeps with the queries.
class PlainStep final : public AttentionStep {
 public:
  PlainStep(Backend& backend, float scale) : backend_(backend), scale_(scale) {}

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    EXPECT_EQ(v.at<float>(0) + v.shape[2], k.at<float>(0) + k.shape[2]) << "the end of the key";
    keep(q, q_);
    keep(k, k_);
    const std::vector<int32_t> none = {0};
    ops::attention_prefill(backend_, {.q = q,
                                      .k = heads_first(k),
                                      .v = heads_first(v),
                                      .n_past = none,
                                      .scale = scale_,
                                      .out = out});
  }
  /// SnapKV's votes of the last kWindow queries for the rows before them.
  std::vector<float> votes(int64_t n_head, int64_t width) {
    const Tensor q(q_.data() + (kTokens - kWindow) * n_head * width, DType::f32,
                   {kWindow, n_head, width});
    const Tensor k(k_.data(), DType::f32, {1, kTokens, width});
    std::vector<float> votes(kTokens - kWindow);
    const std::vector<int32_t> n_rows = {kTokens};
    const Tensor out(votes.data(), DType::f32, {1, kTokens - kWindow});
    ops::window_votes(backend_, {.q = q, .k = k, .n_rows = n_rows, .scale = scale_, .votes = out});
    return votes;
  }

 private:
  static void keep(const Tensor& t, std::vector<float>& values) {
    values.assign(t.at<float>(0), t.at<float>(0) + t.numel());
  }
  /// [n, 1, d] as [1, n, d].
  static Tensor heads_first(const Tensor& t) {
    Tensor rows = t;
    rows.shape = {1, t.shape[0], t.shape[2]};
    rows.stride[1] = t.stride[0];
    rows.stride[0] = t.stride[0] * t.shape[0];
    return rows;
  }

  Backend& backend_;
  float scale_;
  std::vector<float> q_, k_;
};

/// The layer's attention as the paper has it, with keys and values for every head.
class Expanded {
 public:
  Expanded(const GgufFile& file, const LayerSpec& layer, double eps)
      : file_(file), layer_(layer), sizes_(layer.latent), eps_(eps) {}

  void run(const Rows& x) {
    const int64_t n_key = sizes_.n_own, n_rot = sizes_.n_shared;
    for (int64_t t = 0; t < std::ssize(x); ++t) {
      Row q = sizes_.q_rank > 0
                  ? multiply("attn_q_b", normed("attn_q_a_norm", multiply("attn_q_a", x[t])))
                  : multiply("attn_q", x[t]);
      Row kv = multiply("attn_kv_a_mqa", x[t]);
      Row key_rot(kv.begin() + sizes_.rank, kv.end());
      rotate(key_rot.data(), t);
      kv.resize(sizes_.rank);
      const Row c = normed("attn_kv_a_norm", kv);
      Rows keys, values;
      for (int64_t h = 0; h < layer_.n_head; ++h) {
        rotate(q.data() + h * (n_key + n_rot) + n_key, t);
        Row key = of_head(h, c, true);
        key.insert(key.end(), key_rot.begin(), key_rot.end());
        keys.push_back(key);
        values.push_back(of_head(h, c, false));
      }
      keys_.push_back(keys);
      values_.push_back(values);
      attend(q, t);
    }
  }
  const Rows& outputs() const { return outputs_; }
  /// probabilities()[t][h][j]
  const std::vector<Rows>& probabilities() const { return probabilities_; }

 private:
  const float* tensor(const std::string& name) const {
    const GgufTensor* const t = file_.find_tensor("blk.0." + name + ".weight");
    SNAPKV_CHECK(t != nullptr && t->tensor.dtype == DType::f32);
    return static_cast<const float*>(t->tensor.data);
  }
  Row multiply(const std::string& name, const Row& x) const {
    const Tensor& w = file_.find_tensor("blk.0." + name + ".weight")->tensor;
    Row out(w.shape[0]);
    for (int64_t i = 0; i < w.shape[0]; ++i) {
      for (int64_t j = 0; j < w.shape[1]; ++j) out[i] += tensor(name)[i * w.shape[1] + j] * x[j];
    }
    return out;
  }
  Row normed(const std::string& name, const Row& x) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
    Row out;
    for (size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * factor * tensor(name)[i]);
    return out;
  }
  void rotate(double* x, int64_t pos) const {
    const std::vector<double> frequencies = inverse_frequencies(layer_.rotation, {});
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(pos) * frequencies[i];
      const double a = x[2 * i], b = x[2 * i + 1], m = layer_.rotation.magnitude;
      x[2 * i] = m * (a * std::cos(angle) - b * std::sin(angle));
      x[2 * i + 1] = m * (a * std::sin(angle) + b * std::cos(angle));
    }
  }
  /// K_h c or V_h c.
  Row of_head(int64_t h, const Row& c, bool key) const {
    const int64_t n_key = sizes_.n_own, n_value = sizes_.n_value, rank = sizes_.rank;
    const bool joined = file_.find_tensor("blk.0.attn_kv_b.weight") != nullptr;
    Row out(key ? n_key : n_value);
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      for (int64_t j = 0; j < rank; ++j) {
        double w = 0;
        if (joined) {
          w = tensor("attn_kv_b")[(h * (n_key + n_value) + (key ? i : n_key + i)) * rank + j];
        } else {
          w = key ? tensor("attn_k_b")[(h * rank + j) * n_key + i]
                  : tensor("attn_v_b")[(h * n_value + i) * rank + j];
        }
        out[i] += w * c[j];
      }
    }
    return out;
  }
  /// The output of token t, which sees the tokens so far.
  void attend(const Row& q, int64_t t) {
    const int64_t width = sizes_.n_key();
    Row heads;
    Rows all;
    for (int64_t h = 0; h < layer_.n_head; ++h) {
      Row p(t + 1);
      double sum = 0;
      for (int64_t j = 0; j <= t; ++j) {
        for (int64_t i = 0; i < width; ++i) p[j] += q[h * width + i] * keys_[j][h][i];
        p[j] = std::exp(layer_.scale * p[j]);
        sum += p[j];
      }
      Row value(sizes_.n_value);
      for (int64_t j = 0; j <= t; ++j) {
        p[j] /= sum;
        for (int64_t i = 0; i < sizes_.n_value; ++i) value[i] += p[j] * values_[j][h][i];
      }
      heads.insert(heads.end(), value.begin(), value.end());
      all.push_back(p);
    }
    probabilities_.push_back(all);
    outputs_.push_back(multiply("attn_output", heads));
  }

  const GgufFile& file_;
  const LayerSpec& layer_;
  const LatentSpec& sizes_;
  const double eps_;
  std::vector<Rows> keys_, values_;  // [n_tokens][n_head]
  std::vector<Rows> probabilities_;
  Rows outputs_;
};

/// Inputs with values around 1, as norms give.
std::vector<float> inputs(int64_t n) {
  std::vector<float> x(n);
  uint32_t state = 5;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 4194304.0f - 2.0f;
  }
  return x;
}

class LatentAttentionTest : public testing::TestWithParam<const char*> {};

TEST_P(LatentAttentionTest, ComputesAndVotesAsInThePaper) {
  const GgufFile file = GgufFile::open(model_path(GetParam()));
  const ModelSpec spec = read_model_spec(file);
  const LayerSpec& layer = spec.layers[0];
  RotationTable rotations;
  rotations.add(file, spec, {}, {});
  ActivationPlan plan;
  const BlockContext context{spec, rotations, plan};
  std::vector<Buffer> owned;
  WeightLoader weights(file, owned);
  LayerLoader loader(spec, weights, 0);
  const LatentAttention block(context, loader);

  const int64_t n_embd = spec.config.n_embd;
  std::vector<float> x = inputs(kTokens * n_embd), added(kTokens * n_embd);
  Expanded expanded(file, layer, spec.config.norm_eps);
  Rows rows;
  for (int64_t t = 0; t < kTokens; ++t) {
    rows.emplace_back(x.begin() + t * n_embd, x.begin() + (t + 1) * n_embd);
  }
  expanded.run(rows);

  const auto backend = Backend::make({.device = "cpu", .n_threads = 2, .compute = Compute::f32});
  PlainStep step(*backend, layer.scale);
  LinearRunner linear(*backend);
  ActivationBuffer buffers;
  buffers.ensure(*backend, plan, kTokens, DType::f32);
  std::vector<int32_t> pos;
  for (int32_t t = 0; t < kTokens; ++t) pos.push_back(t);
  LayerPass pass;
  pass.backend = backend.get();
  pass.x = Tensor(added.data(), DType::f32, {kTokens, n_embd});
  pass.pos = pos;
  pass.n_ctx = 64;
  pass.n_q = pass.n_out = kTokens;
  pass.attention = &step;
  pass.linear = &linear;
  pass.buffers = &buffers;
  block.run(Tensor(x.data(), DType::f32, {kTokens, n_embd}), pass);

  double largest = 0;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < n_embd; ++i) {
      largest = std::max(largest, std::fabs(expanded.outputs()[t][i]));
      ASSERT_NEAR(added[t * n_embd + i], expanded.outputs()[t][i], 2e-5) << t << " " << i;
    }
  }
  EXPECT_GT(largest, 0.1);

  const std::vector<float> votes = step.votes(layer.n_head, layer.state.head_dim_k);
  for (int64_t j = 0; j < kTokens - kWindow; ++j) {
    double expected = 0;
    for (int64_t t = kTokens - kWindow; t < kTokens; ++t) {
      for (int64_t h = 0; h < layer.n_head; ++h) expected += expanded.probabilities()[t][h][j];
    }
    ASSERT_NEAR(votes[j], expected / static_cast<double>(layer.n_head), 1e-5) << j;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LatentAttentionTest,
                         testing::Values("deepseek2-lite", "deepseek2-joined", "deepseek2"),
                         [](const auto& p) {
                           std::string name = p.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

// What a token takes is one row of rank + n_rot values, and its position.
TEST(LatentRowsTest, AreCountedOnce) {
  const auto model = load_model("deepseek2-lite");
  const ModelInfo& info = model->info();
  for (const LayerInfo& layer : info.layers) {
    EXPECT_EQ(layer.n_head_kv, 1);
    EXPECT_EQ(layer.head_dim, 32 + 16);
    EXPECT_EQ(layer.value_dim, 32);
    EXPECT_TRUE(layer.value_in_key);
  }
  const size_t row = 48 * sizeof(uint16_t) + sizeof(int32_t);
  EXPECT_EQ(info.spec->bytes_per_token(DType::f16), info.n_layer * row);
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f16;
  options.decode_reserve = 1;
  Session session(model, options);
  session.prefill(generated_ids(50, kFamilyVocab, 1));
  EXPECT_EQ(session.stats().kv_bytes_used, info.n_layer * 50 * row);
}

/// The error of loading a model with a change.
template <typename F>
void expect_refused(std::initializer_list<std::string_view> parts, F change,
                    const std::string& name = "deepseek2-lite") {
  FamilyModel m = *std::find_if(family_models().begin(), family_models().end(),
                                [&](const FamilyModel& model) { return model.name == name; });
  change(m);
  const TempDir folder;
  const std::string path = folder / "m.gguf";
  write_random_model(path, m.shape, m.options);
  expect_error(ErrorCode::kBadModel, parts, [&] { Model::load({.path = path}); });
}

TEST(LatentHeaderTest, ImpossibleSizesAndMissingTensorsAreNamed) {
  expect_refused({"attention.kv_lora_rank = 40", "multiples of 32"},
                 [](FamilyModel& m) { m.shape.family.latent.rank = 40; });
  expect_refused({"rope.dimension_count = 12"}, [](FamilyModel& m) { m.shape.family.n_rot = 12; });
  expect_refused({"rope.dimension_count = 16", "the width of a query, 16"}, [](FamilyModel& m) {
    m.shape.family.latent.n_unrotated = 0;
    m.shape.family.latent.joined = true;
  });
  for (const char* name : {"attn_q", "attn_kv_a_mqa", "attn_kv_a_norm", "attn_k_b", "attn_v_b"}) {
    const std::string tensor = std::string("blk.1.") + name + ".weight";
    expect_refused({tensor, "missing"}, [&](FamilyModel& m) { m.options.omitted = tensor; });
  }
}

TEST(IndexerHeaderTest, ImpossibleSizesAndMissingTensorsAreNamed) {
  const auto refused = [](std::initializer_list<std::string_view> parts, auto change) {
    expect_refused(
        parts, [&](FamilyModel& m) { change(m.shape.family.latent, m.options); }, "glm-dsa");
  };
  using Latent = RandomFamily::Latent;
  refused({"attention.indexer.key_length = 60", "multiples of 8"},
          [](Latent& l, RandomModelOptions&) { l.d_index = 60; });
  refused({"attention.indexer.key_length = 8", "rope.dimension_count = 16"},
          [](Latent& l, RandomModelOptions&) { l.d_index = 8; });
  refused({"attention.indexer.top_k"}, [](Latent& l, RandomModelOptions&) { l.top_k = 0; });
  for (const char* name : {"attn_q_b.weight", "attn_k.weight", "proj.weight", "k_norm.bias"}) {
    const std::string tensor = std::string("blk.1.indexer.") + name;
    refused({tensor, "missing"},
            [&](Latent&, RandomModelOptions& options) { options.omitted = tensor; });
  }
}

// Keys of indexers are a part of the rows.
TEST(IndexerRowsTest, HaveTheIndexersKey) {
  const auto model = load_model("glm-dsa");
  for (const LayerInfo& layer : model->info().layers) {
    EXPECT_EQ(layer.head_dim, 16 + 64 + 32);
    EXPECT_EQ(layer.value_dim, 32);
  }
}

TEST(IndexerRowsTest, MustBeReadableForIndexers) {
  FamilyModel m = *std::find_if(family_models().begin(), family_models().end(),
                                [](const FamilyModel& model) { return model.name == "glm-dsa"; });
  m.shape.family.n_rot = 32;  // rows of 128 values are whole blocks of q8_0
  const TempDir folder;
  write_random_model(folder / "m.gguf", m.shape, m.options);
  const auto model = Model::load({.path = folder / "m.gguf"});
  SessionOptions options;
  options.kv_type = DType::q8_0;
  expect_error(ErrorCode::kUsage, {"kv_type is q8_0", "24 tokens", "f32, f16 or bf16"},
               [&] { Session session(model, options); });
  options.n_ctx = 24;
  Session session(model, options);  // all rows are attended to
  session.prefill(generated_ids(20, kFamilyVocab, 1));
}

// Rows that a policy keeps are few enough for all of them to be attended to.
TEST(IndexerRowsTest, PoliciesChooseFirst) {
  const auto model = load_model("glm-dsa", Compute::f32);
  SessionOptions options;
  options.kv.name = "snapkv";
  options.kv.budget = 16;
  options.kv.window_size = 4;
  options.kv_type = DType::f32;
  Session session(model, options);
  session.prefill(generated_ids(90, kFamilyVocab, 1));
  for (int il = 0; il < model->info().n_layer; ++il) {
    EXPECT_EQ(session.cached_positions(il, 0).size(), 16u);
  }
  for (const int32_t id : generated_ids(20, kFamilyVocab, 2)) session.decode(id);
  for (const float logit : session.logits()) ASSERT_TRUE(std::isfinite(logit));
}

// Sessions of one step choose each among their own rows, if they have more than are chosen.
TEST(IndexerRowsTest, SessionsOfABatchChooseEachTheirOwn) {
  const auto model = load_model("glm-dsa", Compute::f32);
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f32;
  std::vector<Session> alone, together;
  for (const int64_t n : {70, 20, 23, 90}) {
    for (std::vector<Session>* all : {&alone, &together}) {
      all->emplace_back(model, options).prefill(generated_ids(n, kFamilyVocab, 5));
    }
  }
  std::vector<Session*> batch;
  for (Session& s : together) batch.push_back(&s);
  for (const int32_t id : generated_ids(4, kFamilyVocab, 6)) {
    const std::vector<int32_t> ids(batch.size(), id);
    decode_batch(batch, ids);
    for (size_t i = 0; i < batch.size(); ++i) {
      alone[i].decode(id);
      for (size_t t = 0; t < alone[i].logits().size(); ++t) {
        ASSERT_NEAR(alone[i].logits()[t], batch[i]->logits()[t], 1e-4) << i;
      }
    }
  }
}

// Layers that take what an earlier one has chosen limit the context to what is not chosen from.
TEST(IndexerRowsTest, LayersThatChooseTogetherLimitTheContext) {
  const auto model = load_model("glm-dsa-together");
  EXPECT_EQ(Session(model, {}).n_ctx(), 256);
  SessionOptions options;
  options.n_ctx = 257;
  expect_error(ErrorCode::kUsage,
               {"n_ctx is 257", "more than 256 tokens", "earlier layer's indexer"},
               [&] { Session session(model, options); });
}

}  // namespace latent_tests
}  // namespace snapkv::test
