// SPDX-License-Identifier: MIT
// The table of docs/models.md against what is there: its rows are the families, what layers keep is
// what small models and folders of the family keep, and an oracle has checked what it has made
// goldens of (tests/engine/golden, tests/huggingface/golden).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf.h"
#include "huggingface/folder.h"
#include "huggingface/json_file.h"
#include "model/family.h"
#include "model/model_spec.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace models_page_tests {

/// In the order of the page's words.
enum Kept { kRows, kLatentRows, kWindow, kChunk, kConvolution, kMatrices, kScan, kNumKept };
constexpr const char* kKeptWords[kNumKept] = {
    "rows", "latent rows", "window rows", "chunk rows", "convolution", "matrices", "scan states"};

/// What there is of a family, or of its models with experts.
struct Found {
  std::array<bool, kNumKept> kept = {};
  bool llama_cpp = false, transformers = false;

  /// Nothing where layers keep rows alone, or nothing.
  std::string kept_words() const {
    std::vector<std::string> words;
    for (int i = 0; i < kNumKept; ++i) {
      if (kept[i]) words.emplace_back(kKeptWords[i]);
    }
    return words == std::vector<std::string>{"rows"} ? "" : fmt::to_string(fmt::join(words, ", "));
  }
  std::string oracles() const {
    if (llama_cpp && transformers) return "both";
    return llama_cpp ? "llama.cpp" : transformers ? "transformers" : "";
  }
};

/// By the first cell of the row.
using FoundByRow = std::map<std::string, Found, std::less<>>;

/// One architecture has two rows.
std::string row_of(const std::string& architecture, bool has_experts) {
  return "`" + architecture + "`" +
         (architecture == "llama" && has_experts ? " with `expert_count`" : "");
}

void add_kept(const LayerSpec& layer, Found& found) {
  const StateShape& state = layer.state;
  if (state.has_rows()) {
    found.kept[state.v_in_k       ? kLatentRows
               : state.window > 0 ? kWindow
               : state.chunk > 0  ? kChunk
                                  : kRows] = true;
  }
  if (state.n_recurrent == 0 || state.shared) return;
  const bool is_linear =
      layer.mixer == TokenMixerKind::delta_net || layer.mixer == TokenMixerKind::kimi_delta ||
      layer.mixer == TokenMixerKind::rwkv6 || layer.mixer == TokenMixerKind::rwkv7;
  found.kept[layer.mixer == TokenMixerKind::short_conv ? kConvolution
             : is_linear                               ? kMatrices
                                                       : kScan] = true;
}

/// What the header says of a context so long that no window holds all of it.
ModelSpec spec_for_long_texts(GgufFile file) {
  file.replace(file.get_string("general.architecture") + ".context_length",
               {.type = GgufType::u32, .value = uint64_t{1} << 20});
  return read_model_spec(file);
}

void add_family_models(FoundByRow& all) {
  const std::string folder = std::string(SNAPKV_SOURCE_DIR) + "/tests/engine/golden/";
  for (const FamilyModel& model : family_models()) {
    const ModelSpec spec = spec_for_long_texts(GgufFile::open(model_path(model.name)));
    Found& found = all[row_of(spec.config.architecture, spec.config.n_expert > 0)];
    for (const LayerSpec& layer : spec.layers) add_kept(layer, found);
    const std::string golden = folder + model.name + ".json";
    if (!std::filesystem::exists(golden)) continue;
    const Json json = huggingface::read_json(golden);
    const bool by_transformers =
        json.at("command").get<std::string>().starts_with("tools/transformers_oracle.py");
    (by_transformers ? found.transformers : found.llama_cpp) = true;
  }
}

void add_folders(FoundByRow& all) {
  const std::string goldens = std::string(SNAPKV_SOURCE_DIR) + "/tests/huggingface/golden";
  for (const auto& entry : std::filesystem::directory_iterator(goldens)) {
    if (entry.path().extension() != ".json") continue;
    const TempDir dir;
    const Json golden = read_golden(entry.path().stem().string());
    write_oracle_folder(dir / "", golden);
    const ModelSpec spec =
        spec_for_long_texts(huggingface::to_model(huggingface::open_folder(dir / "")));
    Found& found = all[row_of(spec.config.architecture, spec.config.n_expert > 0)];
    for (const LayerSpec& layer : spec.layers) add_kept(layer, found);
    (golden.contains("transformers") ? found.transformers : found.llama_cpp) = true;
  }
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (size_t begin = 1; begin < line.size();) {
    const size_t end = std::min(line.find('|', begin), line.size());
    std::string cell(line.substr(begin, end - begin));
    cell.erase(0, cell.find_first_not_of(' '));
    while (cell.ends_with(' ')) cell.pop_back();
    cells.push_back(std::move(cell));
    begin = end + 1;
  }
  return cells;
}

/// The rows of the page's first table.
std::vector<std::vector<std::string>> table_of_page() {
  std::ifstream page(std::string(SNAPKV_SOURCE_DIR) + "/docs/models.md");
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(page, line) && !line.starts_with("|---")) continue;
  while (std::getline(page, line) && line.starts_with("| ")) rows.push_back(cells_of(line));
  return rows;
}

TEST(ModelsPage, TheTableSaysWhatIsThere) {
  FoundByRow all;
  add_family_models(all);
  add_folders(all);
  std::vector<std::string> known;
  for (const auto& cells : table_of_page()) {
    ASSERT_EQ(cells.size(), 6u) << cells[0];
    SCOPED_TRACE(cells[0]);
    known.push_back(cells[0]);
    const auto at = all.find(cells[0]);
    if (at == all.end()) {
      ADD_FAILURE() << "there is neither a small model nor a golden of it";
      continue;
    }
    EXPECT_EQ(cells[3], at->second.kept_words());
    EXPECT_EQ(cells[4], at->second.oracles());
  }
  for (const auto& [row, found] : all) {
    EXPECT_NE(std::find(known.begin(), known.end(), row), known.end())
        << row << " is missing; it keeps \"" << found.kept_words() << "\", and \""
        << found.oracles() << "\" checked it";
  }
  for (const Family& family : families()) {
    EXPECT_TRUE(all.contains(row_of(std::string(family.name), false)) ||
                all.contains(row_of(std::string(family.name), true)))
        << family.name;
  }
}

}  // namespace models_page_tests
}  // namespace snapkv::test
