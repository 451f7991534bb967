# SPDX-License-Identifier: MIT
"""The policies for transformers' models.

    import snapkv.hf

    with snapkv.hf.compress(model, policy="snapkv-max", budget=1024):
        ids = model.generate(**tokenizer(prompt, return_tensors="pt"), max_new_tokens=100)

Inside ``with``, every layer's cache is compressed when the prompt has been read; the rows are those
that the engine keeps. Layers with a sliding window stay as they are. Queries are taken where the
model hands them to its attention, after RoPE, so every family works whose attention goes through
transformers' attention interface ("sdpa", "flash_attention_2", ...).
"""

from contextlib import contextmanager
from ctypes import POINTER, byref, c_int32, c_void_p, cast

import torch
from transformers.cache_utils import DynamicLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from . import _library as _c
from ._model import options

_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


class _CompressedLayer(DynamicLayer):
    """Rows of a compressed layer. To the model it is as long as the text that was read: positions
    go on from there, and masks cover the rows that are left."""

    def __init__(self, keys, values, n_seen):
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self._n_dropped = n_seen - keys.shape[-2]

    def get_seq_length(self):
        return self.keys.shape[-2] + self._n_dropped

    def get_mask_sizes(self, cache_position):
        return self.keys.shape[-2] + cache_position.shape[0], self._n_dropped

    def crop(self, max_length):
        raise _c.UsageError(2, "a compressed layer cannot be cropped: which rows are whose is lost")


class Compressor:
    """Chooses the rows of layers with a policy. ``given``: the policy's parameters by name."""

    def __init__(self, policy="snapkv-max", device="cpu", **given):
        raw = _c.lib.snapkv_default_policy()
        self._name = policy.encode()
        raw.name = self._name
        raw.window_size = -1
        defaults = {option["name"].removeprefix("kv_"): option["default"]
                    for option in options(policy)}
        own = {name: defaults[name] for name in ("kernel_size", "pooling", "group")
               if name in defaults}  # the struct begins with those of "snapkv"
        for name, value in {**own, **given}.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            _c.call("snapkv_policy_set", byref(raw), name.encode(), text.encode())
        self.window_size = int(given.get("window_size", defaults.get("window_size", 0)))
        self._handle = _c.new("snapkv_compressor_new", "snapkv_compressor_free", byref(raw),
                              1 if device == "cuda" else 0, None)

    def select(self, queries, keys, values, scale, layer, n_layer):
        """Row indices [n_head_kv, n_kept] of one sequence.

        queries [n_head, n_window, head_dim] after RoPE, keys and values [n_head_kv, n, head_dim];
        ``layer`` of ``n_layer`` that are compressed. Heads that keep different numbers of rows are
        refused: a tensor has as many rows in each.
        """
        view = _c.Layer(n_tokens=keys.shape[1], n_window=queries.shape[1],
                        n_head=queries.shape[0], n_head_kv=keys.shape[0],
                        head_dim=keys.shape[2], scale=scale, il=layer, n_layer=n_layer)
        view.q, view.k, view.v = _view(queries), _view(keys), _view(values)
        capacity = _c.lib.snapkv_max_kept(self._handle.pointer, byref(view))
        rows = torch.zeros(keys.shape[0], max(1, capacity), dtype=torch.int32)
        n = torch.zeros(keys.shape[0], dtype=torch.int32)
        _c.call("snapkv_select", self._handle.pointer, byref(view), capacity, _ints(rows), _ints(n))
        if len(set(n.tolist())) > 1:
            raise _c.UsageError(2, f"policy {self._name.decode()} keeps different numbers of rows "
                                   "in the heads of a layer, which a tensor cannot hold")
        return rows[:, :int(n[0])].long()


def _view(tensor):
    if tensor.stride(2) != 1:
        raise _c.UsageError(2, "vectors of queries, keys and values must lie without gaps")
    if tensor.dtype not in _TYPES:
        raise _c.UsageError(2, f"type {tensor.dtype}: it must be float32, float16 or bfloat16")
    return _c.View(data=tensor.data_ptr(), dtype=_TYPES[tensor.dtype],
                   head_stride=tensor.stride(0), row_stride=tensor.stride(1))


def _ints(tensor):
    return cast(c_void_p(tensor.data_ptr()), POINTER(c_int32))


class _Hooks:
    """What compress() puts into a model."""

    def __init__(self, model, compressor):
        self._compressor = compressor
        self._queries = {}  # attention module: (queries of the prompt's end, scale)
        self._attention = [m for m in model.modules()
                           if hasattr(m, "layer_idx") and hasattr(m, "k_proj") or
                           hasattr(m, "layer_idx") and hasattr(m, "qkv_proj")]
        if not self._attention:
            raise _c.UsageError(2, f"{type(model).__name__}: no attention layers of a known form")
        full = sorted(m.layer_idx for m in self._attention if not getattr(m, "is_sliding", False))
        self._place = {layer: i for i, layer in enumerate(full)}
        self._known = set(self._attention)
        self.implementation = model.config._attn_implementation  # pylint: disable=protected-access
        if self.implementation not in ALL_ATTENTION_FUNCTIONS:
            raise _c.UsageError(2, f"attn_implementation is \"{self.implementation}\"; it must be "
                                   "one of transformers' attention interface, as \"sdpa\"")
        self._original = ALL_ATTENTION_FUNCTIONS[self.implementation]

    def attend(self, module, query, key, value, attention_mask, **kwargs):
        """The model's attention, which leaves the prompt's last queries behind."""
        if module in self._known and query.shape[2] > 1 and query.shape[2] == key.shape[2]:
            window = max(1, min(self._compressor.window_size, query.shape[2]))
            scale = kwargs.get("scaling") or query.shape[3] ** -0.5
            self._queries[module] = (query[:, :, -window:].contiguous(), float(scale))
        return self._original(module, query, key, value, attention_mask, **kwargs)

    def after(self, module, _arguments, kwargs, _output):
        """Compresses the layer of an attention module that has just read a prompt."""
        queries, scale = self._queries.pop(module, (None, None))
        cache = kwargs.get("past_key_values")
        place = self._place.get(module.layer_idx)
        if queries is None or cache is None or place is None:
            return
        layer = cache.layers[module.layer_idx]
        if layer.is_sliding:
            return
        keys, values = layer.keys, layer.values
        rows = torch.stack([
            self._compressor.select(queries[b], keys[b], values[b], scale, place, len(self._place))
            for b in range(keys.shape[0])
        ]).to(keys.device)
        index = rows[..., None].expand(-1, -1, -1, keys.shape[-1])
        cache.layers[module.layer_idx] = _CompressedLayer(
            keys.gather(2, index), values.gather(2, index), keys.shape[2])

    def refuse_padding(self, _module, _arguments, kwargs):
        """Padded rows would be chosen like any others."""
        mask = kwargs.get("attention_mask")
        if mask is not None and mask.dim() == 2 and bool((mask == 0).any()):
            raise _c.UsageError(2, "the batch is padded: compress prompts of equal length, or one "
                                   "at a time")

    @contextmanager
    def installed(self, model):
        handles = [m.register_forward_hook(self.after, with_kwargs=True) for m in self._attention]
        handles.append(model.register_forward_pre_hook(self.refuse_padding, with_kwargs=True))
        ALL_ATTENTION_FUNCTIONS[self.implementation] = self.attend
        try:
            yield
        finally:
            del ALL_ATTENTION_FUNCTIONS[self.implementation]
            for handle in handles:
                handle.remove()


@contextmanager
def compress(model, policy="snapkv-max", **given):
    """Compresses the cache of ``model`` (a transformers model) at the end of every prompt.

    policy: one of ``snapkv policies`` but those that observe every query or give layers or heads
    budgets of their own. given: its parameters: budget (rows per layer and KV head, the window
    included), ratio, window_size, kernel_size, ...

    Later turns are read after the rows that are left and compressed no further. Not for two models
    of one attention implementation at once.
    """
    if policy in ("pyramidkv",):
        raise _c.UsageError(2, f"policy {policy} gives layers budgets of their own; transformers "
                               "makes one mask for all")
    device = next(model.parameters()).device.type
    if device not in ("cpu", "cuda"):
        raise _c.UsageError(2, f"the model is on \"{device}\"; it must be on the CPU or on CUDA")
    hooks = _Hooks(model, Compressor(policy, device, **given))
    with hooks.installed(model):
        yield


__all__ = ["Compressor", "compress"]
