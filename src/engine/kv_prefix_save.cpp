// SPDX-License-Identifier: MIT
// KvPrefix::save() (docs/session-file.md has the layout).
#include <string>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/stop_check.h"
#include "engine/kv_prefix.h"
#include "engine/kv_prefix_file.h"
#include "engine/memory_plan.h"
#include "engine/zstd_frame.h"
#include "snapkv/model_files.h"

namespace snapkv {
namespace {

class PrefixWriter {
 public:
  PrefixWriter(const std::string& path, int zstd_level)
      : file_(path, /*overwrite=*/true), level_(zstd_level) {}

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
    if (level_ == 0) return stored(layer.data(), layer.bytes());
    const auto* const data = static_cast<const std::byte*>(layer.data());
    const std::vector<std::byte> frame = make_zstd_frame({data, layer.bytes()}, level_);
    sizes_.push_back(frame.size());
    stored(frame.data(), frame.size());
  }
  void finish() {
    std::vector<uint64_t> tail = sizes_;
    tail.insert(tail.end(), hashes_.begin(), hashes_.end());
    bytes(tail.data(), tail.size() * sizeof(uint64_t));
    const uint64_t checksum =
        prefix_checksum({std::as_bytes(std::span(head_)), std::as_bytes(std::span(tail))});
    bytes(&checksum, sizeof(checksum));
    file_.commit();
  }

 private:
  void bytes(const void* data, size_t n) { file_.write({static_cast<const std::byte*>(data), n}); }
  void stored(const void* data, size_t n) {
    bytes(data, n);
    hashes_.push_back(XXH3_64bits(data, n));
    pad();
  }
  void pad() {
    static constexpr char kZeros[kPrefixPage] = {};
    bytes(kZeros, next_prefix_page(file_.position()) - file_.position());
  }

  AtomicFile file_;
  int level_;  // 0: layers are stored as they are
  std::string head_;
  std::vector<uint64_t> sizes_, hashes_;  // of the stored layers; sizes only for frames
};

}  // namespace

void KvPrefix::save(const std::string& path, DType type, std::string_view notes,
                    int zstd_level) const {
  const ModelInfo& info = impl_->model->info();
  validate_kv_type(type, info.head_dim);
  check_zstd_level(zstd_level);
  Backend& backend = Impl::backend_of(*impl_->model);
  if (backend.is_device()) {
    fail(ErrorCode::kUsage, "rows in a GPU's memory can't be saved: that is for the CPU");
  }
  check_cache_path(path);
  PrefixWriter out(path, zstd_level);
  out.head_bytes(kPrefixMagic, sizeof(kPrefixMagic));
  out.head(zstd_level > 0 ? kPrefixVersionZstd : kPrefixVersion);
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
    check_stop("saving the rows");
    impl_->with_layer(il, [&](const KvLayer& rows) {
      KvLayer converted(backend, meter, info.head_dim, type, rows.n_kv());
      converted.append(backend, rows);
      out.layer(converted);
    });
  }
  out.finish();
}

}  // namespace snapkv
