// SPDX-License-Identifier: MIT
// The data of inspect pages: the bins of the maps, the text of tokens, and the whole block compared
// with a session and a probe.
#include "eval/inspect/inspect.h"

#include <gtest/gtest.h>

#include "base/write_file.h"
#include "eval/common/page.h"
#include "eval/inspect/maps.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

using eval::Columns;
using eval::Json;
using eval::Rows;

double sum(const Json& numbers) {
  double total = 0;
  for (const Json& x : numbers) total += x.get<double>();
  return total;
}

TEST(InspectMaps, ColumnsHoldEveryTokenOnce) {
  for (const int64_t n : {1, 5, 1023, 1024, 1025, 5000, 131072}) {
    const Columns columns(n);
    EXPECT_LE(columns.n_columns, eval::kMapColumns);
    EXPECT_EQ(columns.begin(0), 0);
    EXPECT_EQ(columns.begin(columns.n_columns), n);
    for (int64_t token = 0; token < n; token += 1 + n / 997) {
      const int64_t c = columns.of(token);
      EXPECT_LE(columns.begin(c), token);
      EXPECT_GT(columns.begin(c + 1), token);
    }
  }
}

TEST(InspectMaps, RowsAreFewAndOrdered) {
  for (const auto& [layers, heads] : {std::pair<int64_t, int64_t>{4, 3},
                                      {32, 8},
                                      {32, 32},
                                      {80, 8},
                                      {126, 128},
                                      {300, 1},
                                      {1, 1}}) {
    const Rows rows(layers, heads);
    EXPECT_LE(rows.size(), eval::kMapRows);
    const Json all = rows.to_json();
    EXPECT_EQ(all.size(), static_cast<size_t>(rows.size()));
    int64_t last = 0;
    for (int64_t il = 0; il < layers; ++il) {
      for (int64_t head = 0; head < heads; ++head) {
        const Json& row = all[static_cast<size_t>(rows.of(il, head))];
        EXPECT_TRUE(row["layer_begin"] <= il && il < row["layer_end"]);
        EXPECT_TRUE(row["head_begin"] <= head && head < row["head_end"]);
        EXPECT_GE(rows.of(il, head), last);
        last = rows.of(il, head);
      }
      if (layers > 32) il += 7;
    }
  }
  EXPECT_EQ(Rows(4, 3).size(), 12);
  EXPECT_EQ(Rows(32, 32).size(), 32 * 8) << "4 heads share a row";
}

TEST(InspectMaps, KeptIsZeroOnlyWhereNoneAndFullOnlyWhereAll) {
  eval::KeptMap map(Rows(1, 1), Columns(4096));  // 4 tokens per column
  std::vector<int32_t> kept = {0, 1, 2, 3, 8};
  map.add(0, 0, kept);
  const Json row = map.to_json()[0];
  EXPECT_EQ(row[0], 1000);
  EXPECT_EQ(row[1], 0);
  EXPECT_EQ(row[2], 250);
  eval::KeptMap wide(Rows(1, 1), Columns(1024 * 5000));
  wide.add(0, 0, std::vector<int32_t>{17});
  EXPECT_EQ(wide.to_json()[0][0], 1) << "one of 5000 is not nothing";
}

TEST(InspectMaps, SparseSharesKeepSumsAndTheHighest) {
  const Columns columns(4096);
  std::vector<double> shares(4096, 0.0001);
  shares[2000] = 0.25;
  shares[9] = 0.3;
  const Json json = sparse_shares(columns, shares, 2);
  EXPECT_EQ(json["columns"].size(), 1024u);
  EXPECT_EQ(json["columns"][500], 250300);
  EXPECT_EQ(json["columns"][0], 400);
  EXPECT_EQ(json["positions"], Json::array({9, 2000}));
  EXPECT_EQ(json["values"], Json::array({300000, 250000}));
  const Json small = sparse_shares(Columns(3), std::vector<double>{0.5, 0.25, 0.25}, 2);
  EXPECT_EQ(small["columns"], Json::array({500000, 250000, 250000}));
  EXPECT_TRUE(small["positions"].empty());
}

TEST(Inspect, TextsOfTokensAreThePrompts) {
  const auto model = load_model("needle");
  const std::string text = "na\xc3\xafve \xe2\x82\xac and \xf0\x9f\x98\x80 <b> \xff end";
  const std::vector<int32_t> tokens = model->tokenize(text);
  const std::vector<std::string> texts = eval::token_texts(*model, tokens);
  ASSERT_EQ(texts.size(), tokens.size());
  std::string all;
  for (const std::string& t : texts) {
    EXPECT_EQ(t, eval::to_utf8(t)) << "each is UTF-8";
    all += t;
  }
  std::string pieces;
  for (const int32_t id : tokens) pieces += model->piece(id);
  EXPECT_EQ(all, eval::to_utf8(pieces));
  EXPECT_NE(all.find("\xf0\x9f\x98\x80"), std::string::npos) << all;
}

eval::InspectOptions needle_options(int64_t n_tokens) {
  eval::InspectOptions options;
  options.model = load_model("needle");
  options.session.kv.budget = 64;
  options.session.kv.window_size = 16;
  options.tokens = generated_ids(n_tokens, options.model->info().n_vocab, 7);
  return options;
}

TEST(Inspect, ControlTokensHaveATextWhereAsked) {
  const auto model = test::load_model("needle");
  const int32_t bos = model->tokenizer().special().bos;
  ASSERT_GE(bos, 0);
  const std::vector<int32_t> tokens = {bos};
  EXPECT_EQ(eval::token_texts(*model, tokens).at(0), "");
  EXPECT_EQ(eval::token_texts(*model, tokens, true).at(0), model->tokenizer().token_text(bos));
}

TEST(Inspect, HoldsWhatTheSessionKept) {
  const eval::InspectOptions options = needle_options(300);
  const Json data = eval::inspect(options);
  Session session(options.model, options.session);
  session.prefill(options.tokens);
  std::vector<int32_t> by_token(300, 0);
  for (int il = 0; il < 6; ++il) {
    for (int head = 0; head < 3; ++head) {
      const auto positions = session.cached_positions(il, head);
      const Json& row = data["kept"][static_cast<size_t>(il * 3 + head)];
      EXPECT_EQ(sum(row), 1000.0 * static_cast<double>(positions.size()));
      for (const int32_t pos : positions) {
        EXPECT_EQ(row[static_cast<size_t>(pos)], 1000);
        ++by_token[static_cast<size_t>(pos)];
      }
    }
  }
  ASSERT_EQ(data["text"].size(), 1u);
  EXPECT_EQ(data["text"][0]["kept_by"], Json(by_token));
  EXPECT_EQ(data["cache"]["n_kept"][2], Json::array({64, 64, 64}));
  EXPECT_EQ(data["cache"]["bytes_kept"], session.stats().kv_bytes_used);
  EXPECT_EQ(data["kind"], "inspect");
}

TEST(Inspect, SpotlightsAreTheProbesMeans) {
  eval::InspectOptions options = needle_options(300);
  options.spotlights = {{20, 24}};
  const Json data = eval::inspect(options);
  // A separate probe records the attention of the window in layer 1, and of the chosen tokens over
  // all layers.
  std::vector<double> layer(300, 0), chosen(300, 0), head_4(300, 0);
  AttentionProbe probe;
  probe.ranges = {{284, 300}, {20, 24}};
  probe.report = [&](const AttentionProbe::Report& r) {
    for (int64_t h = 0; h < r.n_head; ++h) {
      for (int64_t j = 0; j < r.n_keys; ++j) {
        const double x = r.sums[static_cast<size_t>(h * r.n_keys + j)];
        const auto at = static_cast<size_t>(j);
        if (r.range == 0 && r.il == 1) layer[at] += x / 16 / 6;
        if (r.range == 1) chosen[at] += x / 6 / 6 / 4;
        if (r.range == 0 && r.il == 1 && h / 2 == 2) head_4[at] += x / 16 / 2;  // KV head 2
      }
    }
  };
  Session session(options.model, options.session);
  session.prefill(options.tokens, {.probe = &probe});
  const auto find = [&](const std::string& group, int il) -> const Json& {
    for (const Json& s : data["spotlights"]) {
      if (s["group"] == group && s["layer"] == il) return s["columns"];
    }
    ADD_FAILURE() << "no " << group;
    return data["spotlights"][0]["columns"];
  };
  for (size_t j = 0; j < 300; ++j) {
    EXPECT_NEAR(find("layer", 1)[j].get<double>(), layer[j] * 1e6, 1);
    EXPECT_NEAR(find("chosen", -1)[j].get<double>(), chosen[j] * 1e6, 1);
    EXPECT_NEAR(data["score"][5][j].get<double>(), head_4[j] * 1e6, 1);
  }
  for (const Json& s : data["spotlights"]) {
    const Json& columns = s["columns"];
    EXPECT_NEAR(sum(columns), 1e6, 300) << s["group"];
  }
}

TEST(Inspect, LongPromptsStaySmallAndCutTextIsSaid) {
  eval::InspectOptions options = needle_options(4000);
  options.text_limit = 101;
  const Json data = eval::inspect(options);
  EXPECT_EQ(data["n_columns"], 1024);
  ASSERT_EQ(data["text"].size(), 2u);
  EXPECT_EQ(data["text"][0]["pieces"].size(), 51u);
  EXPECT_EQ(data["text"][1]["pieces"].size(), 50u);
  EXPECT_EQ(data["text"][1]["begin"], 3950);
  EXPECT_EQ(data["text_limit"], 101);
  EXPECT_LT(eval::to_line(data).size(), 1'000'000u);
}

TEST(Inspect, RefusesSpotlightsBeyondThePrompt) {
  eval::InspectOptions options = needle_options(30);
  options.session.kv.budget = 1024;
  options.spotlights = {{20, 31}};
  expect_error(ErrorCode::kUsage, {"20-30", "0 to 29"}, [&] { eval::inspect(options); });
}

TEST(Page, TextCannotLeaveTheDataBlock) {
  if (!eval::has_pages()) GTEST_SKIP() << "built without pages (SNAPKV_PAGES)";
  const Json data = {{"kind", "eval"}, {"records", {"</script><script>alert(1)</script>", "<!--"}}};
  const std::string page = eval::make_page(data);
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  const std::string block = page.substr(begin, page.find("</script>", begin) - begin);
  EXPECT_EQ(block.find('<'), std::string::npos);
  EXPECT_EQ(Json::parse(block), data);
  EXPECT_EQ(page.find("SNAPKV_PAGE_DATA"), std::string::npos);
  EXPECT_LT(page.size(), 800'000u) << "the template, which every page carries";
}

TEST(Page, ChecksItsPathBeforeWork) {
  if (!eval::has_pages()) {
    expect_error(ErrorCode::kUsage, {"without pages", "SNAPKV_PAGES"},
                 [] { eval::check_page("x.html"); });
    return;
  }
  eval::check_page("x.html");
  expect_error(ErrorCode::kUsage, {"no folder", "missing"},
               [] { eval::check_page("missing/x.html"); });
  expect_error(ErrorCode::kUsage, {"a folder"}, [] { eval::check_page("/"); });
  expect_error(ErrorCode::kRuntime, {"can't make 'missing/x.html'"},
               [] { write_file("missing/x.html", ""); });
}

}  // namespace
}  // namespace snapkv::test
