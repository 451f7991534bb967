// SPDX-License-Identifier: MIT
#include "backend/measure/measuring_backend.h"

#include <algorithm>

#include "base/check.h"

namespace snapkv {
namespace {

/// Buffers lie from here on, where no processor has memory: a stray access ends the process.
constexpr uintptr_t kFirstAddress = uintptr_t{1} << 52;

/// Computes nothing, and asks the kernels of the device what memory they would take.
class AskingKernels : public Kernels {
 public:
  /// `device` may be null.
  AskingKernels(Kernels* device, size_t& most_workspace)
      : device_(device), most_workspace_(most_workspace) {}

#define SNAPKV_OP(name, parameters, names)                          \
  void name parameters override {                                   \
    if (device_ != nullptr) count(device_->name##_workspace names); \
  }
#include "backend/ops.def"

 protected:
  Kernels* device() const { return device_; }

 private:
  void count(size_t bytes) { most_workspace_ = std::max(most_workspace_, bytes); }

  Kernels* const device_;
  size_t& most_workspace_;
};

/// The ops that make memory which outlives them.
class MeasuringKernels final : public AskingKernels {
 public:
  MeasuringKernels(MeasuringBackend& backend, Kernels* device, size_t& most_workspace)
      : AskingKernels(device, most_workspace), backend_(backend) {}

  void pack(const Tensor& weight, PackedWeight& packed) override {
    const DType compute = backend_.compute_dtype();
    const size_t bytes = device() != nullptr ? device()->lay_out(weight, compute, packed)
                                             : lay_out(weight, compute, packed);
    if (bytes == 0) packed.storage = Buffer();
    grow(packed.storage, bytes);
    AskingKernels::pack(weight, packed);
  }
  void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const Tensor& out, bool accumulate) override {
    if (device() != nullptr && weight.workspace != nullptr) {
      grow(weight.workspace->memory, device()->pack_memory(x.shape[0], weight));
    }
    AskingKernels::project_packed(x, weight, bias, out, accumulate);
  }
  void project_experts(const ExpertProducts& p) override {
    for (const Expert& e : p.experts) {
      for (const Tensor& w : {e.gate, e.up, e.down}) {
        if (p.workspace != nullptr && w) grow_to_pack(w, p.memory.x.shape[0], *p.workspace);
      }
    }
    AskingKernels::project_experts(p);
  }

 private:
  /// For a product of n rows that packs `weight` itself.
  void grow_to_pack(const Tensor& weight, int64_t n, PackWorkspace& workspace) {
    PackedWeight packed;
    packed.workspace = &workspace;
    const DType compute = backend_.compute_dtype();
    if (device() == nullptr) return grow(workspace.memory, lay_out(weight, compute, packed));
    device()->lay_out(weight, compute, packed);
    grow(workspace.memory, device()->pack_memory(n, packed));
  }
  void grow(Buffer& buffer, size_t bytes) {
    if (buffer.bytes() >= bytes) return;
    buffer = Buffer();
    buffer = backend_.allocate(bytes, kPackedWeights);
  }

  MeasuringBackend& backend_;
};

}  // namespace

MeasuringBackend::MeasuringBackend(const DeviceTraits& traits, std::span<const char* const> apart)
    : traits_(traits),
      definition_(planned_backend(traits.device)),
      planned_(definition_.plan != nullptr ? definition_.plan(traits)
                                           : std::make_unique<PlannedDevice>()),
      next_address_(kFirstAddress) {
  for (const char* what : apart) accounts_.push_back({.what = what});
  accounts_.push_back({.what = {}});
  kernels_ = std::make_unique<MeasuringKernels>(*this, planned_->kernels_to_ask(), most_workspace_);
}

MeasuringBackend::~MeasuringBackend() = default;

MeasuringBackend::Account& MeasuringBackend::account_of(std::string_view what) {
  const auto last = accounts_.end() - 1;
  return *std::find_if(accounts_.begin(), last, [&](const Account& a) { return a.what == what; });
}

size_t MeasuringBackend::peak(std::string_view what) const {
  const auto last = accounts_.end() - 1;
  const auto at =
      std::find_if(accounts_.begin(), last, [&](const Account& a) { return a.what == what; });
  SNAPKV_CHECK(at != last);
  return at->peak;
}

Buffer MeasuringBackend::make_buffer(size_t bytes, size_t counted, const char* what) {
  if (bytes == 0) return {};
  Account& account = account_of(what);
  account.now += counted;
  account.peak = std::max(account.peak, account.now);
  const uintptr_t address = next_address_;
  next_address_ += (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
  const Buffer::Release release =
      counted == 0 ? [](void*, size_t, void*) {} : [](void*, size_t n, void* context) {
        static_cast<Account*>(context)->now -= n;
      };
  return Buffer(reinterpret_cast<void*>(address), bytes, release, &account);
}

Buffer MeasuringBackend::allocate(size_t bytes, const char* what) {
  return make_buffer(bytes, bytes, what);
}

Buffer MeasuringBackend::allocate_pinned(size_t bytes, const char* what) {
  return make_buffer(bytes, is_device() ? 0 : bytes, what);
}

Buffer MeasuringBackend::allocate_host(size_t bytes, const char* what) {
  return make_buffer(bytes, is_device() ? 0 : bytes, what);
}

Buffer MeasuringBackend::allocate_in_file(const std::string&, size_t bytes, size_t resident,
                                          const char* what) {
  // counted for good: it lives as long as the run
  Account& account = account_of(what);
  account.now += resident;
  account.peak = std::max(account.peak, account.now);
  return make_buffer(bytes, 0, what);
}

size_t MeasuringBackend::free_memory() const { SNAPKV_CHECK(false); }

}  // namespace snapkv
