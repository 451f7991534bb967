# SPDX-License-Identifier: MIT
"""Causal grouped-query attention for training. On a GPU, PyTorch's own fused attention is used. On a CPU, old
PyTorch would store the whole matrix of scores, so blocks of queries are multiplied with only the columns that
they may see, and recomputed in the backward pass."""
import math

import torch
import torch.nn.functional as F

QUERY_BLOCK = 256


def _blocks(n_sequences, n_rows, rows):
    """(sequence, first row, end row, end column, first column that some row of the block may not see)."""
    for sequence in range(n_sequences):
        for begin in range(0, n_rows, QUERY_BLOCK):
            end = min(begin + QUERY_BLOCK, n_rows)
            if rows is None:
                yield sequence, begin, end, end, begin + 1
            else:
                first, last = rows[sequence, begin], rows[sequence, begin:end].max()
                yield sequence, begin, end, int(last) + 1, int(first) + 1


def _probabilities(q, k, block, rows):
    """softmax(q k^T) of one block, [n_kv, group, n, n_columns] in f32; q is scaled, [n_kv, group, n, dim]."""
    sequence, begin, end, n_columns, free = block
    n_kv, group, n, dim = q.shape
    s = q.reshape(n_kv, group * n, dim) @ k[:, :n_columns].transpose(1, 2)
    s = s.view(n_kv, group, n, n_columns).float()
    if n_columns > free:
        columns = torch.arange(free, n_columns, device=q.device)
        places = torch.arange(begin, end, device=q.device) if rows is None else rows[sequence, begin:end]
        s[..., free:].masked_fill_(columns[None] > places[:, None], -math.inf)
    return torch.softmax(s, -1)


class BlockedAttention(torch.autograd.Function):
    """q [batch, n_kv, group, n_rows, dim], scaled; k, v [batch, n_kv, n_tokens, dim]. A block is QUERY_BLOCK
    rows of one sequence, so that its scores fit into the processor's cache."""

    @staticmethod
    def forward(ctx, q, k, v, rows):
        out = torch.empty_like(q)
        for block in _blocks(len(q), q.shape[3], rows):
            b, begin, end, n_columns, _ = block
            p = _probabilities(q[b, :, :, begin:end], k[b], block, rows).to(v.dtype)
            o = p.flatten(1, 2) @ v[b, :, :n_columns]
            out[b, :, :, begin:end] = o.view(*p.shape[:3], -1)
        ctx.save_for_backward(q, k, v, out, rows)
        return out

    @staticmethod
    def backward(ctx, d_out):
        q, k, v, out, rows = ctx.saved_tensors
        d_q, d_k, d_v = torch.empty_like(q), torch.zeros_like(k).float(), torch.zeros_like(v).float()
        delta = (d_out.float() * out.float()).sum(-1, keepdim=True)
        d_out = d_out.to(v.dtype)
        for block in _blocks(len(q), q.shape[3], rows):
            b, begin, end, n_columns, _ = block
            q_block = q[b, :, :, begin:end]
            p = _probabilities(q_block, k[b], block, rows)
            d_block = d_out[b, :, :, begin:end].flatten(1, 2)
            d_v[b, :, :n_columns] += p.to(v.dtype).flatten(1, 2).transpose(1, 2) @ d_block
            d_p = (d_block @ v[b, :, :n_columns].transpose(1, 2)).view(p.shape).float()
            d_s = p.mul_(d_p.sub_(delta[b, :, :, begin:end])).to(q.dtype).flatten(1, 2)
            d_q[b, :, :, begin:end] = (d_s @ k[b, :, :n_columns]).view(q_block.shape)
            d_k[b, :, :n_columns] += d_s.transpose(1, 2) @ q_block.flatten(1, 2)
        return d_q, d_k.to(k.dtype), d_v.to(v.dtype), None


def attend(q, k, v, rows=None):
    """q [batch, n_rows, n_head, dim], k and v [batch, n_tokens, n_head_kv, dim]; row i is at position i, or
    at rows[batch, i]. Returns [batch, n_rows, n_head, dim]."""
    batch, n_rows, n_head, dim = q.shape
    n_kv = k.shape[2]
    dtype = v.dtype
    if q.device.type != "cpu":
        q, k, v = (t.to(dtype).transpose(1, 2) for t in (q, k, v))
        k, v = (t.repeat_interleave(n_head // n_kv, 1) for t in (k, v))
        if rows is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        seen = torch.arange(k.shape[2], device=q.device)[None, None] <= rows[..., None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None]).transpose(1, 2)
    q = (q * dim ** -0.5).to(dtype).view(batch, n_rows, n_kv, n_head // n_kv, dim)
    k, v = (t.to(dtype).transpose(1, 2).contiguous() for t in (k, v))
    out = BlockedAttention.apply(q.permute(0, 2, 3, 1, 4).contiguous(), k, v, rows)
    return out.permute(0, 3, 1, 2, 4).reshape(batch, n_rows, n_head, dim)
