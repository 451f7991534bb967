// SPDX-License-Identifier: MIT
// Compares the work of a test with a count by hand; also the least time that it can take within
// given limits, the percentage of them that it reached, and the table for a terminal of 80 columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/bench/cost.h"
#include "cli/bench/report_table.h"
#include "cli/bench/report_values.h"
#include "cli/bench/roofline.h"

namespace snapkv::cli {
namespace bench_roofline_tests {

// 2 layers with 4 query heads and 2 KV heads of 4 values. Multiply-adds per token and layer: 128
// for the queries, 64 each for keys and values, 128 for the output projection, and 288 for the FFN.
// The output matrix takes 80.
ModelDescription small_model() {
  ModelDescription model;
  ModelInfo& m = model.info;
  m.architecture = "llama";
  m.file_type = "q8_0";
  m.n_layer = 2;
  m.n_embd = 8;
  m.n_head = 4;
  m.n_head_kv = 2;
  m.head_dim = 4;
  m.n_vocab = 10;
  LayerInfo attention;
  attention.n_head = 4;
  attention.n_head_kv = 2;
  attention.head_dim = attention.value_dim = 4;
  m.layers.assign(2, attention);
  m.weight_bytes = m.active_weight_bytes = 10000;
  for (const char* layer : {"blk.0.", "blk.1."}) {
    const auto add = [&](const char* name, int64_t n_out, int64_t n_in) {
      model.tensors.push_back({std::string(layer) + name, "f32", {n_out, n_in}, 0});
    };
    add("attn_q.weight", 16, 8);
    add("attn_k.weight", 8, 8);
    add("attn_v.weight", 8, 8);
    add("attn_output.weight", 8, 16);
    add("ffn_gate.weight", 12, 8);
    add("ffn_up.weight", 12, 8);
    add("ffn_down.weight", 8, 12);
    model.tensors.push_back({std::string(layer) + "attn_norm.weight", "f32", {8}, 32});
  }
  model.tensors.push_back({"token_embd.weight", "f32", {10, 8}, 320});
  model.tensors.push_back({"output.weight", "f32", {10, 8}, 320});
  return model;
}

constexpr MachineLimits kLimits = {.read = 100, .f32 = 10, .bf16 = 40, .int8 = 160};
constexpr MachineLimits kWithoutBf16 = {.read = 100, .f32 = 10, .bf16 = 0, .int8 = 160};

TEST(BenchRooflineTest, WorkOfAPromptIsCountedByHand) {
  const ModelCost cost(small_model());
  // Layer 0: 5 tokens of 672. Layer 1: the keys and values of 5 tokens (128 each), the queries of
  // the 2 that vote (128 each), and the rest of 1 (128 + 288). The output matrix counts once.
  EXPECT_EQ(cost.prefill_linear_flops(5, 2), 2 * (5 * 672 + 5 * 128 + 2 * 128 + 416 + 80));
  // Without a window only the last token has a query.
  EXPECT_EQ(cost.prefill_linear_flops(5, 0), 2 * (5 * 672 + 5 * 128 + 1 * 128 + 416 + 80));
  // After 3 rows layer 0 sees 4 + 5 + 6 + 7 + 8, and layer 1 the 8 of the last query; twice 16
  // values each.
  EXPECT_EQ(cost.prefill_attention_flops(5, 3), 4 * 16 * (30 + 8));
  // All weights except the embedding, and for 5 tokens 2 layers of 2 heads of 4 + 4 values of 2
  // bytes.
  EXPECT_EQ(cost.prefill_bytes(5, DType::f16), 10000 - 320 + 5 * 2 * 2 * 8 * 2);
}

TEST(BenchRooflineTest, AWindowHidesRows) {
  ModelDescription model = small_model();
  model.info.layers[0].window = 4;
  // Layer 0 sees 4 rows with each of the 5 queries, layer 1 all 8.
  EXPECT_EQ(ModelCost(model).prefill_attention_flops(5, 3), 4 * 16 * (20 + 8));
}

TEST(BenchRooflineTest, AChunkHidesRows) {
  ModelDescription model = small_model();
  model.info.layers[0].window = 4;
  model.info.layers[0].attention = AttentionKind::chunked;
  // Layer 0 sees 4, 1, 2, 3 and 4 rows at positions 3 to 7, layer 1 all 8.
  EXPECT_EQ(ModelCost(model).prefill_attention_flops(5, 3), 4 * 16 * (14 + 8));
  model.info.layers[1] = model.info.layers[0];
  EXPECT_EQ(ModelCost(model).prefill_attention_flops(5, 3), 4 * 16 * (14 + 4));
}

TEST(BenchRooflineTest, WorkOfADecodeStepIsCountedByHand) {
  const ModelCost cost(small_model());
  EXPECT_EQ(cost.decode_linear_flops(3), 3 * 2 * (2 * 672 + 80));
  EXPECT_EQ(cost.decode_attention_flops(7), 4 * 16 * 2 * 7);
  EXPECT_EQ(cost.decode_weight_bytes(), size_t{10000 - 320});
  // A row of a head is 8 values of 2 bytes and a position of 4 bytes; 7 rows of 2 layers of 2
  // heads.
  const size_t used = 7 * 2 * 2 * (8 * 2 + 4);
  EXPECT_EQ(cost.rows(used, DType::f16), 7);
  EXPECT_EQ(cost.kv_bytes_read(used, DType::f16), 7 * 2 * 2 * 8 * 2);
}

TEST(BenchRooflineTest, TheSlowerOfComputingAndReadingLimits) {
  BenchWork work{.linear = 800,
                 .attention = 200,
                 .bytes = 500,
                 .linear_products = Products::int8,
                 .attention_products = Products::f32};
  LeastTime least = least_time(work, kLimits);
  EXPECT_EQ(least.compute, 800.0 / 160 + 200.0 / 10);
  EXPECT_EQ(least.memory, 5);
  EXPECT_FALSE(least.by_memory());
  EXPECT_EQ(least.seconds(), 25);
  work.bytes = 5000;
  least = least_time(work, kLimits);
  EXPECT_TRUE(least.by_memory());
  EXPECT_EQ(least.seconds(), 50);
  work.bytes = 2500;  // equal times count as compute
  EXPECT_FALSE(least_time(work, kLimits).by_memory());
  EXPECT_EQ(work.operations(), 1000);
}

TEST(BenchRooflineTest, ProductsAreThoseOfWeightsAndProcessor) {
  EXPECT_EQ(compute_products(DType::bf16, kLimits), Products::bf16);
  EXPECT_EQ(compute_products(DType::bf16, kWithoutBf16), Products::f32);
  EXPECT_EQ(compute_products(DType::f32, kLimits), Products::f32);
  for (const char* type : {"q8_0", "q4_0", "q4_k", "iq4_nl", "mxfp4"}) {
    EXPECT_EQ(direct_products(type, true, kLimits), Products::int8) << type;
    EXPECT_EQ(direct_products(type, false, kLimits), Products::f32) << type;
  }
  EXPECT_EQ(direct_products("bf16", true, kLimits), Products::bf16);
  EXPECT_EQ(direct_products("bf16", true, kWithoutBf16), Products::f32);
  EXPECT_EQ(direct_products("f16", true, kLimits), Products::f32);
  EXPECT_EQ(direct_products("f32", true, kLimits), Products::f32);
}

BenchResult prompt_result() {
  BenchResult result;
  result.test.n_threads = 2;
  result.test.n_prompt = 4096;
  result.test.session.kv = {.name = "snapkv", .budget = 1024};
  result.seconds = {60, 40};
  result.parts = PrefillParts{.total = 50};
  result.kv_bytes_used = 1;
  result.work = {.linear = 800,
                 .attention = 200,
                 .bytes = 500,
                 .linear_products = Products::int8,
                 .attention_products = Products::f32};
  result.limits = kLimits;
  return result;
}

nlohmann::ordered_json json_of(const BenchResult& result) {
  BenchContext context;
  context.model = small_model().info;
  return to_json(context, result);
}

TEST(BenchRooflineTest, PercentIsOfTheMeanTime) {
  const BenchResult result = prompt_result();
  EXPECT_EQ(percent_of_limit(result, *result.limits), 50);
  const auto json = json_of(result);
  EXPECT_EQ(json.at("percent_of_limit"), 50);
  EXPECT_EQ(json.at("limit"), "compute");
  EXPECT_EQ(json.at("limit_s"), 25);
  EXPECT_EQ(json.at("linear_products"), "int8");
  EXPECT_EQ(json.at("attention_products"), "f32");
  EXPECT_EQ(json.at("work_gflop"), 1000 / 1e9);
  EXPECT_EQ(json.at("work_gb"), 500 / 1e9);
  EXPECT_EQ(json.at("machine_bf16_gflops"), 40 / 1e9);
}

TEST(BenchRooflineTest, WithoutLimitsFieldsAreNull) {
  BenchResult result = prompt_result();
  result.limits.reset();
  const auto json = json_of(result);
  for (const char* key : {"percent_of_limit", "limit", "limit_s", "linear_products",
                          "machine_read_gbps", "machine_int8_gops"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_EQ(json.at("work_gflop"), 1000 / 1e9);
  result.limits = kWithoutBf16;
  EXPECT_TRUE(json_of(result).at("machine_bf16_gflops").is_null());
}

// The table as printed on a terminal with this many columns.
std::string table(int n_columns, const BenchResult& result) {
  testing::internal::CaptureStdout();
  const auto printer = make_table_printer(n_columns);
  BenchContext context;
  context.model = small_model().info;
  printer->add(context, result);
  printer->finish();
  return testing::internal::GetCapturedStdout();
}

TEST(BenchRooflineTest, TheTableFits80Columns) {
  BenchResult result = prompt_result();
  std::string text = table(80, result);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("build:")) continue;  // the processor's name may be long
    // "±" and other characters outside ASCII take more bytes than columns.
    const auto n_columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    EXPECT_LE(n_columns, 80) << line;
  }
  EXPECT_NE(text.find("| % limit |"), std::string::npos) << text;
  EXPECT_NE(text.find("|  50 ops |"), std::string::npos) << text;
  EXPECT_NE(text.find(" KV now |"), std::string::npos) << text;
  EXPECT_NE(text.find("% limit: of what"), std::string::npos) << text;
  result.work.bytes = 4000;
  EXPECT_NE(table(80, result).find("|  80 mem |"), std::string::npos);
  result.limits.reset();
  text = table(80, result);
  EXPECT_EQ(text.find("% limit: of what"), std::string::npos) << text;
}

}  // namespace bench_roofline_tests
}  // namespace snapkv::cli
