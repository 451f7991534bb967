// SPDX-License-Identifier: MIT
#include "model/blocks/latent_attention.h"

#include <algorithm>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "model/blocks/attention.h"

namespace snapkv {
namespace {

/// Part h of a tensor that has the same number of rows for each head, one head after the other.
Tensor rows_of_head(const Tensor& all, int64_t h, int64_t n_head) {
  const int64_t n = all.shape[0] / n_head;
  return all.slice(h * n, (h + 1) * n);
}

/// [n, n_head, d] as [n, n_head * d].
Tensor side_by_side(const Tensor& t) { return t.reshaped({t.shape[0], t.shape[1] * t.shape[2]}); }

/// Multiplies the rows of each head, of all heads in x [n_head * n, n_in], with the head's own
/// matrix.
void project_heads(const Tensor& x, const std::vector<Weight>& heads, const Tensor& out,
                   const LayerPass& pass) {
  const auto n_head = std::ssize(heads);
  if (pass.linear->packed()) {
    for (int64_t h = 0; h < n_head; ++h) {
      const LinearCall call[] = {{&heads[h], rows_of_head(out, h, n_head)}};
      pass.linear->apply(rows_of_head(x, h, n_head), call);
    }
    return;
  }
  std::vector<Projection> projections;
  for (int64_t h = 0; h < n_head; ++h) {
    projections.push_back({.w = heads[h].w, .bias = {}, .out = rows_of_head(out, h, n_head)});
  }
  ops::project_each(*pass.backend, x, projections);
}

}  // namespace

LatentAttention::LatentAttention(const BlockContext& context, LayerLoader& loader)
    : context_(context), layer_(loader.layer()), sizes_(layer_.latent) {
  const int64_t n_embd = loader.config().n_embd;
  const int64_t n_q = layer_.n_head * (sizes_.n_own + n_shared());
  if (sizes_.q_rank > 0) {
    wq_down_ = loader.matrix("attn_q_a", sizes_.q_rank, n_embd);
    q_norm_.weight = loader.vector("attn_q_a_norm.weight", sizes_.q_rank, Presence::required);
    wq_up_ = loader.matrix("attn_q_b", n_q, sizes_.q_rank);
  } else {
    wq_ = loader.matrix("attn_q", n_q, n_embd);
  }
  wkv_ = loader.matrix("attn_kv_a_mqa", sizes_.rank + n_shared(), n_embd);
  latent_norm_.weight = loader.vector("attn_kv_a_norm.weight", sizes_.rank, Presence::required);
  load_heads(loader);
  if (context.spec.config.n_unchosen > 0) ignore_indexer(loader);
  if (sizes_.index) {
    indexer_ = TokenIndexer(context, loader);
    zeros_ = loader.ones(sizes_.index.head_dim).reshaped({1, sizes_.index.head_dim});
    std::fill_n(zeros_.at<float>(0), sizes_.index.head_dim, 0.0f);
  }
  if (sizes_.gated) gate_ = loader.matrix("attn_gate", layer_.n_head, n_embd);
  out_ = {context, loader.matrix("attn_output", n_embd, layer_.n_head * sizes_.n_value), Norm()};
  plan_activations(context.activations);
}

void LatentAttention::ignore_indexer(LayerLoader& loader) {
  for (const char* name :
       {"attn_q_b.weight", "attn_k.weight", "proj.weight", "k_norm.weight", "k_norm.bias"}) {
    loader.ignore(std::string("indexer.") + name);
  }
}

/// One matrix that makes the keys and values of all heads has of each head K_h, then V_h. Some
/// files have both forms.
void LatentAttention::load_heads(LayerLoader& loader) {
  const int64_t n_head = layer_.n_head, n_key = sizes_.n_own, n_value = sizes_.n_value;
  if (sizes_.joined) {
    const Weight both =
        loader.matrix("attn_kv_b", n_head * (n_key + n_value), sizes_.rank, Presence::optional);
    for (int64_t h = 0; h < n_head; ++h) {
      const int64_t begin = h * (n_key + n_value);
      keys_.push_back(loader.transposed(both.rows(begin, begin + n_key)));
      values_.push_back(both.rows(begin + n_key, begin + n_key + n_value));
    }
    loader.ignore("attn_k_b.weight");
    loader.ignore("attn_v_b.weight");
  } else {
    loader.ignore("attn_kv_b.weight");
    keys_ = loader.heads("attn_k_b", n_head, sizes_.rank, n_key);
    values_ = loader.heads("attn_v_b", n_head, n_value, sizes_.rank);
  }
  for (const Weight& value : values_) value_matrices_.push_back(value.w);
}

void LatentAttention::plan_activations(ActivationPlan& plan) {
  const int64_t n_head = layer_.n_head, rank = sizes_.rank;
  const auto of_heads = [n_head](int64_t n) { return n_head * n; };
  const auto f32 = ActivationType::f32, input = ActivationType::input;
  if (sizes_.q_rank > 0) {
    q_down_ = plan.add("q's latent", sizes_.q_rank);
    q_normed_ = plan.add("q's normed latent", sizes_.q_rank, input);
  }
  q_out_ = plan.add("heads' queries", n_head * (sizes_.n_own + n_shared()));
  own_ = plan.add("heads' own", sizes_.n_own, input, of_heads);
  shared_ = plan.add("heads' shared", n_shared(), f32, of_heads);
  absorbed_ = plan.add("heads' latent", rank, f32, of_heads);
  const int64_t n_index = sizes_.index.head_dim;
  q_ = plan.add_heads("q", n_head, n_shared() + n_index + rank);
  if (n_index > 0) unindexed_ = plan.add("unindexed", n_index);
  kv_out_ = plan.add("key and latent", rank + n_shared());
  latent_ = plan.add("latent", rank);
  key_shared_ = plan.add("shared key", n_shared());
  row_ = plan.add_heads("k", 1, n_shared() + n_index + rank);
  sums_ = plan.add_heads("latent sums", n_head, rank, input);
  head_sums_ = plan.add("heads' sums", rank, input, of_heads);
  head_values_ = plan.add("heads' values", sizes_.n_value, f32, of_heads);
  if (gate_) {
    gate_out_ = plan.add("output gate", n_head);
    head_gates_ = plan.add("heads' gates", 1, f32, of_heads);
  }
  attn_ = plan.add("attn", n_head * sizes_.n_value, input);
}

std::vector<const Weight*> LatentAttention::matrices() const {
  std::vector<const Weight*> all = present({&wq_, &wq_down_, &wq_up_, &wkv_, &gate_, &out_.w});
  for (const std::vector<Weight>* heads : {&keys_, &values_}) {
    for (const Weight& head : *heads) all.push_back(&head);
  }
  if (indexer_) {
    for (const Weight* weight : indexer_.matrices()) all.push_back(weight);
  }
  return all;
}

/// q: of the last rows, what is made of n_embd values; row: of all rows.
void LatentAttention::project(const Tensor& normed, const Tensor& q, const Tensor& row,
                              const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_q = q.shape[0];
  const LinearCall calls[] = {{&wkv_, row}, {wq_ ? &wq_ : &wq_down_, q}};
  if (n_q == n) return pass.linear->apply(normed, calls);
  pass.linear->apply(normed, {&calls[0], 1});
  if (n_q > 0) pass.linear->apply(normed.slice(n - n_q, n), {&calls[1], 1});
}

// x += Wo (V_h attention(K_h^T q_h, c))_h
void LatentAttention::run(const Tensor& normed, const LayerPass& pass) const {
  const int64_t n = pass.x.shape[0], n_q = pass.n_q, n_out = pass.n_out;
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor kv_out = buffers.get(kv_out_, n);
  Tensor q = buffers.get(wq_ ? q_out_ : q_down_, n_q);
  project(normed, q, kv_out, pass);
  if (wq_up_ && n_q > 0) {
    const Tensor q_normed = buffers.get(q_normed_, n_q), q_out = buffers.get(q_out_, n_q);
    normalize(*pass.backend, context_.spec, q_norm_, q, q_normed);
    const LinearCall up[] = {{&wq_up_, q_out}};
    pass.linear->apply(q_normed, up);
    q = q_out;
  }
  const Tensor k = make_rows(normed, kv_out, pass);
  Tensor v = k;  // the latent vectors within
  v.data = k.at<float>(0) + (k.shape[2] - sizes_.rank);
  v.shape[2] = sizes_.rank;
  const Tensor sums = buffers.get(sums_, n_out);
  if (indexer_) {
    const RowChoice choice =
        indexer_.choice(normed.slice(n - n_q, n), buffers.get(q_normed_, n_q), pass);
    pass.attention->attend_to_chosen(choice, make_queries(q, pass), k, v, sums);
  } else {
    pass.attention->attend(make_queries(q, pass), k, v, sums);
  }
  if (n_out > 0) add_output(normed.slice(n - n_out, n), sums, pass);
}

/// The rows to remember, [n, 1, head_dim_k].
Tensor LatentAttention::make_rows(const Tensor& normed, const Tensor& projected,
                                  const LayerPass& pass) const {
  const int64_t n = projected.shape[0];
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor latent = buffers.get(latent_, n), shared = buffers.get(key_shared_, n);
  const Tensor row = buffers.get(row_, n);
  const Tensor in_file[] = {latent, shared};
  std::vector<Tensor> in_row = {shared, latent};
  ops::split(*pass.backend, projected, in_file);
  normalize(*pass.backend, context_.spec, latent_norm_, latent, latent);
  if (indexer_) in_row.insert(in_row.begin() + 1, indexer_.keys(normed, pass));
  ops::join(*pass.backend, in_row, side_by_side(row));
  ops::rope(*pass.backend, row, pass.pos, context_.rotations.find(layer_.rotation, pass.n_ctx));
  return row;
}

/// The queries for such rows, [n, n_head, head_dim_k]; projected [n, n_head * (n_own + n_shared)].
Tensor LatentAttention::make_queries(const Tensor& projected, const LayerPass& pass) const {
  const int64_t n = projected.shape[0], n_head = layer_.n_head;
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor own = buffers.get(own_, n_head * n);
  const Tensor shared = buffers.get(shared_, n_head * n);
  const Tensor absorbed = buffers.get(absorbed_, n_head * n), q = buffers.get(q_, n);
  if (n == 0) return q;
  Tensor unindexed;
  if (indexer_) {
    unindexed = buffers.get(unindexed_, n);
    ops::embed(*pass.backend, zeros_, std::vector<int32_t>(n, 0), unindexed);
  }
  std::vector<Tensor> in_file, in_row;
  for (int64_t h = 0; h < n_head; ++h) {
    const Tensor shared_part = rows_of_head(shared, h, n_head);
    in_file.insert(in_file.end(), {rows_of_head(own, h, n_head), shared_part});
    in_row.push_back(shared_part);
    if (indexer_) in_row.push_back(unindexed);
    in_row.push_back(rows_of_head(absorbed, h, n_head));
  }
  ops::split(*pass.backend, projected, in_file);
  project_heads(own, keys_, absorbed, pass);
  ops::join(*pass.backend, in_row, side_by_side(q));
  const std::span<const int32_t> pos = pass.pos.last(n);
  ops::rope(*pass.backend, q, pos, context_.rotations.find(layer_.rotation, pass.n_ctx));
  sharpen(q, pos, context_, pass);
  return q;
}

/// values [n_head * n, n_value], of one head after the other, times sigmoid(Wgate normed).
void LatentAttention::gate_heads(const Tensor& normed, const Tensor& values,
                                 const LayerPass& pass) const {
  const int64_t n = normed.shape[0], n_head = layer_.n_head;
  const Tensor gates = pass.buffers->get(gate_out_, n);
  const Tensor of_heads = pass.buffers->get(head_gates_, n_head * n);
  const LinearCall call[] = {{&gate_, gates}};
  pass.linear->apply(normed, call);
  ops::activate(*pass.backend, Activation::sigmoid, gates, {}, gates);
  std::vector<Tensor> parts;
  for (int64_t h = 0; h < n_head; ++h) parts.push_back(rows_of_head(of_heads, h, n_head));
  ops::split(*pass.backend, gates, parts);
  ops::scale_rows(*pass.backend, values, of_heads);
}

/// normed: of the rows that are added to. sums [n_out, n_head, rank]: what each head's attention
/// adds up.
void LatentAttention::add_output(const Tensor& normed, const Tensor& sums,
                                 const LayerPass& pass) const {
  const int64_t n = sums.shape[0], n_head = layer_.n_head;
  const ActivationBuffer& buffers = *pass.buffers;
  const Tensor head_sums = buffers.get(head_sums_, n_head * n);
  const Tensor values = buffers.get(head_values_, n_head * n), attn = buffers.get(attn_, n);
  std::vector<Tensor> sum_parts, value_parts;
  for (int64_t h = 0; h < n_head; ++h) {
    sum_parts.push_back(rows_of_head(head_sums, h, n_head));
    value_parts.push_back(rows_of_head(values, h, n_head));
  }
  ops::split(*pass.backend, side_by_side(sums), sum_parts);
  project_heads(head_sums, values_, values, pass);
  if (gate_) gate_heads(normed, values, pass);
  ops::join(*pass.backend, value_parts, attn);
  const int64_t n_all = pass.x.shape[0];
  out_.add_to(pass.x.slice(n_all - n, n_all), attn, context_, pass);
}

}  // namespace snapkv
