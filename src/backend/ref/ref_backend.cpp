// SPDX-License-Identifier: MIT
// RefBackend: host memory and the plain loops of this folder.
#include "backend/ref/ref_backend.h"

#include "backend/host_backend.h"
#include "backend/kernels.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

class RefKernels final : public Kernels {
 public:
#define SNAPKV_OP(name, parameters, names) \
  void name parameters override { ref::name names; }
#include "backend/ops.def"
};

class RefBackend final : public HostBackend {
 public:
  Device device() const override { return Device::reference; }
  std::string description() const override { return "ref (plain loops, 1 thread, f32)"; }
  DType compute_dtype() const override { return DType::f32; }
  int n_threads() const override { return 1; }
  Kernels& kernels() override { return kernels_; }

 private:
  RefKernels kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<RefBackend>(); }

}  // namespace snapkv::ref
