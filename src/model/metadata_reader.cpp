// SPDX-License-Identifier: MIT
#include "model/metadata_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

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

std::vector<int64_t> MetadataReader::sizes(std::string_view name, int64_t n,
                                           const std::vector<int64_t>& otherwise, int64_t least,
                                           int64_t max) const {
  const auto it = file_.metadata().find(key(name));
  if (it == file_.metadata().end() && !otherwise.empty()) return otherwise;
  if (it == file_.metadata().end() || it->second.type != GgufType::array) {
    return std::vector<int64_t>(n, size(name, max));
  }
  std::vector<int64_t> all;
  int64_t n_given = 0;
  const auto add = [&](const auto& values) {
    n_given = std::ssize(values);
    for (int64_t il = 0; il < std::min(n, n_given); ++il) {
      // a negative number becomes one that is too large
      all.push_back(checked(name, static_cast<uint64_t>(values[il]), max, least));
    }
  };
  if (const auto* u = std::get_if<std::vector<uint64_t>>(&it->second.value)) {
    add(*u);
  } else if (const auto* i = std::get_if<std::vector<int64_t>>(&it->second.value)) {
    add(*i);
  } else {
    fail(ErrorCode::kBadModel, "{}: {} must be a whole number or an array of them", file_.path(),
         it->first);
  }
  if (n_given != n && n_given != size("block_count", INT32_MAX)) {
    fail(ErrorCode::kBadModel, "{}: {} has {} entries, expected one for each of {} layers",
         file_.path(), it->first, n_given, n);
  }
  return all;
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

int64_t MetadataReader::checked(std::string_view name, uint64_t v, int64_t max,
                                int64_t least) const {
  if (v < static_cast<uint64_t>(least) || v > static_cast<uint64_t>(max)) {
    fail(ErrorCode::kBadModel, "{}: {} must be between {} and {}, it is {}", file_.path(),
         key(name), least, max, v);
  }
  return static_cast<int64_t>(v);
}

}  // namespace snapkv
