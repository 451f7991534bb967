#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compresses the KV cache of one layer that is held in PyTorch tensors, on the CPU or a GPU, through
the C API. Needs libsnapkv.so: cmake -DBUILD_SHARED_LIBS=ON (and -DSNAPKV_CUDA=ON for a GPU).

    SNAPKV_LIBRARY=build/shared/libsnapkv.so python3 examples/compress_torch_cache.py [cpu|cuda]
"""
import ctypes
import os
import sys

import torch

CPU, CUDA = 0, 1
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
i64, i32, pointer = ctypes.c_int64, ctypes.c_int, ctypes.c_void_p


class Policy(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("budget", i64), ("ratio", ctypes.c_double),
                ("window_size", i32), ("kernel_size", i32), ("avg_pooling", i32),
                ("max_group", i32), ("sinks", i32), ("params", ctypes.c_char * 256)]


class View(ctypes.Structure):
    _fields_ = [("data", pointer), ("dtype", i32), ("head_stride", i64), ("row_stride", i64)]


class Layer(ctypes.Structure):
    _fields_ = [("n_tokens", i64), ("n_window", i64), ("n_head", i64), ("n_head_kv", i64),
                ("head_dim", i64), ("q", View), ("k", View), ("v", View),
                ("scale", ctypes.c_float), ("il", i32), ("n_layer", i32)]


def view(t):
    """[heads, rows, head_dim], any strides but the last."""
    assert t.stride(2) == 1
    return View(t.data_ptr(), DTYPES[t.dtype], t.stride(0), t.stride(1))


def load(path):
    lib = ctypes.CDLL(path)
    lib.snapkv_default_policy.restype = Policy
    lib.snapkv_policy_set.argtypes = [ctypes.POINTER(Policy), ctypes.c_char_p, ctypes.c_char_p,
                                      ctypes.c_char_p, ctypes.c_size_t]
    lib.snapkv_compressor_new.restype = pointer
    lib.snapkv_compressor_new.argtypes = [ctypes.POINTER(Policy), i32, pointer, ctypes.c_char_p,
                                          ctypes.c_size_t]
    lib.snapkv_compressor_free.argtypes = [pointer]
    lib.snapkv_max_kept.restype = i64
    lib.snapkv_max_kept.argtypes = [pointer, ctypes.POINTER(Layer)]
    rows = ctypes.POINTER(ctypes.c_int32)
    lib.snapkv_select.argtypes = [pointer, ctypes.POINTER(Layer), i64, rows, rows, ctypes.c_char_p,
                                  ctypes.c_size_t]
    lib.snapkv_gather.argtypes = [pointer, ctypes.POINTER(Layer), ctypes.POINTER(View), i64, rows,
                                  rows, ctypes.POINTER(View), ctypes.c_char_p, ctypes.c_size_t]
    return lib


class Compressor:
    def __init__(self, lib, device, **policy):
        self.lib, self.error = lib, ctypes.create_string_buffer(512)
        settings = lib.snapkv_default_policy()
        for name, value in policy.items():
            if name == "name":
                settings.name = value.encode()
                continue
            self.check(lib.snapkv_policy_set(ctypes.byref(settings), name.encode(),
                                             str(value).lower().encode(), self.error, len(self.error)))
        # the default stream is 0 there, which would mean "none"; 1 is its other name
        stream = (torch.cuda.current_stream().cuda_stream or 1) if device == "cuda" else None
        self.handle = lib.snapkv_compressor_new(ctypes.byref(settings),
                                                CUDA if device == "cuda" else CPU, stream,
                                                self.error, len(self.error))
        if not self.handle:
            raise RuntimeError(self.error.value.decode())

    def __del__(self):
        if getattr(self, "handle", None):
            self.lib.snapkv_compressor_free(self.handle)

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.error.value.decode())

    def compress(self, q, k, v, il=0, n_layer=1):
        """q [n_head, n_window, head_dim]: of the last tokens; k, v [n_head_kv, n_tokens, head_dim].
        Returns the kept keys and values of each head, and their positions."""
        layer = Layer(k.shape[1], q.shape[1], q.shape[0], k.shape[0], k.shape[2], view(q), view(k),
                      view(v), 0.0, il, n_layer)
        capacity = self.lib.snapkv_max_kept(self.handle, ctypes.byref(layer))
        rows = (ctypes.c_int32 * (k.shape[0] * capacity))()
        n = (ctypes.c_int32 * k.shape[0])()
        self.check(self.lib.snapkv_select(self.handle, ctypes.byref(layer), capacity, rows, n,
                                          self.error, len(self.error)))
        kept = []
        for source in (k, v):
            out = torch.empty(k.shape[0], capacity, k.shape[2], dtype=k.dtype, device=k.device)
            self.check(self.lib.snapkv_gather(self.handle, ctypes.byref(layer),
                                              ctypes.byref(view(source)), capacity, rows, n,
                                              ctypes.byref(view(out)), self.error,
                                              len(self.error)))
            kept.append([out[h, :n[h]] for h in range(k.shape[0])])
        positions = [list(rows[h * capacity:h * capacity + n[h]]) for h in range(k.shape[0])]
        return kept[0], kept[1], positions


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    lib = load(os.environ.get("SNAPKV_LIBRARY", "libsnapkv.so"))
    torch.manual_seed(1)
    n_head, n_head_kv, n_tokens, head_dim, window = 32, 8, 4096, 128, 32
    k = torch.randn(n_head_kv, n_tokens, head_dim, dtype=torch.bfloat16, device=device)
    v = torch.randn_like(k)
    q = torch.randn(n_head, window, head_dim, dtype=torch.bfloat16, device=device)
    compressor = Compressor(lib, device, budget=1024, window_size=window)
    keys, values, positions = compressor.compress(q, k, v)
    for h in range(n_head_kv):
        assert torch.equal(keys[h], k[h, positions[h]]), h
        assert torch.equal(values[h], v[h, positions[h]]), h
    before = 2 * k.numel() * k.element_size()
    after = sum(2 * t.numel() * t.element_size() for t in keys)
    print(f"{device}: kept {keys[0].shape[0]} of {n_tokens} rows per head, {after >> 10} of "
          f"{before >> 10} KiB; the last of head 0: {positions[0][-3:]}")


if __name__ == "__main__":
    main()
