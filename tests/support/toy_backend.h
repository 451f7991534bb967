// SPDX-License-Identifier: MIT
// ToyBackend: a new backend as it begins, with one op (rms_norm) and memory of its own. Its
// addresses are none of the host's: whoever touches them ends the process.
//
//   register_toy();   // before the first model is loaded
//   Model::load({.path = ..., .device = "toy"});
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/partial/partial_kernels.h"
#include "backend/ref/ref_ops.h"
#include "backend/registry.h"
#include "base/buffer.h"

namespace snapkv::test {

class ToyKernels final : public PartialKernels {
 public:
  /// Without `has_norm` it has no op at all.
  ToyKernels(Backend& backend, bool has_norm) : PartialKernels(backend), has_norm_(has_norm) {}

  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    if (!has_norm_) return PartialKernels::rms_norm(x, weight, eps, out);
    ++n_norms_;
    ref::rms_norm(real(x), real(on_device(weight)), eps, real(out));
  }
  int64_t n_norms() const { return n_norms_; }

  /// The memory behind an address of the device.
  static void* real(const void* data) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) - kOffset);
  }
  static void* of_device(void* real) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(real) + kOffset);
  }

 private:
  static constexpr uintptr_t kOffset = uintptr_t{1} << 52;

  static Tensor real(Tensor t) {
    t.data = real(t.data);
    return t;
  }
  const bool has_norm_;
  int64_t n_norms_ = 0;
};

class ToyBackend final : public Backend {
 public:
  explicit ToyBackend(bool has_norm = true) : kernels_(*this, has_norm) {}

  std::string_view device() const override { return "toy"; }
  std::string description() const override { return "toy (one op)"; }
  bool is_device() const override { return true; }
  DType compute_dtype() const override { return DType::f32; }
  int n_threads() const override { return 1; }
  bool attends_to_chosen() const override { return true; }
  ToyKernels& kernels() override { return kernels_; }

  Buffer allocate(size_t bytes, const char*) override {
    if (bytes == 0) return {};
    return Buffer(
        ToyKernels::of_device(::operator new(bytes, kAlign)), bytes,
        [](void* data, size_t, void*) { ::operator delete(ToyKernels::real(data), kAlign); });
  }
  Buffer allocate_pinned(size_t bytes, const char* what) override {
    return Buffer::host(bytes, what);
  }
  size_t free_memory() const override { return std::numeric_limits<size_t>::max(); }
  size_t peak_memory() const override { return 0; }
  void reset_peak_memory() override {}
  void upload(void* device, const void* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(ToyKernels::real(device), host, bytes);
  }
  void download(void* host, const void* device, size_t bytes) override {
    if (bytes > 0) std::memcpy(host, ToyKernels::real(device), bytes);
  }
  void copy(void* dst, const void* src, size_t bytes) override {
    if (bytes > 0) std::memmove(ToyKernels::real(dst), ToyKernels::real(src), bytes);
  }
  void synchronize() override {}
  Mark mark() override { return 0; }
  double seconds_between(Mark, Mark) const override { return 0; }
  void place_weights(std::span<const Tensor> weights) override { kernels_.place_weights(weights); }

 private:
  static constexpr std::align_val_t kAlign{Buffer::kAlignment};

  ToyKernels kernels_;
};

/// `last_made`, if not null, is set to each backend that is made.
inline void register_toy(ToyBackend** last_made = nullptr) {
  static ToyBackend** made;
  made = last_made;
  BackendDefinition definition;
  definition.info = {.name = "toy", .help = "a test's", .own_memory = true};
  definition.make = [](const BackendOptions&) -> std::unique_ptr<Backend> {
    auto toy = std::make_unique<ToyBackend>();
    if (made != nullptr) *made = toy.get();
    return toy;
  };
  register_backend(definition);
}

}  // namespace snapkv::test
