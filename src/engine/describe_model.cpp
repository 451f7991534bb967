// SPDX-License-Identifier: MIT
// describe_model(): what a file contains and whether it can run. Every part is tried on its own, so
// that all problems are reported at once.
#include <algorithm>
#include <map>

#include "backend/backend.h"
#include "base/error.h"
#include "engine/core/model_impl.h"
#include "engine/describe.h"
#include "engine/files/open_model.h"
#include "format/ggml_types.h"
#include "huggingface/folder.h"
#include "model/architecture.h"
#include "model/file_kind.h"
#include "snapkv/tokenizer.h"

namespace snapkv {
namespace {

/// "Q8_0" -> "q8_0"
std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string type_name(const GgufTensor& t) {
  if (t.supported) return std::string(name(t.tensor.dtype));
  const GgmlType* type = find_ggml_type(t.ggml_type);
  return type != nullptr ? lower(type->name) : fmt::format("type {}", t.ggml_type);
}

/// a + b, or the largest number if that overflows: shapes may be hostile where a type is unknown.
int64_t added(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void add_tensor(ModelDescription& d, TensorEntry entry) {
  int64_t n_params = 1;
  for (const int64_t n : entry.shape) n_params *= n;
  auto at = std::find_if(d.types.begin(), d.types.end(),
                         [&](const TypeShare& share) { return share.type == entry.type; });
  if (at == d.types.end()) at = d.types.insert(at, {entry.type, 0, 0, 0});
  ++at->n_tensors;
  at->n_params = added(at->n_params, n_params);
  at->bytes += entry.bytes;
  d.tensors.push_back(std::move(entry));
}

/// Computes the sums, and sorts the types by bytes, largest first.
void finish_types(ModelDescription& d) {
  d.info.n_params = 0;
  d.info.weight_bytes = 0;
  for (const TypeShare& share : d.types) {
    d.info.n_params = added(d.info.n_params, share.n_params);
    d.info.weight_bytes += share.bytes;
  }
  std::stable_sort(d.types.begin(), d.types.end(),
                   [](const TypeShare& a, const TypeShare& b) { return a.bytes > b.bytes; });
}

/// Facts from keys that any architecture has, for a file with an unknown one.
ModelInfo basic_info(const GgufFile& file) {
  ModelInfo info;
  info.path = file.path();
  const auto text = [&](const std::string& key) -> std::string {
    const auto at = file.metadata().find(key);
    if (at == file.metadata().end()) return "";
    const auto* value = std::get_if<std::string>(&at->second.value);
    return value == nullptr ? "" : *value;
  };
  info.architecture = text("general.architecture");
  info.name = text("general.name");
  info.tokenizer = text("tokenizer.ggml.model");
  const auto size = [&](const char* name) -> int64_t {
    const auto at = file.metadata().find(info.architecture + "." + name);
    if (at == file.metadata().end()) return 0;
    const auto* value = std::get_if<uint64_t>(&at->second.value);
    return value == nullptr || !std::in_range<int64_t>(*value) ? 0 : *value;
  };
  info.n_layer = size("block_count");
  info.n_embd = size("embedding_length");
  info.n_ff = size("feed_forward_length");
  info.n_ctx_train = size("context_length");
  info.n_head = size("attention.head_count");
  info.n_head_kv = size("attention.head_count_kv");
  if (const GgufTensor* embd = file.find_tensor("token_embd.weight")) {
    info.n_vocab = embd->tensor.shape[0];
  }
  return info;
}

class Describer {
 public:
  explicit Describer(const GgufFile& file) : file_(file) {}

  ModelDescription run() {
    for (const auto& [key, value] : file_.metadata()) {
      d_.metadata.push_back(describe_entry(key, value));
    }
    for (const GgufTensor& t : file_.tensors()) {
      const auto& shape = t.tensor.shape;
      add_tensor(d_, {t.name,
                      type_name(t),
                      {shape.begin(), shape.begin() + t.tensor.rank},
                      static_cast<size_t>(t.bytes())});
    }
    d_.info = basic_info(file_);
    if (const std::string kind = foreign_kind(file_); !kind.empty()) {
      finish_types(d_);
      d_.problems.push_back(file_.path() + ": " + kind);
      return std::move(d_);
    }
    try_part([&] {
      const ModelSpec spec = read_model_spec(file_);
      d_.family = spec.family->models;
      d_.info = make_info(file_, spec, nullptr);
    });
    finish_types(d_);
    check_types();
    if (d_.problems.empty()) {
      try_part([&] { d_.info.decoder = Architecture::make(file_); });
    }
    try_part([&] { check_tokenizer(); });
    try_part([&] { d_.chat_template = file_.get_string("tokenizer.chat_template", ""); });
    return std::move(d_);
  }

 private:
  template <typename Part>
  void try_part(Part part) {
    try {
      part();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadModel) throw;
      d_.problems.push_back(e.what());
    }
  }

  void check_types() {
    std::map<std::string, std::pair<int64_t, const GgufTensor*>> types;  // count, first one
    for (const GgufTensor& t : file_.tensors()) {
      if (t.supported) continue;
      auto& [n, first] = types[ggml_type_name(t.ggml_type)];
      if (n++ == 0) first = &t;
    }
    for (const auto& [type, tensors] : types) {
      d_.problems.push_back(fmt::format(
          "{} of type {}, which is not supported, such as {}",
          tensors.first == 1 ? "a tensor is" : fmt::format("{} tensors are", tensors.first), type,
          tensors.second->name));
    }
  }

  void check_tokenizer() {
    const auto tokenizer = Tokenizer::from_gguf(file_);
    if (d_.info.n_vocab != 0 && tokenizer->n_vocab() != d_.info.n_vocab) {
      fail(ErrorCode::kBadModel, "tokenizer.ggml.tokens has {} entries, the embedding {} rows",
           tokenizer->n_vocab(), d_.info.n_vocab);
    }
  }

  const GgufFile& file_;
  ModelDescription d_;
};

/// Describes a folder that cannot be read as a model: its weights, and the reason.
ModelDescription describe_unreadable_folder(const std::string& path, const std::string& problem) {
  ModelDescription d;
  d.info.path = path;
  d.problems.push_back(problem);
  const huggingface::Shards shards = huggingface::open_shards(path, {});
  for (const huggingface::ShardTensor& t : shards.tensors) {
    add_tensor(d, {t.entry.name, lower(t.entry.type->name), t.entry.shape,
                   static_cast<size_t>(t.entry.end - t.entry.begin)});
  }
  finish_types(d);
  d.info.architecture = huggingface::class_name(path);
  return d;
}

}  // namespace

ModelDescription describe_model(const std::string& path) {
  return describe_model(ModelOptions{.path = path});
}

namespace {

ModelDescription describe_one(const ModelOptions& options) {
  const std::string& path = options.path;
  if (huggingface::is_folder(path)) {
    try {
      const GgufFile file = open_model(options, {.copies_values = false});
      return Describer(file).run();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kBadModel) throw;
      return describe_unreadable_folder(path, e.what());
    }
  }
  const GgufFile file = open_model(options, {.access = FileAccess::mapped, .any_type = true, .copies_values = false});
  return Describer(file).run();
}

}  // namespace

ModelDescription describe_model(const ModelOptions& options) {
  ModelDescription d = describe_one(options);
  if (options.draft_model.empty()) return d;
  ModelDescription draft = describe_one(draft_model_options(options));
  for (const std::string& problem : draft.problems) {
    d.problems.push_back(fmt::format("{}: {}", options.draft_model, problem));
  }
  if (draft.info.decoder == nullptr) d.info.decoder = nullptr;  // both or none of them run
  d.info.draft = std::make_shared<ModelInfo>(std::move(draft.info));
  return d;
}

}  // namespace snapkv
