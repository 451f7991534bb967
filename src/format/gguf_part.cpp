// SPDX-License-Identifier: MIT
// One function per construct of the format; ByteReader checks every read.
#include "format/gguf_part.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "format/byte_reader.h"
#include "format/ggml_types.h"

namespace snapkv {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8;        // the format's minimum; also enough for every dtype
constexpr uint64_t kMaxAlignment = 1 << 20;  // far above any page size in use
/// Of a key's array. Values take up to eight times as much memory as in the file.
constexpr uint64_t kMostValues = uint64_t{1} << 24;
constexpr uint64_t kMaxTypeValue = static_cast<uint64_t>(GgufType::f64);

// Smallest possible encodings, used to reject counts that the file cannot hold before allocating.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;           // key of one byte, type, u8 value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name of one byte, one dimension

/// The fewest bytes that a value of this type takes.
uint64_t min_value_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::string:
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::array:
      return 12;
  }
  return 1;
}

class PartParser {
 public:
  PartParser(std::span<const std::byte> bytes, const std::string& label, int part, bool any_type)
      : bytes_(bytes), label_(label), part_(part), any_type_(any_type), reader_(bytes, label) {}

  GgufPart run() {
    read_header();
    for (uint64_t i = 0; i < n_kv_; ++i) read_entry(i);
    read_alignment();
    result_.tensors.reserve(n_tensors_);
    std::set<std::string_view> names;
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      result_.tensors.push_back(read_tensor(i));
      if (!names.insert(result_.tensors.back().name).second) {
        bad("tensor name '{}' occurs twice", printable(result_.tensors.back().name));
      }
    }
    place_tensors();
    return std::move(result_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::kBadModel, "'{}': {}", label_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  void read_header() {
    const std::string_view found(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<size_t>(4, bytes_.size()));
    if (found != "GGUF") {
      bad("not a GGUF file: it begins with '{}', expected 'GGUF'", printable(found));
    }
    reader_.read<uint32_t>("magic");
    const auto version = reader_.read<uint32_t>("version");
    if (version != 0 && (version & 0xffffu) == 0) {
      bad("the file is big-endian, only little-endian files are supported");
    }
    if (version != 2 && version != 3) {
      bad("GGUF version {} is not supported, expected 2 or 3", version);
    }
    result_.version = version;
    n_tensors_ = reader_.read<uint64_t>("tensor count");
    n_kv_ = reader_.read<uint64_t>("metadata count");
    reader_.check_count(n_kv_, kMinEntryBytes, "metadata count");
    reader_.check_count(n_tensors_, kMinTensorBytes, "tensor count");
  }

  GgufType read_type(std::string_view field) {
    const auto type = reader_.read<uint32_t>(field);
    if (type > kMaxTypeValue) {
      bad("{} has unknown type {}, expected 0 to {}", printable(field), type, kMaxTypeValue);
    }
    return static_cast<GgufType>(type);
  }

  void read_entry(uint64_t index) {
    std::string key = reader_.read_string("metadata key");
    if (key.empty()) bad("metadata key {} is empty", index);
    GgufValue value;
    value.type = read_type(key);
    if (value.type == GgufType::array) {
      read_array(key, value);
    } else {
      read_scalar(key, value);
    }
    const auto [at, inserted] = result_.metadata.try_emplace(std::move(key), std::move(value));
    if (!inserted) bad("metadata key '{}' occurs twice", printable(at->first));
  }

  bool read_bool(std::string_view key) {
    const auto byte = reader_.read<uint8_t>(key);
    if (byte > 1) bad("key '{}': a bool is {}, expected 0 or 1", printable(key), byte);
    return byte == 1;
  }

  void read_scalar(const std::string& key, GgufValue& out) {
    auto& v = out.value;
    switch (out.type) {
      case GgufType::u8:
        v = uint64_t{reader_.read<uint8_t>(key)};
        break;
      case GgufType::u16:
        v = uint64_t{reader_.read<uint16_t>(key)};
        break;
      case GgufType::u32:
        v = uint64_t{reader_.read<uint32_t>(key)};
        break;
      case GgufType::u64:
        v = reader_.read<uint64_t>(key);
        break;
      case GgufType::i8:
        v = int64_t{reader_.read<int8_t>(key)};
        break;
      case GgufType::i16:
        v = int64_t{reader_.read<int16_t>(key)};
        break;
      case GgufType::i32:
        v = int64_t{reader_.read<int32_t>(key)};
        break;
      case GgufType::i64:
        v = reader_.read<int64_t>(key);
        break;
      case GgufType::f32:
        v = double{reader_.read<float>(key)};
        break;
      case GgufType::f64:
        v = reader_.read<double>(key);
        break;
      case GgufType::boolean:
        v = read_bool(key);
        break;
      case GgufType::string:
        v = reader_.read_string(key);
        break;
      case GgufType::array:
        break;  // read_array
    }
  }

  template <typename FileType, typename T>
  std::vector<T> read_numbers(const std::string& key, uint64_t count) {
    std::vector<T> values(count);
    for (T& value : values) value = reader_.read<FileType>(key);
    return values;
  }

  void read_array(const std::string& key, GgufValue& out) {
    out.element = read_type(key);
    if (out.element == GgufType::array) {
      bad("key '{}': arrays of arrays are not supported", printable(key));
    }
    const auto count = reader_.read<uint64_t>(key);
    reader_.check_count(count, min_value_bytes(out.element), key);
    if (count > kMostValues) {
      bad("key '{}' is an array of {} values, expected at most {}", printable(key), count,
          kMostValues);
    }
    auto& v = out.value;
    switch (out.element) {
      case GgufType::u8:
        v = read_numbers<uint8_t, uint64_t>(key, count);
        break;
      case GgufType::u16:
        v = read_numbers<uint16_t, uint64_t>(key, count);
        break;
      case GgufType::u32:
        v = read_numbers<uint32_t, uint64_t>(key, count);
        break;
      case GgufType::u64:
        v = read_numbers<uint64_t, uint64_t>(key, count);
        break;
      case GgufType::i8:
        v = read_numbers<int8_t, int64_t>(key, count);
        break;
      case GgufType::i16:
        v = read_numbers<int16_t, int64_t>(key, count);
        break;
      case GgufType::i32:
        v = read_numbers<int32_t, int64_t>(key, count);
        break;
      case GgufType::i64:
        v = read_numbers<int64_t, int64_t>(key, count);
        break;
      case GgufType::f32:
        v = read_numbers<float, double>(key, count);
        break;
      case GgufType::f64:
        v = read_numbers<double, double>(key, count);
        break;
      case GgufType::boolean: {
        std::vector<bool> values(count);
        for (uint64_t i = 0; i < count; ++i) values[i] = read_bool(key);
        v = std::move(values);
        break;
      }
      case GgufType::string: {
        std::vector<std::string> values(count);
        for (std::string& value : values) value = reader_.read_string(key);
        v = std::move(values);
        break;
      }
      case GgufType::array:
        break;  // rejected above
    }
  }

  void read_alignment() {
    const auto at = result_.metadata.find("general.alignment");
    if (at == result_.metadata.end()) return;
    const auto* value = std::get_if<uint64_t>(&at->second.value);
    if (value == nullptr) {
      bad("key 'general.alignment' has type {}, expected u32", gguf_type_name(at->second.type));
    }
    if (!std::has_single_bit(*value) || *value < kMinAlignment || *value > kMaxAlignment) {
      bad("key 'general.alignment' is {}, expected a power of two from {} to {}", *value,
          kMinAlignment, kMaxAlignment);
    }
    alignment_ = *value;
  }

  /// One entry of the tensor table. Until place_tensors(), `file_offset` counts from the start of
  /// the data section.
  GgufTensor read_tensor(uint64_t index) {
    GgufTensor t;
    t.part = part_;
    t.name = reader_.read_string("tensor name");
    if (t.name.empty()) bad("the name of tensor {} is empty", index);
    const auto n_dims = reader_.read<uint32_t>(t.name);
    if (n_dims < 1 || n_dims > 4) {
      bad("tensor '{}' has {} dimensions, expected 1 to 4", printable(t.name), n_dims);
    }
    t.tensor.rank = n_dims;
    for (int i = t.tensor.rank - 1; i >= 0; --i) {  // the file has the fastest one first
      const auto n = reader_.read<uint64_t>(t.name);
      if (n == 0 || !std::in_range<int64_t>(n)) {
        bad("tensor '{}': dimension {} is {}, expected 1 to 2^63 - 1", printable(t.name),
            t.tensor.rank - 1 - i, n);
      }
      t.tensor.shape[i] = n;
    }
    t.ggml_type = reader_.read<uint32_t>(t.name);
    const auto dtype = dtype_of(t.ggml_type);
    t.supported = dtype.has_value();
    if (!t.supported && !any_type_) {
      bad("tensor '{}' has type {}, which is not supported; supported are {}", printable(t.name),
          ggml_type_name(t.ggml_type), supported_ggml_types());
    }
    t.file_offset = reader_.read<uint64_t>(t.name);
    if (dtype) {
      t.tensor.dtype = *dtype;
      set_size(t, block_size(*dtype), block_bytes(*dtype), name(*dtype));
    } else {
      const GgmlType* type = find_ggml_type(t.ggml_type);
      const bool known = type != nullptr && type->values > 0;
      set_size(t, known ? type->values : 1, known ? type->bytes : 1, ggml_type_name(t.ggml_type));
      if (!known) t.n_bytes = 0;
    }
    return t;
  }

  /// Sets byte strides and size of a contiguous tensor; the size in bytes must fit in 63 bits.
  void set_size(GgufTensor& t, int64_t values_per_block, int64_t bytes_per_block,
                std::string_view type) const {
    Tensor& v = t.tensor;
    const int last = v.rank - 1;
    if (v.shape[last] % values_per_block != 0) {
      bad("tensor '{}': rows of {} values, expected a multiple of the block size {} of {}",
          printable(t.name), v.shape[last], values_per_block, type);
    }
    v.stride[last] = bytes_per_block;
    int64_t step = 0;
    int64_t numel = v.shape[last];
    bool overflow =
        __builtin_mul_overflow(v.shape[last] / values_per_block, bytes_per_block, &step);
    for (int i = last - 1; i >= 0; --i) {
      v.stride[i] = step;
      overflow |= __builtin_mul_overflow(step, v.shape[i], &step);
      overflow |= __builtin_mul_overflow(numel, v.shape[i], &numel);
    }
    if (overflow) {
      bad("tensor '{}': the size of {} overflows", printable(t.name), v.shape_string());
    }
    t.n_bytes = step;
  }

  /// Turns offsets into addresses; checks range and alignment, and that no two tensors overlap.
  void place_tensors() {
    if (result_.tensors.empty()) return;
    // Cannot overflow: the position is at most the file's size, the alignment at most 2^20.
    const uint64_t data_start = (reader_.position() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = bytes_.size() > data_start ? bytes_.size() - data_start : 0;
    std::vector<std::pair<uint64_t, const GgufTensor*>> by_offset;
    by_offset.reserve(result_.tensors.size());
    for (GgufTensor& t : result_.tensors) {
      const uint64_t size = t.bytes();
      if (t.file_offset % alignment_ != 0) {
        bad("tensor '{}': its offset {} is not a multiple of the alignment {}", printable(t.name),
            t.file_offset, alignment_);
      }
      if (t.file_offset > data_bytes || size > data_bytes - t.file_offset) {
        bad("tensor '{}': {} bytes at offset {} of the data, which has {} bytes; the file is "
            "truncated or damaged",
            printable(t.name), size, t.file_offset, data_bytes);
      }
      t.file_offset += data_start;
      if (t.supported) t.tensor.data = const_cast<std::byte*>(bytes_.data()) + t.file_offset;
      by_offset.emplace_back(t.file_offset, &t);
    }
    std::sort(by_offset.begin(), by_offset.end());
    for (size_t i = 1; i < by_offset.size(); ++i) {
      const auto& [offset, before] = by_offset[i - 1];
      if (offset + before->bytes() > by_offset[i].first) {
        bad("tensors '{}' and '{}' overlap in the file", printable(before->name),
            printable(by_offset[i].second->name));
      }
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& label_;
  int part_;
  bool any_type_;
  ByteReader reader_;
  uint64_t n_tensors_ = 0;
  uint64_t n_kv_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  GgufPart result_;
};

}  // namespace

GgufPart parse_gguf_part(std::span<const std::byte> bytes, const std::string& label, int part,
                         bool any_type) {
  return PartParser(bytes, label, part, any_type).run();
}

std::string_view gguf_type_name(GgufType type) {
  constexpr std::array<std::string_view, kMaxTypeValue + 1> kNames = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

}  // namespace snapkv
