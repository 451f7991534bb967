// SPDX-License-Identifier: MIT
#include "model/metadata_reader.h"

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {

MetadataReader::MetadataReader(const GgufFile& file)
    : file_(file), architecture_(file.get_string("general.architecture")) {}

bool MetadataReader::has(std::string_view name) const { return file_.has(key(name)); }

int64_t MetadataReader::size(std::string_view name, int64_t max) const {
  return checked(name, file_.get_uint(key(name)), max);
}

int64_t MetadataReader::size(std::string_view name, int64_t otherwise, int64_t max) const {
  return has(name) ? size(name, max) : otherwise;
}

double MetadataReader::positive(std::string_view name) const {
  const double v = file_.get_float(key(name));
  const auto as_f32 = static_cast<float>(v);
  if (!std::isfinite(as_f32) || as_f32 <= 0) {
    fail(ErrorCode::kBadModel, "{}: {} must be a positive number that f32 can hold, it is {}",
         file_.path(), key(name), v);
  }
  return v;
}

double MetadataReader::positive(std::string_view name, double otherwise) const {
  return has(name) ? positive(name) : otherwise;
}

double MetadataReader::not_negative(std::string_view name, double otherwise) const {
  const double v = file_.get_float(key(name), otherwise);
  const auto as_f32 = static_cast<float>(v);
  if (!std::isfinite(as_f32) || v < 0 || (as_f32 == 0) != (v == 0)) {
    fail(ErrorCode::kBadModel, "{}: {} must be 0 or a positive number that f32 can hold, it is {}",
         file_.path(), key(name), v);
  }
  return v;
}

float MetadataReader::softcap(std::string_view name, double otherwise) const {
  const double v = not_negative(name, otherwise);
  if (v != 0 && (v < 1e-30 || v > 1e30)) {
    fail(ErrorCode::kBadModel, "{}: {} must be 0 or a number from 1e-30 to 1e30, it is {}",
         file_.path(), key(name), v);
  }
  return static_cast<float>(v);
}

bool MetadataReader::flag(std::string_view name, bool otherwise) const {
  return file_.get_bool(key(name), otherwise);
}

std::string MetadataReader::text(std::string_view name, std::string_view otherwise) const {
  return file_.get_string(key(name), otherwise);
}

int64_t MetadataReader::checked(std::string_view name, uint64_t v, int64_t max) const {
  if (v < 1 || v > static_cast<uint64_t>(max)) {
    fail(ErrorCode::kBadModel, "{}: {} must be between 1 and {}, it is {}", file_.path(), key(name),
         max, v);
  }
  return static_cast<int64_t>(v);
}

}  // namespace snapkv
