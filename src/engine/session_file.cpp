// SPDX-License-Identifier: MIT
#include "engine/session_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/stop_check.h"
#include "cache/kv_layer.h"
#include "engine/zstd_frame.h"
#include "format/byte_reader.h"

namespace snapkv {
namespace {

constexpr size_t kHashedAtOnce = size_t{64} << 20;
constexpr int64_t kMostFrame = std::numeric_limits<int64_t>::max();

template <typename... Args>
[[noreturn]] void fail_damaged(const std::string& path, fmt::format_string<Args...> format,
                               Args&&... args) {
  fail(ErrorCode::kBadModel, "'{}': {}; the saved session is damaged", path,
       fmt::format(format, std::forward<Args>(args)...));
}

/// Bytes of each part of a layer's rows. Their sums cannot overflow: every count has a limit.
struct RowsSizes {
  size_t positions, rows, queries;  // rows: of the keys, and again of the values
  size_t total() const { return positions + 2 * rows + queries; }
};

RowsSizes sizes_of(const SessionFile& file, const SessionFileLayer& layer) {
  const int64_t n_rows = std::accumulate(layer.n_kv.begin(), layer.n_kv.end(), int64_t{0});
  return {n_rows * sizeof(int32_t),
          n_rows * static_cast<size_t>(row_bytes(file.saved.options.kv_type, file.head_dim)),
          file.n_queries * file.n_head * file.head_dim * sizeof(float)};
}

void check_positions(const SessionFile& file, const SessionFileLayer& layer,
                     std::span<const std::byte> positions) {
  const std::byte* at = positions.data();
  for (const int32_t n_kv : layer.n_kv) {
    int64_t before = -1;
    for (int32_t slot = 0; slot < n_kv; ++slot, at += sizeof(int32_t)) {
      int32_t pos;
      std::memcpy(&pos, at, sizeof(pos));
      if (pos <= before) {
        fail_damaged(file.path, "position {} comes after position {}", pos, before);
      }
      before = pos;
    }
    if (before != file.saved.n_past - 1) {
      fail_damaged(file.path, "a head's last position is {}, expected {}", before,
                   file.saved.n_past - 1);
    }
  }
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& path, uint32_t version)
      : bytes_(bytes), path_(path), in_(bytes, path) {
    file_.path = path;
    file_.has_frames = version == kSessionVersionZstd;
  }

  SessionFile run() {
    read_head();
    read_policy();
    read_sizes();
    file_.logits = take(file_.n_vocab, sizeof(float), "logits");
    check_logits();
    for (SessionFileLayer& layer : file_.layers) read_layer(layer);
    if (in_.remaining() > 0) bad("there are {} bytes after the last layer", in_.remaining());
    return std::move(file_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail_damaged(path_, format, std::forward<Args>(args)...);
  }

  int64_t number(const char* field, int64_t least, int64_t most) {
    const auto value = in_.read<int64_t>(field);
    if (value < least || value > most) {
      bad("{} is {}, expected {} to {}", field, value, least, most);
    }
    return value;
  }

  /// `count` items of `bytes` each; the rest of the file bounds the product.
  std::span<const std::byte> take(int64_t count, size_t bytes, const char* field) {
    in_.check_count(count, bytes, field);
    const auto part = bytes_.subspan(in_.position(), count * bytes);
    in_.skip(part.size(), field);
    return part;
  }

  void read_head() {
    in_.skip(sizeof(kSessionMagic) + sizeof(kSessionVersion), "magic and version");
    file_.saved.fingerprint = in_.read<uint64_t>("fingerprint");
    file_.saved.model = in_.read_string("model");
    file_.saved.notes = in_.read_string("notes");
  }

  void read_policy() {
    PolicyConfig& kv = file_.saved.options.kv;
    kv.name = in_.read_string("policy");
    const int64_t n = number("parameters", 0, 1000);
    try {
      policy_info(kv.name);
      for (int64_t i = 0; i < n; ++i) {
        const std::string name = in_.read_string("parameter");
        set_param_text(kv, name, in_.read_string("value of parameter"));
      }
      validate(kv);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::kUsage) throw;
      bad("{}", printable(e.what()));
    }
  }

  void read_sizes() {
    const std::string type = in_.read_string("kv_type");
    SessionOptions& options = file_.saved.options;
    constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](DType t) { return type == name(t); });
    if (found == std::end(kTypes)) bad("kv_type is \"{}\"", printable(type));
    options.kv_type = *found;
    options.kv_decode_limit = number("kv_decode_limit", 0, kMostRows);
    file_.saved.n_past = number("n_past", 1, kMostRows);
    file_.n_ctx = number("n_ctx", 1, kMostRows);
    const int64_t n_layer = number("n_layer", 1, 4096);
    file_.n_head = number("n_head", 1, 1 << 14);
    file_.n_head_kv = number("n_head_kv", 1, file_.n_head);
    file_.head_dim = number("head_dim", 1, 4096);
    if (file_.head_dim % block_size(options.kv_type) != 0) {
      bad("head_dim is {}, and {} has blocks of {}", file_.head_dim, type,
          block_size(options.kv_type));
    }
    file_.n_vocab = number("n_vocab", 1, kMostRows);
    file_.n_queries = number("n_queries", 0, kMostRows);
    // every layer takes at least this many bytes, so a hostile count fails here
    in_.check_count(n_layer, sizeof(int64_t) * (1 + 2 * file_.n_head_kv), "n_layer");
    file_.layers.resize(n_layer);
  }

  void check_logits() const {
    for (int64_t i = 0; i < file_.n_vocab; ++i) {
      float value;
      std::memcpy(&value, file_.logits.data() + i * sizeof(float), sizeof(float));
      if (!std::isfinite(value)) bad("logits[{}] is not finite", i);
    }
  }

  void read_layer(SessionFileLayer& layer) {
    const int64_t n_past = file_.saved.n_past;
    layer.stats.n_total = number("rows seen", 0, n_past);
    for (int64_t h = 0; h < file_.n_head_kv; ++h) {
      layer.stats.n_kept.push_back(number("rows kept", 0, layer.stats.n_total));
      layer.n_kv.push_back(static_cast<int32_t>(number("rows", 1, n_past)));
    }
    if (file_.has_frames) {
      layer.stored = take(number("bytes of a frame", 1, kMostFrame), 1, "frame");
      return;
    }
    const RowsSizes sizes = sizes_of(file_, layer);
    layer.stored = take(static_cast<int64_t>(sizes.total()), 1, "bytes of rows");
    check_positions(file_, layer, layer.stored.first(sizes.positions));
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  ByteReader in_;
  SessionFile file_;
};

}  // namespace

uint64_t session_checksum(std::span<const std::byte> bytes) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  while (!bytes.empty()) {
    check_stop("reading the cache");
    const size_t n = std::min(bytes.size(), kHashedAtOnce);
    XXH3_64bits_update(&state, bytes.data(), n);
    bytes = bytes.subspan(n);
  }
  return XXH3_64bits_digest(&state);
}

SessionFile parse_session_file(std::span<const std::byte> bytes, const std::string& path) {
  ByteReader in(bytes, path);
  char magic[sizeof(kSessionMagic)];
  for (char& c : magic) c = in.read<char>("magic");
  if (!std::equal(std::begin(magic), std::end(magic), kSessionMagic)) {
    fail(ErrorCode::kBadModel, "'{}' is no saved session: it begins with \"{}\"", path,
         printable({magic, sizeof(magic)}));
  }
  const auto version = in.read<uint32_t>("version");
  if (version != kSessionVersion && version != kSessionVersionZstd) {
    fail(ErrorCode::kBadModel, "'{}': version {} of saved sessions is not known, only {} and {}",
         path, version, kSessionVersion, kSessionVersionZstd);
  }
  in.check_count(1, sizeof(uint64_t), "checksum");
  const auto content = bytes.first(bytes.size() - sizeof(uint64_t));
  uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + content.size(), sizeof(checksum));
  if (checksum != session_checksum(content)) {
    fail(ErrorCode::kBadModel,
         "'{}': the checksum does not match: the saved session is cut off or damaged", path);
  }
  return Parser(content, path, version).run();
}

size_t rows_bytes(const SessionFile& file, int64_t il) {
  return sizes_of(file, file.layers[il]).total();
}

SessionFileRows rows_of(const SessionFile& file, int64_t il, Buffer& memory) {
  const SessionFileLayer& layer = file.layers[il];
  const RowsSizes sizes = sizes_of(file, layer);
  std::span<const std::byte> all = layer.stored;
  if (file.has_frames) {
    memory = Buffer();  // frees the old memory before allocating new
    memory = decode_zstd_frame(layer.stored, sizes.total(), file.path, fmt::format("layer {}", il));
    all = {static_cast<const std::byte*>(memory.data()), memory.bytes()};
  }
  const auto take = [&all](size_t n) {
    const std::span<const std::byte> part = all.first(n);
    all = all.subspan(n);
    return part;
  };
  SessionFileRows rows;
  rows.positions = take(sizes.positions);
  rows.keys = take(sizes.rows);
  rows.values = take(sizes.rows);
  rows.queries = take(sizes.queries);
  if (file.has_frames) check_positions(file, layer, rows.positions);
  return rows;
}

}  // namespace snapkv
