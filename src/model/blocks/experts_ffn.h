// SPDX-License-Identifier: MIT
// ExpertsFfn: a mixture of experts (arXiv 2401.04088, section 2.1). Each expert is a gated
// feed-forward network; a router, one matrix, chooses a few of them for each token, whose weighted
// outputs are added. The tokens of a chunk are grouped by expert, so that an expert's matrices are
// read, or packed, once per layer and chunk, and not at all where no token chose it.
#pragma once

#include <vector>

#include "model/blocks/block.h"
#include "model/blocks/layer_loader.h"

namespace snapkv {

class ExpertsFfn final : public FeedForward {
 public:
  ExpertsFfn(const BlockContext& context, LayerLoader& loader);

  void run(const Tensor& normed, const Tensor& x, const LayerPass& pass) const override;
  std::vector<const Weight*> matrices() const override { return {}; }
  std::vector<const Weight*> other_matrices() const override;
  std::vector<const Norm*> norms() const override { return {}; }

 private:
  struct Expert {
    Weight gate, up;  // [n_ff, n_embd]
    Weight down;      // [n_embd, n_ff]
  };
  /// Some of the tokens that chose an expert.
  struct Group {
    int64_t expert;
    int64_t begin, end;  // of ExpertRoutes::tokens()
  };

  void route(const Tensor& normed, const LayerPass& pass) const;
  void run_group(const Group& group, const Tensor& normed, const Tensor& x,
                 const LayerPass& pass) const;
  void run_token(const Tensor& normed, const Tensor& x, const LayerPass& pass) const;
  Tensor gather(const Group& group, const Tensor& normed, const LayerPass& pass) const;

  const BlockContext& context_;
  Weight router_;  // [n_expert, n_embd] f32
  std::vector<Expert> experts_;
  ActivationTensor gate_, up_, act_;    // [n, n_ff], of ModelSpec::ffn_rows()
  ActivationTensor gathered_, branch_;  // [n, n_embd]
  ActivationTensor logits_;             // [n, n_expert]
  ActivationTensor routed_;  // ExpertRoutes::tokens() in the device's memory: [n * n_used, 1]
};

}  // namespace snapkv
