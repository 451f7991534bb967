// SPDX-License-Identifier: MIT
// RefBackend: host memory and the plain loops of this folder: the readable specification of the
// ops, and the oracle of every op test.
#include "backend/host_backend.h"
#include "backend/kernels.h"
#include "backend/ref/ref_ops.h"
#include "backend/registry.h"

namespace snapkv::ref {
namespace {

constexpr const char* kName = "reference";

class RefKernels final : public Kernels {
 public:
#define SNAPKV_OP(name, parameters, names) \
  void name parameters override { ref::name names; }
#include "backend/ops.def"
};

class RefBackend final : public HostBackend {
 public:
  std::string_view device() const override { return kName; }
  std::string description() const override { return "ref (plain loops, 1 thread, f32)"; }
  DType compute_dtype() const override { return DType::f32; }
  int n_threads() const override { return 1; }
  bool attends_to_chosen() const override { return true; }
  Kernels& kernels() override { return kernels_; }

 private:
  RefKernels kernels_;
};

}  // namespace

BackendDefinition definition() {
  return {.info = {.name = kName, .help = "plain loops, exact and very slow"},
          .make = [](const BackendOptions&) -> std::unique_ptr<Backend> {
            return std::make_unique<RefBackend>();
          }};
}

}  // namespace snapkv::ref
