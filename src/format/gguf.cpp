// SPDX-License-Identifier: MIT
// GgufFile: typed access to what gguf_part.cpp parsed; joins the parts of split files.
#include "format/gguf.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "format/byte_reader.h"
#include "format/gguf_part.h"

namespace snapkv {
namespace {

/// The parts of a name such as "dir/model-00002-of-00005.gguf".
struct SplitName {
  std::string prefix;  // "dir/model"
  uint64_t number = 0;
  uint64_t count = 0;
};

std::optional<uint64_t> five_digits(std::string_view s) {
  uint64_t n = 0;
  for (const char c : s) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-00001-of-00001.gguf";
  if (path.size() <= kPattern.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kPattern.size());
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf" || !number ||
      !count) {
    return std::nullopt;
  }
  return SplitName{std::string(path.substr(0, path.size() - kPattern.size())), *number, *count};
}

std::string split_path(const SplitName& name, uint64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, number, name.count);
}

/// The value of a non-negative integer of any width; nullopt if absent.
std::optional<uint64_t> split_value(const GgufPart& part, std::string_view key,
                                    const std::string& path) {
  const auto at = part.metadata.find(key);
  if (at == part.metadata.end()) return std::nullopt;
  if (const auto* u = std::get_if<uint64_t>(&at->second.value)) return *u;
  if (const auto* i = std::get_if<int64_t>(&at->second.value); i != nullptr && *i >= 0) {
    return *i;
  }
  fail(ErrorCode::kBadModel, "'{}': key '{}' is not a non-negative integer", path, key);
}

/// Checks the first part's split keys against its name. nullopt if the file is not split.
std::optional<SplitName> split_of(const GgufPart& part, const std::string& path) {
  const uint64_t count = split_value(part, "split.count", path).value_or(1);
  if (count <= 1) return std::nullopt;
  const auto split_name = parse_split_name(path);
  if (!split_name) {
    fail(ErrorCode::kBadModel,
         "'{}': a part of a model split into {} files, but its name does not end in "
         "'-NNNNN-of-{:05}.gguf', so the others cannot be found",
         path, count, count);
  }
  if (split_name->count != count) {
    fail(ErrorCode::kBadModel, "'{}': key 'split.count' is {}, but the name says {} parts", path,
         count, split_name->count);
  }
  const auto number = split_value(part, "split.no", path);
  if (!number) fail(ErrorCode::kBadModel, "'{}': key 'split.no' is missing", path);
  if (*number != 0) {
    fail(ErrorCode::kBadModel, "'{}' is part {} of {} of a split model; open the first part, '{}'",
         path, *number + 1, count, split_path(*split_name, 1));
  }
  if (split_name->number != 1) {
    fail(ErrorCode::kBadModel, "'{}': key 'split.no' is 0, but the name says part {}", path,
         split_name->number);
  }
  return split_name;
}

/// Checks the split keys of part `index`, counted from 0.
void check_part(const GgufPart& part, uint64_t index, uint64_t count, const std::string& path) {
  const auto expect = [&](std::string_view key, uint64_t expected) {
    const auto value = split_value(part, key, path);
    if (!value) fail(ErrorCode::kBadModel, "'{}': key '{}' is missing", path, key);
    if (*value != expected) {
      fail(ErrorCode::kBadModel, "'{}': key '{}' is {}, expected {}", path, key, *value, expected);
    }
  };
  expect("split.no", index);
  expect("split.count", count);
}

}  // namespace

std::vector<std::string> gguf_files(const std::string& path) {
  std::vector<std::string> files = {path};
  const auto split = parse_split_name(path);
  std::error_code error;
  for (uint64_t i = 1; split && i <= split->count; ++i) {
    const std::string part = split_path(*split, i);
    if (part == path) continue;
    if (!std::filesystem::exists(part, error)) break;
    files.push_back(part);
  }
  return files;
}

GgufFile::GgufFile() = default;
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

void GgufFile::add_tensors(std::vector<GgufTensor> tensors, const std::string& label) {
  for (GgufTensor& t : tensors) {
    if (!tensor_index_.emplace(t.name, tensors_.size()).second) {
      fail(ErrorCode::kBadModel, "'{}': tensor '{}' is in another part of the split too", label,
           printable(t.name));
    }
    tensors_.push_back(std::move(t));
  }
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, const std::string& label) {
  GgufPart part = parse_gguf_part(bytes, label, 0, /*any_type=*/false);
  GgufFile file;
  file.path_ = label;
  file.version_ = part.version;
  file.file_bytes_ = bytes.size();
  file.metadata_ = std::move(part.metadata);
  file.add_tensors(std::move(part.tensors), label);
  return file;
}

GgufFile GgufFile::assemble(ModelParts parts) {
  GgufFile file;
  file.path_ = std::move(parts.path);
  for (const MmapFile& f : parts.files) file.file_bytes_ += f.bytes().size();
  file.metadata_ = std::move(parts.metadata);
  file.parts_ = std::move(parts.files);
  file.buffers_ = std::move(parts.buffers);
  file.text_fingerprint_ = parts.fingerprint;
  file.add_tensors(std::move(parts.tensors), file.path_);
  return file;
}

GgufFile GgufFile::open(const std::string& path, const ReadOptions& options) {
  uint64_t left = options.most_copied;
  const auto open_part = [&](const std::string& part_path) {
    if (options.access == FileAccess::copied) left -= bytes_to_copy(part_path, left);
    return MmapFile(part_path, options.access);
  };
  GgufFile file;
  file.path_ = path;
  file.parts_.push_back(open_part(path));
  GgufPart first = parse_gguf_part(file.parts_[0].bytes(), path, 0, options.any_type);
  const auto split = split_of(first, path);
  const auto n_tensors = split_value(first, "split.tensors.count", path);
  file.version_ = first.version;
  file.file_bytes_ = file.parts_[0].bytes().size();
  file.metadata_ = std::move(first.metadata);
  file.add_tensors(std::move(first.tensors), path);
  if (!split) return file;

  for (int i = 1; i < static_cast<int64_t>(split->count); ++i) {  // at most 99999, by its name
    const std::string part_path = split_path(*split, i + 1);
    file.parts_.push_back(open_part(part_path));
    const std::span<const std::byte> bytes = file.parts_.back().bytes();
    GgufPart part = parse_gguf_part(bytes, part_path, i, options.any_type);
    check_part(part, i, split->count, part_path);
    file.file_bytes_ += bytes.size();
    file.add_tensors(std::move(part.tensors), part_path);
  }
  if (!n_tensors) fail(ErrorCode::kBadModel, "'{}': key 'split.tensors.count' is missing", path);
  if (*n_tensors != file.tensors_.size()) {
    fail(ErrorCode::kBadModel, "'{}': key 'split.tensors.count' is {}, but the {} parts have {}",
         path, *n_tensors, split->count, file.tensors_.size());
  }
  return file;
}

uint64_t GgufFile::fingerprint() const {
  Hash64 hash;
  if (text_fingerprint_) {
    hash.add(*text_fingerprint_);
  } else {
    for (int p = 0; p < std::ssize(parts_); ++p) {
      const std::span<const std::byte> bytes = parts_[p].bytes();
      uint64_t header = bytes.size();
      for (const GgufTensor& t : tensors_) {
        if (t.part == p) header = std::min(header, t.file_offset);
      }
      hash.add(bytes.first(header));
    }
  }
  for (const GgufTensor& t : tensors_) {
    if (t.tensor.data == nullptr) continue;
    const std::span data(static_cast<const std::byte*>(t.tensor.data), t.bytes());
    const size_t n = std::min<size_t>(64, data.size());
    hash.add(data.first(n));
    hash.add(data.subspan((data.size() - n) / 2, n));
    hash.add(data.last(n));
  }
  for (const std::string& key : replaced_) {
    hash.add(std::as_bytes(std::span(key)));
    const GgufValue& value = metadata_.find(key)->second;
    if (const auto* text = std::get_if<std::string>(&value.value)) {
      hash.add(std::as_bytes(std::span(*text)));
    } else if (const auto* whole = std::get_if<uint64_t>(&value.value)) {
      hash.add(*whole);
    } else if (const auto* real = std::get_if<double>(&value.value)) {
      hash.add(std::as_bytes(std::span(real, 1)));
    }
  }
  return hash.value();
}

void GgufFile::replace(const std::string& key, GgufValue value) {
  const auto found = metadata_.find(key);
  if (found != metadata_.end() && found->second.value == value.value) return;
  metadata_[key] = std::move(value);
  replaced_.push_back(key);
}

void GgufFile::check_unchanged() const {
  for (const MmapFile& part : parts_) part.check_unchanged();
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto at = tensor_index_.find(name);
  return at == tensor_index_.end() ? nullptr : &tensors_[at->second];
}

void GgufFile::will_need(const GgufTensor& t) const {
  if (t.part < std::ssize(parts_) && t.part >= 0)
    parts_[t.part].will_need(t.file_offset, t.bytes());
}

void GgufFile::dont_need(const GgufTensor& t) const {
  if (t.part < std::ssize(parts_) && t.part >= 0)
    parts_[t.part].dont_need(t.file_offset, t.bytes());
}

std::optional<size_t> GgufFile::move_to_huge_pages(int part, size_t offset, size_t length) {
  if (part < 0 || part >= std::ssize(parts_)) return 0;
  return parts_[part].move_to_huge_pages(offset, length);
}

// Typed access ------------------------------------------------------------------------------------

const GgufValue& GgufFile::value(std::string_view key) const {
  const auto at = metadata_.find(key);
  if (at == metadata_.end()) {
    fail(ErrorCode::kBadModel, "'{}': metadata key '{}' is missing", path_, key);
  }
  return at->second;
}

void GgufFile::fail_type(std::string_view key, std::string_view expected) const {
  const GgufValue& v = value(key);
  std::string found(gguf_type_name(v.type));
  if (v.type == GgufType::array) found = fmt::format("array of {}", gguf_type_name(v.element));
  fail(ErrorCode::kBadModel, "'{}': metadata key '{}' has type {}, expected {}", path_, key, found,
       expected);
}

uint64_t GgufFile::get_uint(std::string_view key) const {
  const GgufValue& v = value(key);
  if (const auto* u = std::get_if<uint64_t>(&v.value)) return *u;
  const auto* i = std::get_if<int64_t>(&v.value);
  if (i == nullptr) fail_type(key, "an unsigned integer");
  if (*i < 0) {
    fail(ErrorCode::kBadModel, "'{}': metadata key '{}' is {}, expected no negative number", path_,
         key, *i);
  }
  return *i;
}

double GgufFile::get_float(std::string_view key) const {
  const auto* v = std::get_if<double>(&value(key).value);
  if (v == nullptr) fail_type(key, "f32 or f64");
  return *v;
}

const std::string& GgufFile::get_string(std::string_view key) const {
  const auto* v = std::get_if<std::string>(&value(key).value);
  if (v == nullptr) fail_type(key, "string");
  return *v;
}

const std::vector<std::string>& GgufFile::get_strings(std::string_view key) const {
  const auto* v = std::get_if<std::vector<std::string>>(&value(key).value);
  if (v == nullptr) fail_type(key, "array of string");
  return *v;
}

std::vector<double> GgufFile::get_floats(std::string_view key) const {
  const auto* v = std::get_if<std::vector<double>>(&value(key).value);
  if (v == nullptr) fail_type(key, "array of f32 or f64");
  return *v;
}

std::vector<int64_t> GgufFile::get_ints(std::string_view key) const {
  const GgufValue& v = value(key);
  if (const auto* i = std::get_if<std::vector<int64_t>>(&v.value)) return *i;
  const auto* u = std::get_if<std::vector<uint64_t>>(&v.value);
  if (u == nullptr) fail_type(key, "array of integers");
  for (const uint64_t n : *u) {
    if (!std::in_range<int64_t>(n)) {
      fail(ErrorCode::kBadModel, "'{}': metadata key '{}' holds {}, which does not fit i64", path_,
           key, n);
    }
  }
  return {u->begin(), u->end()};
}

uint64_t GgufFile::get_uint(std::string_view key, uint64_t otherwise) const {
  return has(key) ? get_uint(key) : otherwise;
}

double GgufFile::get_float(std::string_view key, double otherwise) const {
  return has(key) ? get_float(key) : otherwise;
}

bool GgufFile::get_bool(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const auto* v = std::get_if<bool>(&value(key).value);
  if (v == nullptr) fail_type(key, "bool");
  return *v;
}

std::string GgufFile::get_string(std::string_view key, std::string_view otherwise) const {
  return has(key) ? get_string(key) : std::string(otherwise);
}

}  // namespace snapkv
