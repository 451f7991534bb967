// SPDX-License-Identifier: MIT
// Session::save() and load(), and describe_session(): between a session and its file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "engine/session_file.h"
#include "engine/session_impl.h"
#include "engine/sessions_in_use.h"

namespace snapkv {
namespace {

constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path, /*overwrite=*/true) {
    XXH3_64bits_reset(&hash_);
  }
  void bytes(const void* data, size_t n) {
    XXH3_64bits_update(&hash_, data, n);
    file_.write({static_cast<const std::byte*>(data), n});
  }
  template <typename T>
  void number(T value) {
    bytes(&value, sizeof(value));
  }
  void text(std::string_view s) {
    number(static_cast<uint64_t>(s.size()));
    bytes(s.data(), s.size());
  }
  void finish() {
    const uint64_t checksum = XXH3_64bits_digest(&hash_);
    file_.write(std::as_bytes(std::span(&checksum, 1)));
    file_.commit();
  }

 private:
  AtomicFile file_;
  XXH3_state_t hash_;
};

/// Rows of every head in turn; `row` gives a head's first one, `n_bytes` the size of each.
template <typename RowFn>
void write_rows(Writer& out, Backend& backend, const KvLayer& layer, size_t n_bytes,
                std::vector<char>& buffer, RowFn row) {
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    buffer.resize(layer.n_kv(h) * n_bytes);
    backend.download(buffer.data(), row(h), buffer.size());
    out.bytes(buffer.data(), buffer.size());
  }
}

void write_layer(Writer& out, const Session::Impl& s, int il, std::vector<char>& buffer) {
  const KvLayer& layer = s.layers[il];
  const SessionStats::Layer& stats = s.stats.layers[il];
  out.number(stats.n_total);
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    out.number(stats.n_kept[h]);
    out.number(int64_t{layer.n_kv(h)});
  }
  const size_t row = row_bytes(layer.dtype(), s.info().head_dim);
  Backend& backend = s.backend();
  write_rows(out, backend, layer, sizeof(int32_t), buffer, [&](int h) { return layer.pos(h); });
  write_rows(out, backend, layer, row, buffer, [&](int h) { return layer.k(h); });
  write_rows(out, backend, layer, row, buffer, [&](int h) { return layer.v(h); });
  if (!s.queries || s.queries.size() == 0) return;
  const Buffer q = s.queries.last(backend, il, s.queries.size());
  buffer.resize(q.bytes());
  backend.download(buffer.data(), q.data(), q.bytes());
  out.bytes(buffer.data(), buffer.size());
}

void write_head(Writer& out, const Session::Impl& s, std::string_view notes) {
  const ModelInfo& info = s.info();
  out.bytes(kSessionMagic, sizeof(kSessionMagic));
  out.number(kSessionVersion);
  out.number(s.model->fingerprint());
  out.text(info.name);
  out.text(notes);
  out.text(s.options.kv.name);
  const std::vector<PolicySetting> settings = policy_settings(s.options.kv);
  out.number(int64_t{std::ssize(settings)});
  for (const PolicySetting& setting : settings) {
    out.text(setting.param->name);
    out.text(value_text(setting.value));
  }
  out.text(name(s.options.kv_type));
  out.number(s.options.kv_decode_limit);
  const int64_t n_queries = s.queries ? s.queries.size() : 0;
  for (const int64_t n : {s.n_past, s.n_ctx, info.n_layer, info.n_head, info.n_head_kv,
                          info.head_dim, info.n_vocab, n_queries}) {
    out.number(n);
  }
}

Buffer read_bytes(const std::string& path) {
  const auto fail_here = [&] {
    fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_here();
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } closer{fd};
  struct stat status;
  if (::fstat(fd, &status) != 0) fail_here();
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::kRuntime, "{} is no regular file, which saved sessions are", path);
  }
  Buffer buffer = Buffer::host(status.st_size, "a saved session");
  size_t done = 0;
  while (done < buffer.bytes()) {
    const ssize_t n = ::read(fd, static_cast<char*>(buffer.data()) + done, buffer.bytes() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_here();
    if (n == 0) fail(ErrorCode::kRuntime, "{} became shorter while it was read", path);
    done += n;
  }
  return buffer;
}

std::span<const std::byte> bytes_of(const Buffer& buffer) {
  return {static_cast<const std::byte*>(buffer.data()), buffer.bytes()};
}

[[noreturn]] void fail_differs(std::string_view path, std::string_view what, std::string_view saved,
                               std::string_view here) {
  fail(ErrorCode::kUsage, "{}: saved with {} = {}, and this session has {}", path, what, saved,
       here);
}

void check_model(const std::string& path, const SessionFile& file, const Session::Impl& s) {
  const ModelInfo& info = s.info();
  if (file.saved.fingerprint != s.model->fingerprint()) {
    fail(ErrorCode::kUsage,
         "{}: saved with another model, \"{}\" of fingerprint {:016x}; this one, {}, has {:016x}",
         path, file.saved.model, file.saved.fingerprint, info.path, s.model->fingerprint());
  }
  const bool fits = std::ssize(file.layers) == info.n_layer && file.n_head == info.n_head &&
                    file.n_head_kv == info.n_head_kv && file.head_dim == info.head_dim &&
                    file.n_vocab == info.n_vocab;
  if (!fits) {
    fail(ErrorCode::kBadModel, "'{}': its sizes are not those of the model that it names", path);
  }
}

void check_options(const std::string& path, const SessionFile& file, const Session::Impl& s) {
  const SessionOptions& saved = file.saved.options;
  if (s.options.kv_refresh && s.policy->info().has_budget) {
    fail(ErrorCode::kUsage, "{}: a saved session has no uncompressed rows, which kv_refresh needs",
         path);
  }
  if (saved.kv.name != s.options.kv.name) {
    fail_differs(path, "policy", saved.kv.name, s.options.kv.name);
  }
  const auto theirs = policy_settings(saved.kv), ours = policy_settings(s.options.kv);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i].value == ours[i].value) continue;
    fail_differs(path, ours[i].param->name, value_text(theirs[i].value), value_text(ours[i].value));
  }
  if (saved.kv_type != s.options.kv_type) {
    fail_differs(path, "kv_type", name(saved.kv_type), name(s.options.kv_type));
  }
  if (saved.kv_decode_limit != s.options.kv_decode_limit) {
    fail_differs(path, "kv_decode_limit", std::to_string(saved.kv_decode_limit),
                 std::to_string(s.options.kv_decode_limit));
  }
  if (file.saved.n_past > s.n_ctx) {
    fail(ErrorCode::kContextExceeded, "{}: the saved session has {} tokens, the context {}", path,
         file.saved.n_past, s.n_ctx);
  }
  if (!s.architecture().spec().rotate_alike(file.n_ctx, s.n_ctx)) {
    fail_differs(path, "n_ctx", std::to_string(file.n_ctx),
                 fmt::format("{}; the model rotates keys of long contexts otherwise", s.n_ctx));
  }
}

KvLayer load_layer(Session::Impl& s, const SessionFileLayer& saved) {
  Backend& backend = s.backend();
  std::vector<int32_t> capacity;
  for (const int32_t n : saved.n_kv) {
    capacity.push_back(static_cast<int32_t>(std::min(n + s.options.decode_reserve, kMostRows)));
  }
  KvLayer layer(backend, s.meter, s.info().head_dim, s.options.kv_type, capacity);
  std::vector<KvLayer::Head> heads(layer.heads().begin(), layer.heads().end());
  for (size_t h = 0; h < heads.size(); ++h) heads[h].n_kv = saved.n_kv[h];
  layer.restore_heads(heads);
  const size_t row = row_bytes(s.options.kv_type, s.info().head_dim);
  int64_t first = 0;  // of a head's rows among those of all heads
  for (int h = 0; h < layer.n_head_kv(); ++h) {
    const int64_t n = saved.n_kv[h];
    backend.upload(layer.pos(h), saved.positions.data() + first * sizeof(int32_t),
                   n * sizeof(int32_t));
    backend.upload(layer.k(h), saved.keys.data() + first * row, n * row);
    backend.upload(layer.v(h), saved.values.data() + first * row, n * row);
    first += n;
  }
  return layer;
}

QueryRing load_queries(Session::Impl& s, const std::string& path, const SessionFile& file) {
  if (!s.has_decode_limit()) return {};
  const int window = s.policy->window_size();
  if (file.n_queries < 1 || file.n_queries > window) {
    fail(ErrorCode::kBadModel, "'{}': n_queries is {}, expected 1 to {}", path, file.n_queries,
         window);
  }
  const ModelConfig& config = s.architecture().config();
  QueryRing ring(s.backend(), config, window);
  for (int il = 0; il < std::ssize(file.layers); ++il) {
    const std::span<const std::byte> saved = file.layers[il].queries;
    const Buffer q = s.backend().allocate(saved.size(), "queries of a saved session");
    s.backend().upload(q.data(), saved.data(), saved.size());
    ring.fill(s.backend(), il,
              q.view(DType::f32, {file.n_queries, config.n_head, config.head_dim}));
  }
  return ring;
}

}  // namespace

void Session::save(const std::string& path, std::string_view notes) const {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "save");
  const Impl& s = *self;
  if (s.layers.empty()) fail(ErrorCode::kUsage, "save: the session has read no prompt yet");
  if (s.options.kv_refresh && s.policy->info().has_budget) {
    fail(ErrorCode::kUsage,
         "save: with kv_refresh a session has uncompressed rows, which are no part of its file");
  }
  Writer out(path);
  write_head(out, s, notes);
  const std::span<const float> last = logits();
  out.bytes(last.data(), last.size_bytes());
  std::vector<char> buffer;
  for (int il = 0; il < std::ssize(s.layers); ++il) write_layer(out, s, il, buffer);
  out.finish();
}

std::string Session::load(const std::string& path) {
  Impl* const self = &state();
  const SessionsInUse in_use({&self, 1}, "load");
  Impl& s = *self;
  const Buffer buffer = read_bytes(path);
  SessionFile file = parse_session_file(bytes_of(buffer), path);
  check_model(path, file, s);
  check_options(path, file, s);
  QueryRing queries = load_queries(s, path, file);
  std::vector<float> logits(file.n_vocab);
  std::memcpy(logits.data(), file.logits.data(), file.logits.size());
  std::vector<KvLayer> layers;
  SessionStats stats;
  for (SessionFileLayer& layer : file.layers) {
    layers.push_back(load_layer(s, layer));
    stats.layers.push_back(std::move(layer.stats));
  }
  s.backend().synchronize();
  // nothing can fail from here on; there is no history, which only kv_refresh has
  s.layers = std::move(layers);
  s.queries = std::move(queries);
  s.logits = std::move(logits);
  s.n_past = file.saved.n_past;
  s.stats = std::move(stats);
  s.meter.peak = s.meter.now;
  s.update_memory_stats();
  return std::move(file.saved.notes);
}

SavedSession describe_session(const std::string& path) {
  const Buffer buffer = read_bytes(path);
  return parse_session_file(bytes_of(buffer), path).saved;
}

}  // namespace snapkv
