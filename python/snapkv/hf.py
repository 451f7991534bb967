# SPDX-License-Identifier: MIT
"""The policies for transformers' models.

    import snapkv.hf

    with snapkv.hf.compress(model, policy="snapkv-max", budget=1024):
        ids = model.generate(**tokenizer(prompt, return_tensors="pt"), max_new_tokens=100)

or, for a single text, a cache of transformers' own kind:

    cache = snapkv.hf.SnapKVCache(model, budget=1024)
    ids = model.generate(**tokenizer(prompt, return_tensors="pt"), past_key_values=cache)

Every layer's cache is compressed when the prompt has been read; the rows are those that the engine
keeps. Layers with a sliding window stay as they are. Queries are taken where the model hands them to
its attention, after RoPE, so every family works whose attention goes through transformers'
attention interface ("sdpa", "flash_attention_2", ...). A prompt must be read in one call (no
``prefill_chunk_size``).
"""

import copy
import weakref
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, byref, c_int32, c_void_p, cast

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from . import _library as _c
from ._model import options

_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


class _CompressedLayer(DynamicLayer):
    """Rows of a compressed layer. To the model it is as long as the text that was read: positions
    go on from there, and masks cover the rows that are left.

    keys, values: [batch, n_head_kv, n_kept, head_dim]. padding: [batch, n_head_kv, n_kept], true for
    rows in front that only fill up a head with fewer rows than others; None where there are none.
    """

    def __init__(self, keys, values, n_seen, padding=None):
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values, self.padding = keys, values, padding
        self._n_dropped = n_seen - keys.shape[-2]

    def get_seq_length(self):
        return self.keys.shape[-2] + self._n_dropped

    def get_mask_sizes(self, cache_position):
        return self.keys.shape[-2] + cache_position.shape[0], self._n_dropped

    def crop(self, max_length):
        raise _c.UsageError(2, "a compressed layer cannot be cropped: which rows are whose is lost")

    def _choose(self, function, padding_function, argument):
        function(argument)
        if self.padding is not None:
            self.padding = padding_function(self.padding)

    def reorder_cache(self, beam_idx):
        self._choose(super().reorder_cache, lambda p: p.index_select(0, beam_idx.to(p.device)),
                     beam_idx)

    def batch_repeat_interleave(self, repeats):
        self._choose(super().batch_repeat_interleave, lambda p: p.repeat_interleave(repeats, dim=0),
                     repeats)

    def batch_select_indices(self, indices):
        self._choose(super().batch_select_indices, lambda p: p[indices, ...], indices)

    def mask(self, query, key, mask):
        """Which rows each query sees, [batch, n_head, n_query, n_rows]: of the kept ones those that
        are not padding, of the later ones those that the model's ``mask`` lets through."""
        n_query, n_head = query.shape[2], query.shape[1]
        n_new = key.shape[2] - self.padding.shape[2]
        kept = ~self.padding.repeat_interleave(n_head // key.shape[1], dim=1)
        if mask is None:
            new = torch.ones(n_query, n_new, dtype=torch.bool, device=key.device)
            new = new.tril(n_new - n_query)
        else:
            new = mask[..., -n_new:]
            new = new if new.dtype == torch.bool else new >= 0
        return torch.cat([kept[:, :, None].expand(-1, -1, n_query, -1),
                          new.expand(key.shape[0], n_head, n_query, n_new)], dim=-1)


class Compressor:
    """Chooses the rows of layers with a policy. ``given``: the policy's parameters by name."""

    def __init__(self, policy="snapkv-max", device="cpu", **given):
        raw = _c.lib.snapkv_default_policy()
        raw.name = policy.encode()
        raw.window_size = -1
        defaults = {option["name"].removeprefix("kv_"): option["default"]
                    for option in options(policy)}
        for name, value in given.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            _c.call("snapkv_policy_set", byref(raw), name.encode(), text.encode())
        self.window_size = int(given.get("window_size", defaults.get("window_size", 0)))
        self._handle = _c.new("snapkv_compressor_new", "snapkv_compressor_free", byref(raw),
                              1 if device == "cuda" else 0, None)

    def select(self, queries, keys, values, scale, layer, n_layer):
        """The rows that each KV head of one sequence keeps: tensors of indices, ascending.

        queries [n_head, n_window, head_dim] after RoPE, keys and values [n_head_kv, n, head_dim];
        ``layer`` of ``n_layer`` that are compressed.
        """
        view = _c.Layer(n_tokens=keys.shape[1], n_window=queries.shape[1],
                        n_head=queries.shape[0], n_head_kv=keys.shape[0],
                        head_dim=keys.shape[2], scale=scale, il=layer, n_layer=n_layer)
        view.q, view.k, view.v = _view(queries), _view(keys), _view(values)
        capacity = _c.lib.snapkv_max_kept(self._handle.pointer, byref(view))
        rows = torch.zeros(keys.shape[0], max(1, capacity), dtype=torch.int32)
        n = torch.zeros(keys.shape[0], dtype=torch.int32)
        _c.call("snapkv_select", self._handle.pointer, byref(view), capacity, _ints(rows), _ints(n))
        return [rows[h, :n[h]].long() for h in range(keys.shape[0])]


def _view(tensor):
    if tensor.stride(2) != 1:
        raise _c.UsageError(2, "vectors of queries, keys and values must lie without gaps")
    if tensor.dtype not in _TYPES:
        raise _c.UsageError(2, f"type {tensor.dtype}: it must be float32, float16 or bfloat16")
    return _c.View(data=tensor.data_ptr(), dtype=_TYPES[tensor.dtype],
                   head_stride=tensor.stride(0), row_stride=tensor.stride(1))


def _ints(tensor):
    return cast(c_void_p(tensor.data_ptr()), POINTER(c_int32))


def _padded(rows):
    """(index, padding), both [batch, n_head_kv, n], of rows per sequence and head; shorter heads are
    filled up in front."""
    most = max(len(head) for heads in rows for head in heads)
    index = torch.zeros(len(rows), len(rows[0]), most, dtype=torch.long)
    padding = torch.ones_like(index, dtype=torch.bool)
    for b, heads in enumerate(rows):
        for h, head in enumerate(heads):
            index[b, h, most - len(head):] = head
            padding[b, h, most - len(head):] = False
    return index, padding


class _Hooks:
    """What compresses a model's layers while it reads."""

    def __init__(self, model, policy, unequal, given):
        if unequal not in ("refuse", "pad"):
            raise _c.UsageError(2, f"unequal is \"{unequal}\"; it must be \"refuse\" or \"pad\"")
        device = next(model.parameters()).device.type
        if device not in ("cpu", "cuda"):
            raise _c.UsageError(2, f"the model is on \"{device}\"; it must be on the CPU or on CUDA")
        self._policy, self._pads = policy, unequal == "pad"
        self._compressor = Compressor(policy, device, **given)
        self._queries = {}  # attention module: (queries of the prompt's end, scale)
        self._caches = {}  # attention module that computes now: its cache
        self._attention = [m for m in model.modules()
                           if hasattr(m, "layer_idx") and hasattr(m, "k_proj") or
                           hasattr(m, "layer_idx") and hasattr(m, "qkv_proj")]
        if not self._attention:
            raise _c.UsageError(2, f"{type(model).__name__}: no attention layers of a known form")
        full = sorted(m.layer_idx for m in self._attention if not getattr(m, "is_sliding", False))
        self._place = {layer: i for i, layer in enumerate(full)}
        self._known = set(self._attention)
        self._check_implementation(model.config._attn_implementation)  # pylint: disable=protected-access

    def _check_implementation(self, name):
        self.implementation = name
        if name not in ALL_ATTENTION_FUNCTIONS:
            raise _c.UsageError(2, f"attn_implementation is \"{name}\"; it must be one of "
                                   "transformers' attention interface, as \"sdpa\"")
        if self._pads and name != "sdpa":
            raise _c.UsageError(2, f"attn_implementation is \"{name}\"; with unequal=\"pad\" it "
                                   "must be \"sdpa\", which takes a mask for each head")
        if self._policy == "pyramidkv" and not self._pads:
            raise _c.UsageError(2, "policy pyramidkv gives layers budgets of their own, and "
                                   "transformers makes one mask for all: use unequal=\"pad\"")

    def before(self, module, _arguments, kwargs):
        """Notes the cache of an attention module."""
        self._caches[module] = kwargs.get("past_key_values")

    def attend(self, module, query, key, value, attention_mask, **kwargs):
        """The model's attention, which leaves the prompt's last queries behind and masks padding."""
        if module in self._known and query.shape[2] > 1 and query.shape[2] == key.shape[2]:
            window = max(1, min(self._compressor.window_size, query.shape[2]))
            scale = kwargs.get("scaling") or query.shape[3] ** -0.5
            self._queries[module] = (query[:, :, -window:].contiguous(), float(scale))
        cache = self._caches.get(module)
        layer = cache.layers[module.layer_idx] if cache is not None else None
        if getattr(layer, "padding", None) is not None:
            attention_mask = layer.mask(query, key, attention_mask)
        return self._original(module, query, key, value, attention_mask, **kwargs)

    def after(self, module, _arguments, _kwargs, _output):
        """Compresses the layer of an attention module that has just read a prompt."""
        queries, scale = self._queries.pop(module, (None, None))
        cache = self._caches.pop(module, None)
        place = self._place.get(module.layer_idx)
        if queries is None or cache is None or place is None:
            return
        layer = cache.layers[module.layer_idx]
        if layer.is_sliding:
            return
        keys, values = layer.keys, layer.values
        index, padding = _padded([
            self._compressor.select(queries[b], keys[b], values[b], scale, place, len(self._place))
            for b in range(keys.shape[0])
        ])
        if not self._pads and padding.any():
            raise _c.UsageError(2, f"policy {self._policy} keeps different numbers of rows in the "
                                   "heads of a layer, which a tensor cannot hold: use "
                                   "unequal=\"pad\"")
        index = index[..., None].expand(-1, -1, -1, keys.shape[-1]).to(keys.device)
        cache.layers[module.layer_idx] = _CompressedLayer(
            keys.gather(2, index), values.gather(2, index), keys.shape[2],
            padding.to(keys.device) if self._pads else None)

    def refuse_padding(self, _module, _arguments, kwargs):
        """Padded tokens would be chosen like any others."""
        mask = kwargs.get("attention_mask")
        if mask is not None and mask.dim() == 2 and bool((mask == 0).any()):
            raise _c.UsageError(2, "the batch is padded: compress prompts of equal length, or one "
                                   "at a time")

    @contextmanager
    def installed(self):
        """Works in what the model computes inside."""
        self._original = ALL_ATTENTION_FUNCTIONS[self.implementation]
        handles = [m.register_forward_pre_hook(self.before, with_kwargs=True)
                   for m in self._attention]
        handles += [m.register_forward_hook(self.after, with_kwargs=True) for m in self._attention]
        ALL_ATTENTION_FUNCTIONS[self.implementation] = self.attend
        try:
            yield
        finally:
            ALL_ATTENTION_FUNCTIONS[self.implementation] = self._original
            for handle in handles:
                handle.remove()
            self._queries.clear()
            self._caches.clear()


@contextmanager
def compress(model, policy="snapkv-max", unequal="refuse", **given):
    """Compresses the cache of ``model`` (a transformers model) at the end of every prompt.

    policy: one of ``snapkv policies`` but those that observe every query. given: its parameters:
    budget (rows per layer and KV head, the window included), ratio, window_size, kernel_size, ...
    unequal: what happens where a policy keeps different numbers of rows in the heads of a layer, or
    in layers ("ada-snapkv", "pyramidkv"): an error ("refuse"), or shorter heads are filled up with
    rows that a mask hides ("pad"; with attn_implementation="sdpa").

    Later turns are read after the rows that are left and compressed no further. Not for two models
    of one attention implementation in two threads at once.
    """
    hooks = _Hooks(model, policy, unequal, given)
    refusal = model.register_forward_pre_hook(hooks.refuse_padding, with_kwargs=True)
    try:
        with hooks.installed():
            yield
    finally:
        refusal.remove()


class SnapKVCache(DynamicCache):
    """A cache of one text (or a batch of equal length) that compresses itself when the prompt has
    been read; arguments as :func:`compress`.

    >>> cache = snapkv.hf.SnapKVCache(model, policy="snapkv-max", budget=1024)
    >>> model.generate(ids, past_key_values=cache, max_new_tokens=100)

    Only ``model`` may use it. ``get_seq_length()`` is the length of the text that was read in
    tokens, ``n_kept`` the rows that are left in each compressed layer.
    """

    def __init__(self, model, policy="snapkv-max", unequal="refuse", **given):
        super().__init__(config=model.config)
        self._arguments = (model, policy, unequal, given)
        self._is_read_by_its_model = False
        hooks = _Hooks(model, policy, unequal, given)
        weakref.finalize(self, _remove, _watch(model, hooks, weakref.ref(self)))

    def update(self, key_states, value_states, layer_idx, *arguments, **named):
        if not self._is_read_by_its_model:
            raise _c.UsageError(2, "this cache was made for another model")
        return super().update(key_states, value_states, layer_idx, *arguments, **named)

    @property
    def n_kept(self):
        """Rows of each layer without a sliding window, later tokens included."""
        return [layer.keys.shape[-2] if layer.is_initialized else 0
                for layer in self.layers if not layer.is_sliding]

    def __deepcopy__(self, memo):
        model, policy, unequal, given = self._arguments
        other = type(self)(model, policy, unequal, **given)
        other.layers = copy.deepcopy(self.layers, memo)
        return other


def _watch(model, hooks, cache):
    """Lets hooks work in those calls of the model that are given the cache (a weak reference)."""
    running = ExitStack()

    def begin(module, arguments, kwargs):
        own = cache()
        if own is not None and any(a is own for a in [*arguments, *kwargs.values()]):
            hooks.refuse_padding(module, arguments, kwargs)
            running.enter_context(hooks.installed())
            own._is_read_by_its_model = True  # pylint: disable=protected-access

    def end(_module, _arguments, _kwargs, _output):
        running.close()
        own = cache()
        if own is not None:
            own._is_read_by_its_model = False  # pylint: disable=protected-access

    return [model.register_forward_pre_hook(begin, with_kwargs=True),
            model.register_forward_hook(end, with_kwargs=True, always_call=True)]


def _remove(handles):
    for handle in handles:
        handle.remove()


__all__ = ["Compressor", "SnapKVCache", "compress"]
