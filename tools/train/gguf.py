# SPDX-License-Identifier: MIT
"""Reads and writes GGUF v3: metadata and f32/f16 tensors (numpy only)."""
import struct

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q",
           I64: "q", F64: "d"}
TENSOR_TYPES = {0: np.dtype("<f4"), 1: np.dtype("<f2")}  # ggml's type numbers of f32 and f16
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise ValueError(f"file ends at byte {len(self.data)}, {self.at + n} expected")
        self.at += n
        return self.data[self.at - n:self.at]

    def unpack(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.take(self.unpack("Q")).decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.unpack(FORMATS[kind])
        item, n = self.unpack("I"), self.unpack("Q")
        if item in (STRING, ARRAY):
            return [self.value(item) for _ in range(n)]
        dtype = np.dtype("<" + FORMATS[item])
        return np.frombuffer(self.take(n * dtype.itemsize), dtype)


def read_gguf(path):
    """Returns (metadata, tensors): tensors are arrays in PyTorch's order [rows, columns]."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    if reader.take(4) != b"GGUF" or (version := reader.unpack("I")) != 3:
        raise ValueError(f"{path}: not a GGUF file of version 3")
    n_tensors, n_values = reader.unpack("Q"), reader.unpack("Q")
    metadata = {}
    for _ in range(n_values):
        key = reader.string()
        metadata[key] = reader.value(reader.unpack("I"))
    heads = []
    for _ in range(n_tensors):
        name, n_dims = reader.string(), reader.unpack("I")
        shape = tuple(reader.unpack("Q") for _ in range(n_dims))[::-1]
        kind, offset = reader.unpack("I"), reader.unpack("Q")
        if kind not in TENSOR_TYPES:
            raise ValueError(f"{path}: tensor {name} has ggml type {kind}; only f32 and f16 are read")
        heads.append((name, shape, TENSOR_TYPES[kind], offset))
    alignment = int(metadata.get("general.alignment", ALIGNMENT))
    start = -(-reader.at // alignment) * alignment
    tensors = {}
    for name, shape, dtype, offset in heads:
        reader.at = start + offset
        raw = reader.take(int(np.prod(shape)) * dtype.itemsize)
        tensors[name] = np.frombuffer(raw, dtype).reshape(shape)
    return metadata, tensors


def pack_string(text):
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def pack_value(value):
    """Returns type number and bytes: int as u32, float as f32; arrays of int32 or float32; lists of
    strings."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, (int, np.integer)):
        return U32, struct.pack("<I", value)
    if isinstance(value, (float, np.floating)):
        return F32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, pack_string(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "if" and value.dtype.itemsize == 4:
        kind = I32 if value.dtype.kind == "i" else F32
        return ARRAY, struct.pack("<IQ", kind, value.size) + value.tobytes()
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ARRAY, struct.pack("<IQ", STRING, len(value)) + b"".join(map(pack_string, value))
    raise TypeError(f"metadata of type {type(value)} can't be written")


def write_gguf(path, metadata, tensors):
    out, blobs, offset = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))], [], 0
    for key, value in metadata.items():
        kind, payload = pack_value(value)
        out += [pack_string(key), struct.pack("<I", kind), payload]
    for name, array in tensors.items():
        kind = {np.dtype("<f4"): 0, np.dtype("<f2"): 1}[array.dtype]
        dims = array.shape[::-1]  # ggml's order: fastest dimension first
        out += [pack_string(name), struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)]
        raw = np.ascontiguousarray(array).tobytes()
        blobs.append(raw + b"\0" * (-len(raw) % ALIGNMENT))
        offset += len(blobs[-1])
    head = b"".join(out)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        file.writelines(blobs)
