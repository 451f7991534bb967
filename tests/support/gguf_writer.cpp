// SPDX-License-Identifier: MIT
#include "tests/support/gguf_writer.h"

#include <fmt/core.h>
#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "format/ggml_types.h"

namespace snapkv::test {
namespace {

size_t aligned(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

}  // namespace

ByteWriter& ByteWriter::put_bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

ByteWriter& ByteWriter::put_string(std::string_view text) {
  put(static_cast<uint64_t>(text.size()));
  return put_bytes(std::as_bytes(std::span(text)));
}

ByteWriter& ByteWriter::pad(size_t alignment) {
  bytes_.resize(aligned(bytes_.size(), alignment));
  return *this;
}

GgufWriter::GgufWriter(uint32_t version, uint32_t alignment)
    : version_(version), alignment_(alignment) {
  if (alignment != 32) add("general.alignment", alignment);
}

GgufWriter& GgufWriter::add_entry(std::string_view key, const ByteWriter& type_and_value) {
  metadata_.put_string(key).put_bytes(type_and_value.bytes());
  ++n_kv_;
  return *this;
}

GgufWriter& GgufWriter::add(std::string_view key, std::string_view value) {
  ByteWriter w;
  w.put(static_cast<uint32_t>(GgufType::string)).put_string(value);
  return add_entry(key, w);
}

GgufWriter& GgufWriter::add(std::string_view key, const std::string& value) {
  return add(key, std::string_view(value));
}

GgufWriter& GgufWriter::add(std::string_view key, const char* value) {
  return add(key, std::string_view(value));
}

GgufWriter& GgufWriter::add(std::string_view key, const std::vector<std::string>& values) {
  ByteWriter w;
  w.put(static_cast<uint32_t>(GgufType::array)).put(static_cast<uint32_t>(GgufType::string));
  w.put(static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) w.put_string(value);
  return add_entry(key, w);
}

GgufWriter& GgufWriter::add_tensor(std::string_view name, DType dtype, std::vector<int64_t> shape,
                                   std::span<const std::byte> data) {
  return add_raw_tensor(name, dtype_info(dtype).ggml_type, std::move(shape), data);
}

GgufWriter& GgufWriter::add_f32(std::string_view name, std::vector<int64_t> shape,
                                const std::vector<float>& values) {
  return add_tensor(name, DType::f32, std::move(shape), std::as_bytes(std::span(values)));
}

GgufWriter& GgufWriter::add_raw_tensor(std::string_view name, uint32_t ggml_type,
                                       std::vector<int64_t> shape,
                                       std::span<const std::byte> data) {
  tensors_.push_back({std::string(name), ggml_type, std::move(shape), {data.begin(), data.end()}});
  return *this;
}

std::vector<std::byte> GgufWriter::bytes() const {
  ByteWriter w;
  w.put_bytes(std::as_bytes(std::span(std::string_view("GGUF")))).put(version_);
  w.put(static_cast<uint64_t>(tensors_.size())).put(n_kv_).put_bytes(metadata_.bytes());
  uint64_t offset = 0;
  for (const StoredTensor& t : tensors_) {
    w.put_string(t.name).put(static_cast<uint32_t>(t.shape.size()));
    for (size_t i = t.shape.size(); i > 0; --i) w.put(static_cast<uint64_t>(t.shape[i - 1]));
    w.put(t.ggml_type).put(offset);
    offset += aligned(t.data.size(), alignment_);
  }
  for (const StoredTensor& t : tensors_) w.pad(alignment_).put_bytes(t.data);
  return w.pad(alignment_).bytes();
}

void GgufWriter::write(const std::string& path) const { write_bytes(path, bytes()); }

std::vector<std::string> GgufWriter::write_split(const std::string& prefix, int n_parts) const {
  std::vector<std::string> paths;
  const auto n = static_cast<size_t>(n_parts);
  for (size_t i = 0; i < n; ++i) {
    GgufWriter part(version_, alignment_);
    if (i == 0) {
      part.metadata_ = metadata_;
      part.n_kv_ = n_kv_;
    }
    part.add("split.no", static_cast<uint16_t>(i));
    part.add("split.count", static_cast<uint16_t>(n));
    part.add("split.tensors.count", static_cast<int32_t>(tensors_.size()));
    const auto at = [&](size_t index) {
      return tensors_.begin() + static_cast<std::ptrdiff_t>(tensors_.size() * index / n);
    };
    part.tensors_.assign(at(i), at(i + 1));
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", prefix, i + 1, n));
    part.write(paths.back());
  }
  return paths;
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  SNAPKV_CHECK(file.good());
}

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "snapkv-XXXXXX").string();
  SNAPKV_CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace snapkv::test
