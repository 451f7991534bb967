// SPDX-License-Identifier: MIT
// convert_model(): snapkv/convert.h. Rows are read, brought into GGUF's order and type, and written
// a few megabytes at a time, so that a model may be larger than the memory.
#include "snapkv/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/core/option_range.h"
#include "engine/files/open_model.h"
#include "format/byte_reader.h"
#include "format/check_tensors.h"
#include "format/gguf_writer.h"
#include "format/quantize.h"
#include "huggingface/folder.h"
#include "model/architecture.h"
#include "model/blocks/expert_names.h"
#include "snapkv/model_files.h"
#include "snapkv/tokenizer.h"

namespace snapkv {
namespace {

using huggingface::Edit;
using huggingface::MappedTensor;
using Metadata = std::map<std::string, GgufValue, std::less<>>;

constexpr int64_t kChunkValues = int64_t{1} << 20;
constexpr uint32_t kQuantizationVersion = 2;  // of ggml's block types

/// The model to convert, with the owners of the memory that its views point into.
struct Source {
  std::vector<MappedTensor> tensors;
  Metadata metadata;
  std::optional<huggingface::Folder> folder;
  std::optional<GgufFile> file;

  void check_unchanged() const {
    if (file) file->check_unchanged();
    if (!folder) return;
    for (const MmapFile& shard : folder->shards.files) shard.check_unchanged();
  }
};

/// Rejects models that cannot run here: a conversion alone does not check their parts.
void check_runs(const std::string& path) {
  const GgufFile file = open_model(path, {.copies_values = false});
  const auto architecture = Architecture::make(file);
  const auto tokenizer = Tokenizer::from_gguf(file);
}

Source open_source(const std::string& path) {
  Source source;
  if (huggingface::is_folder(path)) {
    source.folder = huggingface::open_folder(path);
    source.tensors = std::move(source.folder->tensors);
    source.metadata = std::move(source.folder->metadata);
    return source;
  }
  source.file = GgufFile::open(path);
  source.metadata = source.file->metadata();
  std::erase_if(source.metadata, [](const auto& entry) {
    return entry.first.starts_with("split.") || entry.first == "general.alignment";
  });
  for (const GgufTensor& t : source.file->tensors()) {
    MappedTensor m;
    m.name = t.name;
    m.tensor = t.tensor;
    source.tensors.push_back(std::move(m));
  }
  return source;
}

/// Of RWKV, which llama.cpp's files have in f32.
bool is_mix(std::string_view name) {
  constexpr std::string_view kMixes[] = {"time_mix_first.weight",    "time_mix_w1.weight",
                                         "time_mix_w2.weight",       "time_mix_decay_w1.weight",
                                         "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight"};
  return std::any_of(std::begin(kMixes), std::end(kMixes),
                     [&](std::string_view mix) { return name.ends_with(mix); });
}

bool is_matrix(const MappedTensor& t) {
  return t.tensor.rank > 1 && t.name.ends_with(".weight") && !t.name.ends_with("_norm.weight") &&
         !is_router(t.name) && !t.name.ends_with(".shortconv.conv.weight") &&
         t.name.find(".ssm_conv1d") == std::string::npos &&
         t.name.find(".altup_") == std::string::npos && t.name != "position_embd.weight" &&
         !is_mix(t.name);
}

/// The type that a tensor is written in.
DType type_of(const MappedTensor& t, std::optional<DType> wanted) {
  const DType given = t.tensor.dtype;
  if (!is_matrix(t)) return block_size(given) == 1 ? DType::f32 : given;
  if (!wanted || *wanted == given || given == DType::mxfp4) return given;
  if (block_size(given) > 1) {
    fail(ErrorCode::kUsage,
         "tensor {} has type {}: its values are rounded already, they are not converted to {}",
         printable(t.name), name(given), name(*wanted));
  }
  if (t.tensor.n_cols() % block_size(*wanted) == 0) return *wanted;
  log_warn("tensor {} has rows of {} values, which are not whole blocks of {}: it becomes f16",
           printable(t.name), t.tensor.n_cols(), name(*wanted));
  return DType::f16;
}

/// The tensors that are written.
struct Plan {
  std::vector<GgufPlan> tensors;
  /// Where each comes from, by index in Source::tensors: one tensor, or one for each expert.
  std::vector<std::vector<size_t>> parts;

  uint64_t bytes() const {
    uint64_t total = 0;
    for (const GgufPlan& t : tensors) total += t.bytes();
    return total;
  }
};

/// An expert's matrix becomes part of one tensor for all experts, and a stream's of one for all
/// streams: llama.cpp reads no others.
void add_part(const Source& source, size_t index, const ExpertPart& part, DType type, Plan& plan) {
  const MappedTensor& t = source.tensors[index];
  const auto at = std::find_if(plan.tensors.begin(), plan.tensors.end(),
                               [&](const GgufPlan& p) { return p.name == part.merged; });
  const size_t i = at - plan.tensors.begin();
  if (at == plan.tensors.end()) {
    plan.tensors.push_back({part.merged, {0, t.tensor.shape[0], t.tensor.shape[1]}, type});
    plan.parts.emplace_back();
  }
  GgufPlan& merged = plan.tensors[i];
  if (merged.dtype != type) {
    fail(ErrorCode::kUsage,
         "tensor {} has type {}, others of its kind have {}: --type makes them alike",
         printable(t.name), name(type), name(merged.dtype));
  }
  std::vector<size_t>& parts = plan.parts[i];
  if (std::ssize(parts) <= part.expert) parts.resize(part.expert + 1);
  parts[part.expert] = index;
  merged.shape[0] = std::ssize(parts);
}

Plan plan_tensors(const Source& source, std::optional<DType> wanted) {
  Plan plan;
  for (size_t i = 0; i < source.tensors.size(); ++i) {
    const MappedTensor& t = source.tensors[i];
    const DType type = type_of(t, wanted);
    auto part = parse_expert_part(t.name);
    if (!part) part = parse_stream_part(t.name);
    if (part) {
      add_part(source, i, *part, type, plan);
      continue;
    }
    const auto& shape = t.tensor.shape;
    plan.tensors.push_back({t.name, {shape.begin(), shape.begin() + t.tensor.rank}, type});
    plan.parts.push_back({i});
  }
  return plan;
}

/// general.file_type: llama.cpp's number for files whose matrices mostly have this type.
uint32_t file_type_of(const std::vector<GgufPlan>& plans) {
  std::map<DType, uint64_t> bytes;
  for (const GgufPlan& plan : plans) {
    if (plan.shape.size() > 1) bytes[plan.dtype] += plan.bytes();
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return dtype_info(most == bytes.end() ? DType::f32 : most->first).file_type;
}

class Converter {
 public:
  Converter(const Source& source, const Plan& plan, const ConvertOptions& options)
      : source_(source), plan_(plan), options_(options), total_(plan.bytes()) {}

  ConvertResult run() {
    AtomicFile file(options_.to, options_.overwrite);
    GgufFileWriter writer(file, metadata(), plan_.tensors);
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      for (const size_t part : plan_.parts[i]) {
        write_tensor(writer, source_.tensors[part], plan_.tensors[i].dtype);
      }
    }
    SNAPKV_CHECK(writer.complete());
    source_.check_unchanged();
    file.commit();
    return {std::ssize(plan_.tensors), file.position()};
  }

 private:
  Metadata metadata() const {
    Metadata metadata = source_.metadata;
    metadata.try_emplace("general.type", GgufValue{GgufType::string, GgufType::u32, "model"});
    metadata["general.file_type"] = {GgufType::u32, GgufType::u32,
                                     uint64_t{file_type_of(plan_.tensors)}};
    metadata["general.quantization_version"] = {GgufType::u32, GgufType::u32,
                                                uint64_t{kQuantizationVersion}};
    return metadata;
  }

  void write_tensor(GgufFileWriter& writer, const MappedTensor& t, DType to) {
    const int64_t n_cols = t.row_values(), n_rows = t.n_rows();
    const int64_t step = std::clamp<int64_t>(kChunkValues / n_cols, 1, n_rows);
    for (int64_t begin = 0; begin < n_rows; begin += step) {
      report();
      const int64_t end = std::min(n_rows, begin + step);
      out_.resize(row_bytes(to, n_cols) * (end - begin));
      convert_rows(t, begin, end, to);
      check_values(t, begin, end, to);
      writer.write(out_);
      done_ += out_.size();
    }
  }

  /// Converts rows [begin, end), counted in GGUF's order, to type `to`, in out_.
  void convert_rows(const MappedTensor& t, int64_t begin, int64_t end, DType to) {
    const int64_t n_cols = t.row_values();
    const int64_t to_bytes = row_bytes(to, n_cols);
    values_.resize(n_cols);
    for (int64_t i = begin; i < end; ++i) {
      std::byte* out = out_.data() + (i - begin) * to_bytes;
      if (t.tensor.dtype == to && !t.changes_values()) {
        t.copy_row(i, out);
        continue;
      }
      t.read_row(i, values_.data());
      narrow(values_.data(), n_cols, to, out);
    }
  }

  void check_values(const MappedTensor& t, int64_t begin, int64_t end, DType to) {
    const int64_t n_cols = t.row_values();
    const auto bad = first_non_finite(Tensor(out_.data(), to, {end - begin, n_cols}));
    if (!bad) return;
    const int64_t row = begin + *bad / n_cols;
    fail(ErrorCode::kBadModel, "'{}': tensor '{}' holds {} in row {}", options_.from,
         t.source != nullptr ? printable(t.source->entry.name) : printable(t.name),
         is_given(t, row, to)
             ? "an infinity or a NaN"
             : fmt::format("a value that is too large for {}; bf16 and f32 hold it", name(to)),
         t.source_row(row));
  }

  /// Whether a row that is not finite in type `to` was not before.
  bool is_given(const MappedTensor& t, int64_t row, DType to) {
    if (t.tensor.dtype == to) return true;
    t.read_row(row, values_.data());
    return std::any_of(values_.begin(), values_.end(), [](float v) { return !std::isfinite(v); });
  }

  void report() {
    if (!options_.progress) return;
    if (!options_.progress(static_cast<double>(done_) / static_cast<double>(total_))) {
      fail(ErrorCode::kCancelled, "converting '{}' was cancelled", options_.from);
    }
  }

  const Source& source_;
  const Plan& plan_;
  const ConvertOptions& options_;
  const uint64_t total_;        // bytes of data
  uint64_t done_ = 0;           // of them
  std::vector<float> values_;   // of a row
  std::vector<std::byte> out_;  // rows that are being written
};

void check_options(const ConvertOptions& options) {
  if (options.to.empty()) fail(ErrorCode::kUsage, "no file to write the model to");
  if (options.type) {
    require_range("type", static_cast<int>(*options.type), 0, std::ssize(kDTypes) - 1);
  }
  if (options.type && !can_narrow_to(*options.type)) {
    fail(ErrorCode::kUsage, "models are converted to f32, f16, bf16 and q8_0, not to {}",
         name(*options.type));
  }
  for (const std::string& file : model_files(options.from)) {
    std::error_code error;
    if (!std::filesystem::equivalent(file, options.to, error) || error) continue;
    fail(ErrorCode::kUsage, "'{}' can't be written over '{}', which the model is read from",
         options.to, file);
  }
}

}  // namespace

namespace {

/// Says what other programs will compute otherwise with the new file.
void warn_of_differences(const Source& source, const std::string& to) {
  const auto has = [&](const char* key) { return source.metadata.contains(key); };
  if (has("snapkv.rope.yarn_truncate")) {
    log_warn(
        "'{}': the model's YaRN does not round the pairs between which its mix changes (truncate: "
        "false); llama.cpp rounds them, so its logits differ a little",
        to);
  }
  const bool exact_gelu =
      std::any_of(source.metadata.begin(), source.metadata.end(), [](const auto& entry) {
        const auto* text = std::get_if<std::string>(&entry.second.value);
        return entry.first.ends_with(".hidden_activation") && text != nullptr && *text == "gelu";
      });
  if (exact_gelu) {
    log_warn(
        "'{}': the model has GELU itself; llama.cpp computes its approximation by tanh, so its "
        "logits differ a little",
        to);
  }
  if (has("phimoe.block_count")) {
    log_warn(
        "'{}': llama.cpp computes RMS norms where this model has layer norms, and other weights of "
        "experts, so its logits differ",
        to);
  }
  if (has("snapkv.attention.qk_norm") || has("llama4.attention.sliding_window") ||
      has("llama4.attention.temperature_scale") || has("llama4.attention.temperature_length")) {
    log_warn(
        "'{}': the model's chunks of attention, norms of queries or scales of queries are others "
        "than llama.cpp takes for granted, so its logits differ",
        to);
  }
  if (has("minicpm3.embedding_scale") || has("minicpm3.residual_scale") ||
      has("minicpm3.logit_scale")) {
    log_warn(
        "'{}': the model's scales of embeddings, residual stream or logits are others than those "
        "of MiniCPM3-4B, which llama.cpp takes for granted, so its logits differ",
        to);
  }
  if (has("snapkv.expert_group_best")) {
    log_warn(
        "'{}': the model's tokens choose groups of experts by the highest score in each "
        "(topk_method: group_limited_greedy); llama.cpp adds the two highest, so its logits differ",
        to);
  }
  if (const auto window = source.metadata.find("smallthinker.attention.sliding_window");
      window != source.metadata.end() && std::get<uint64_t>(window->second.value) != 4096) {
    log_warn(
        "'{}': the model's sliding windows have {} tokens; llama.cpp takes those of this "
        "architecture to have 4096, so its logits differ",
        to, std::get<uint64_t>(window->second.value));
  }
  if (has("grovemoe.block_count")) {
    log_warn(
        "'{}': llama.cpp takes other weights for the smaller experts that two experts share, and "
        "lets them read what these have computed, so its logits differ",
        to);
  }
  if (has("chameleon.block_count")) {
    log_warn(
        "'{}': heads of queries and keys and their norms are in the folder's order, which "
        "llama.cpp does not know, so it computes something else",
        to);
  }
  if (has("snapkv.ssm_norm_epsilon")) {
    log_warn(
        "'{}': the norms of steps, B and C have an epsilon of their own (mixer_rms_eps); llama.cpp "
        "takes that of the other norms, so its logits differ a little",
        to);
  }
}

}  // namespace

ConvertResult convert_model(const ConvertOptions& options) {
  check_options(options);
  check_runs(options.from);
  const Source source = open_source(options.from);
  warn_of_differences(source, options.to);
  return Converter(source, plan_tensors(source, options.type), options).run();
}

}  // namespace snapkv
