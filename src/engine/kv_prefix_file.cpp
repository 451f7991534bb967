// SPDX-License-Identifier: MIT
// KvPrefix::save() and load(), and what a file says of itself (docs/session-file.md has the
// layout).
#include <cstring>
#include <fstream>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "engine/kv_prefix.h"
#include "engine/memory_plan.h"

namespace snapkv {
namespace {

constexpr char kMagic[8] = {'S', 'N', 'A', 'P', 'K', 'V', 'P', '\n'};
constexpr uint32_t kVersion = 1;
/// Layers begin at multiples of this, so that a page holds one layer's bytes only.
constexpr size_t kPage = 4096;

size_t next_page(size_t offset) { return (offset + kPage - 1) / kPage * kPage; }

/// Sizes of the rows, as the header has them.
struct Sizes {
  int64_t n_layer = 0, n_head_kv = 0, head_dim = 0;
};

struct Header {
  SavedPrefix saved;
  Sizes sizes;
  size_t bytes = 0;  // of the header
};

/// Reads the fields of a header, none of which is trusted.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::span<const std::byte> take(size_t n, const char* field) {
    if (n > bytes_.size() - at_) {
      fail(ErrorCode::kBadModel, "'{}': {} needs {} bytes, {} are left", path_, field, n,
           bytes_.size() - at_);
    }
    at_ += n;
    return bytes_.subspan(at_ - n, n);
  }
  template <typename T>
  T number(const char* field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  int64_t count(const char* field, int64_t most) {
    const auto n = number<int64_t>(field);
    if (n < 1 || n > most) {
      fail(ErrorCode::kBadModel, "'{}': {} is {}, expected 1 to {}", path_, field, n, most);
    }
    return n;
  }
  std::string text(const char* field) {
    const auto n = number<uint64_t>(field);
    const std::span<const std::byte> value = take(n, field);
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  size_t at_ = 0;
};

DType parse_type(const std::string& text, const std::string& path) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    if (text == name(type)) return type;
  }
  fail(ErrorCode::kBadModel, "'{}': type is \"{}\", expected f32, f16, bf16 or q8_0", path, text);
}

Header parse_header(std::span<const std::byte> bytes, const std::string& path) {
  constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
  Reader in(bytes, path);
  if (std::memcmp(in.take(sizeof(kMagic), "magic").data(), kMagic, sizeof(kMagic)) != 0) {
    fail(ErrorCode::kBadModel, "'{}' is no file of uncompressed rows (KvPrefix::save)", path);
  }
  if (const auto version = in.number<uint32_t>("version"); version != kVersion) {
    fail(ErrorCode::kBadModel, "'{}': version {}, expected {}", path, version, kVersion);
  }
  Header h;
  h.saved.fingerprint = in.number<uint64_t>("fingerprint");
  h.saved.model = in.text("name of the model");
  h.saved.notes = in.text("notes");
  h.saved.type = parse_type(in.text("type"), path);
  h.saved.n_ctx = in.count("n_ctx", kMostTokens);
  h.sizes.n_layer = in.count("n_layer", 1 << 16);
  h.sizes.n_head_kv = in.count("n_head_kv", 1 << 16);
  h.sizes.head_dim = in.count("head_dim", 1 << 16);
  if (h.sizes.head_dim % block_size(h.saved.type) != 0) {
    fail(ErrorCode::kBadModel, "'{}': head_dim {} is no multiple of {}, as {} needs", path,
         h.sizes.head_dim, block_size(h.saved.type), name(h.saved.type));
  }
  const int64_t n_tokens = in.count("n_tokens", kMostRows);
  const auto tokens = in.take(static_cast<size_t>(n_tokens) * sizeof(int32_t), "tokens");
  h.saved.tokens.resize(n_tokens);
  std::memcpy(h.saved.tokens.data(), tokens.data(), tokens.size());
  h.bytes = in.at();
  return h;
}

size_t layer_bytes(const Header& h) {
  return KvLayer::row_bytes(h.saved.type, h.sizes.head_dim) * h.sizes.n_head_kv *
         h.saved.tokens.size();
}

/// Where layer il begins; n_layer: where the hashes do.
size_t layer_offset(const Header& h, int64_t il) {
  return next_page(h.bytes) + il * next_page(layer_bytes(h));
}

/// The header, checked against the file's size and its own checksum; `hashes`: of the layers.
Header read_header(std::span<const std::byte> bytes, const std::string& path,
                   std::vector<uint64_t>& hashes) {
  Header h = parse_header(bytes, path);
  const size_t n_layer = h.sizes.n_layer;
  // no product of these can overflow once each layer is known to fit into the file
  if (layer_bytes(h) / h.saved.tokens.size() > bytes.size() || layer_bytes(h) > bytes.size() ||
      layer_bytes(h) * n_layer > bytes.size() ||
      layer_offset(h, h.sizes.n_layer) + (n_layer + 1) * sizeof(uint64_t) != bytes.size()) {
    fail(ErrorCode::kBadModel, "'{}': {} bytes are not those of {} layers of {} tokens", path,
         bytes.size(), n_layer, h.saved.tokens.size());
  }
  const std::byte* at = bytes.data() + layer_offset(h, h.sizes.n_layer);
  hashes.resize(n_layer);
  std::memcpy(hashes.data(), at, n_layer * sizeof(uint64_t));
  uint64_t expected;
  std::memcpy(&expected, at + n_layer * sizeof(uint64_t), sizeof(expected));
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, bytes.data(), h.bytes);
  XXH3_64bits_update(&state, hashes.data(), n_layer * sizeof(uint64_t));
  if (XXH3_64bits_digest(&state) != expected) {
    fail(ErrorCode::kBadModel, "'{}': the checksum of its header is wrong: it is damaged", path);
  }
  return h;
}

/// What read_header() reads.
class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path, /*overwrite=*/true) {}

  void bytes(const void* data, size_t n) { file_.write({static_cast<const std::byte*>(data), n}); }
  template <typename T>
  void head(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    head_.append(bytes, sizeof(value));
  }
  void head_text(std::string_view text) {
    head(static_cast<uint64_t>(text.size()));
    head_ += text;
  }
  void head_bytes(const void* data, size_t n) { head_.append(static_cast<const char*>(data), n); }
  void end_head() {
    bytes(head_.data(), head_.size());
    pad();
  }
  void layer(const KvLayer& layer) {
    bytes(layer.data(), layer.bytes());
    hashes_.push_back(XXH3_64bits(layer.data(), layer.bytes()));
    pad();
  }
  void finish() {
    const size_t n = hashes_.size() * sizeof(uint64_t);
    bytes(hashes_.data(), n);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, head_.data(), head_.size());
    XXH3_64bits_update(&state, hashes_.data(), n);
    const uint64_t hash = XXH3_64bits_digest(&state);
    bytes(&hash, sizeof(hash));
    file_.commit();
  }

 private:
  void pad() {
    static constexpr char kZeros[kPage] = {};
    bytes(kZeros, next_page(file_.position()) - file_.position());
  }

  AtomicFile file_;
  std::string head_;
  std::vector<uint64_t> hashes_;
};

}  // namespace

const KvLayer& KvPrefix::Impl::layer(int il) const {
  if (!file) return layers[il];
  std::call_once(checked[il], [&] {
    if (XXH3_64bits(layers[il].data(), layers[il].bytes()) != hashes[il]) {
      fail(ErrorCode::kBadModel, "'{}': the checksum of layer {} is wrong: it is damaged", path,
           il);
    }
    for (int h = 0; h < layers[il].n_head_kv(); ++h) {
      const int32_t* pos = layers[il].pos(h);
      for (int32_t i = 0; i < layers[il].n_kv(h); ++i) {
        if (pos[i] == i) continue;
        fail(ErrorCode::kBadModel, "'{}': layer {}, head {}: row {} has the position {}", path, il,
             h, i, pos[i]);
      }
    }
  });
  file->check_unchanged();
  return layers[il];
}

void KvPrefix::save(const std::string& path, DType type, std::string_view notes) const {
  const ModelInfo& info = impl_->model->info();
  validate_kv_type(type, info.head_dim);
  Backend& backend = Impl::backend_of(*impl_->model);
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "rows in a GPU's memory can't be saved: that is for the CPU");
  }
  Writer out(path);
  out.head_bytes(kMagic, sizeof(kMagic));
  out.head(kVersion);
  out.head(impl_->model->fingerprint());
  out.head_text(info.name);
  out.head_text(notes);
  out.head_text(name(type));
  for (const int64_t n : {impl_->n_ctx, info.n_layer, info.n_head_kv, info.head_dim,
                          int64_t{std::ssize(impl_->tokens)}}) {
    out.head(n);
  }
  out.head_bytes(impl_->tokens.data(), impl_->tokens.size() * sizeof(int32_t));
  out.end_head();
  KvMeter meter;
  for (int il = 0; il < info.n_layer; ++il) {
    const KvLayer& rows = impl_->layer(il);
    const std::vector<int32_t> n_kv = rows.n_kv();
    KvLayer converted(backend, meter, info.head_dim, type, n_kv);
    converted.append(backend, rows);
    out.layer(converted);
  }
  out.finish();
}

std::shared_ptr<const KvPrefix> KvPrefix::load(std::shared_ptr<const Model> model,
                                               const std::string& path) {
  if (model == nullptr) fail(ErrorCode::kUsage, "KvPrefix::load: the model is null");
  if (Impl::backend_of(*model).is_device()) {
    fail(ErrorCode::kUsage, "'{}': uncompressed rows in a file are for the CPU", path);
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->file.emplace(path);
  const std::span<const std::byte> bytes = impl->file->bytes();
  Header header = read_header(bytes, path, impl->hashes);
  const ModelInfo& info = model->info();
  if (header.saved.fingerprint != model->fingerprint()) {
    fail(ErrorCode::kUsage,
         "'{}': saved with another model, \"{}\" of fingerprint {:016x}; this one, {}, has {:016x}",
         path, header.saved.model, header.saved.fingerprint, info.path, model->fingerprint());
  }
  if (header.sizes.n_layer != info.n_layer || header.sizes.n_head_kv != info.n_head_kv ||
      header.sizes.head_dim != info.head_dim) {
    fail(ErrorCode::kBadModel, "'{}': its sizes are not those of the model that it names", path);
  }
  impl->n_ctx = header.saved.n_ctx;
  impl->checked = std::make_unique<std::once_flag[]>(info.n_layer);
  for (int64_t il = 0; il < info.n_layer; ++il) {
    // the layer only ever reads it
    auto* data = const_cast<std::byte*>(bytes.data() + layer_offset(header, il));
    impl->layers.emplace_back(impl->meter, info.head_dim, header.saved.type, info.n_head_kv,
                              static_cast<int32_t>(header.saved.tokens.size()),
                              Buffer(data, layer_bytes(header), nullptr));
  }
  impl->tokens = std::move(header.saved.tokens);
  impl->model = std::move(model);
  return std::make_shared<KvPrefix>(std::move(impl));
}

bool is_prefix_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[sizeof(kMagic)] = {};
  if (!in) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  in.read(magic, sizeof(magic));
  return in.gcount() == sizeof(magic) && std::memcmp(magic, kMagic, sizeof(kMagic)) == 0;
}

SavedPrefix describe_prefix(const std::string& path) {
  const MmapFile file(path);
  std::vector<uint64_t> hashes;
  return read_header(file.bytes(), path, hashes).saved;
}

}  // namespace snapkv
