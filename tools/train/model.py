# SPDX-License-Identifier: MIT
"""A Llama (grouped-query attention, RoPE on pairs, SwiGLU, tied or separate output) in PyTorch that is read
from and written to GGUF. Parameters have GGUF's names without the ending ".weight"."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from attention import attend
from gguf import read_gguf, write_gguf

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
NORMS = ("attn_norm", "ffn_norm")
NEW_LAYER_STD = 0.05


def rms_norm(x, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    """RoPE on neighbouring pairs; x [batch, n_tokens, heads, head_dim], cos [.., n_tokens, 1, head_dim/2]."""
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.zeros(shape)))

    def kv(self, x, cos, sin, model):
        y = rms_norm(x, self.attn_norm, model.eps)
        shape = (*x.shape[:2], model.n_head_kv, -1)
        k = rotate(F.linear(y, self.attn_k).view(shape), cos, sin)
        return k, F.linear(y, self.attn_v).view(shape)

    def forward(self, x, cos, sin, model, rows=None):
        """x [batch, n_tokens, n_embd]; with rows [batch, n_rows], only those positions are computed."""
        k, v = self.kv(x, cos, sin, model)
        if rows is not None:
            x = x.gather(1, rows[..., None].expand(-1, -1, x.shape[2]))
            cos, sin = (t[rows] for t in (cos, sin))
        y = rms_norm(x, self.attn_norm, model.eps)
        q = rotate(F.linear(y, self.attn_q).view(*x.shape[:2], model.n_head, -1), cos, sin)
        x = x + F.linear(attend(q, k, v, rows).flatten(2), self.attn_output)
        y = rms_norm(x, self.ffn_norm, model.eps)
        return x + F.linear(F.silu(F.linear(y, self.ffn_gate)) * F.linear(y, self.ffn_up),
                            self.ffn_down)


class Llama(nn.Module):
    def __init__(self, metadata, tensors):
        super().__init__()
        if (arch := metadata["general.architecture"]) != "llama":
            raise ValueError(f"architecture is {arch}, llama expected")
        self.metadata = dict(metadata)
        self.n_head = int(metadata["llama.attention.head_count"])
        self.n_head_kv = int(metadata["llama.attention.head_count_kv"])
        self.eps = float(metadata["llama.attention.layer_norm_rms_epsilon"])
        self.rope_base = float(metadata["llama.rope.freq_base"])
        n_layer = int(metadata["llama.block_count"])
        def own(name):
            return nn.Parameter(torch.from_numpy(tensors[name].astype(np.float32)))
        self.token_embd, self.output_norm = own("token_embd.weight"), own("output_norm.weight")
        self.output = own("output.weight") if "output.weight" in tensors else None
        self.ahead = nn.Parameter(torch.eye(self.token_embd.shape[1]))  # not part of the file
        self.blk = nn.ModuleList()
        for il in range(n_layer):
            found = {n: tensors[f"blk.{il}.{n}.weight"].astype(np.float32) for n in NORMS + MATRICES}
            layer = Layer({n: a.shape for n, a in found.items()})
            layer.load_state_dict({n: torch.from_numpy(a) for n, a in found.items()})
            self.blk.append(layer)

    @classmethod
    def from_gguf(cls, path):
        return cls(*read_gguf(path))

    def insert_layers(self, places):
        """Adds layers that have no effect yet: their two output projections are zero."""
        for place in sorted(places, reverse=True):
            old = self.blk[0]
            layer = Layer({n: getattr(old, n).shape for n in NORMS + MATRICES})
            with torch.no_grad():
                for name in NORMS:
                    getattr(layer, name).fill_(1)
                for name in set(MATRICES) - {"attn_output", "ffn_down"}:
                    getattr(layer, name).normal_(std=NEW_LAYER_STD)
            self.blk.insert(place, layer)
        self.metadata["llama.block_count"] = len(self.blk)

    def forward(self, ids, rows=None):
        """Logits [batch, n_tokens, n_vocab] of ids [batch, n_tokens]. With rows [batch, n_rows], ascending,
        only those of these positions: the last layer and the output are computed only there."""
        return self.logits(self.hidden(ids, rows))

    def hidden(self, ids, rows=None):
        """Hidden states [batch, n_tokens or n_rows, n_embd] after the output norm."""
        x = F.embedding(ids, self.token_embd)
        dim = self.token_embd.shape[1] // self.n_head
        frequency = self.rope_base ** (-torch.arange(0, dim, 2, device=ids.device) / dim)
        angle = torch.arange(ids.shape[1], device=ids.device)[:, None, None] * frequency
        cos, sin = angle.cos(), angle.sin()
        for il, layer in enumerate(self.blk):
            x = layer(x, cos, sin, self, rows if il + 1 == len(self.blk) else None)
        return rms_norm(x, self.output_norm, self.eps)

    def logits(self, hidden):
        return F.linear(hidden, self.token_embd if self.output is None else self.output)

    def logits_ahead(self, hidden, alone=False):
        """Logits of the token after the next one: multi-token prediction (arXiv 2404.19737) with one matrix.
        `alone`: the gradient reaches only that matrix."""
        if not alone:
            return self.logits(F.linear(hidden, self.ahead))
        output = self.token_embd if self.output is None else self.output
        return F.linear(F.linear(hidden.detach(), self.ahead), output.detach())

    def save_gguf(self, path, n_ctx):
        metadata = dict(self.metadata, **{"llama.context_length": n_ctx, "general.file_type": 1})
        tensors = {}
        for name, value in self.state_dict().items():
            if name == "ahead":
                continue
            array = value.detach().cpu().float().numpy()
            tensors[name + ".weight"] = array.astype("<f2") if array.ndim == 2 else array.astype("<f4")
        write_gguf(path, metadata, tensors)
