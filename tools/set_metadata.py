#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Set whole numbers (u32) in the metadata of a GGUF file; the tensors' bytes stay as they are.

    tools/set_metadata.py models/needle.gguf snapkv.window_size=16 snapkv.kernel_size=15

snapkv.window_size and snapkv.kernel_size are what `snapkv` takes where --kv-window and --kv-kernel are not given.
"""
import os
import struct
import sys

U32, STRING, ARRAY = 4, 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of fixed-size types


class Reader:
    """Walks through a header and checks every step against the end of the file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def skip(self, n):
        if self.at + n > len(self.data):
            raise ValueError(f"the file ends at byte {len(self.data)}, {self.at + n} expected")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.skip(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.skip(self.number("Q"))

    def skip_value(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            item, n = self.number("I"), self.number("Q")
            if item in SIZES:
                self.skip(n * SIZES[item])
            else:
                for _ in range(n):
                    self.skip_value(item)
        elif kind in SIZES:
            self.skip(SIZES[kind])
        else:
            raise ValueError(f"a value is of type {kind}, which GGUF does not have")


def read_entries(reader, n):
    """[(key, alignment or None, bytes)] of the metadata."""
    entries = []
    for _ in range(n):
        start = reader.at
        key, kind = reader.string(), reader.number("I")
        value_at = reader.at
        reader.skip_value(kind)
        alignment = None
        if key == b"general.alignment":
            alignment = struct.unpack_from("<I", reader.data, value_at)[0]
        entries.append((key, alignment, reader.data[start:reader.at]))
    return entries


def skip_tensors(reader, n):
    for _ in range(n):
        reader.string()
        reader.skip(8 * reader.number("I") + 4 + 8)


def with_numbers(data, numbers):
    """The file's bytes with these keys (bytes) set to these numbers."""
    reader = Reader(data)
    if reader.skip(4) != b"GGUF" or (version := reader.number("I")) not in (2, 3):
        raise ValueError("not a GGUF file of version 2 or 3")
    n_tensors, n_entries = reader.number("Q"), reader.number("Q")
    entries = read_entries(reader, n_entries)
    alignment = next((a for _, a, _ in entries if a is not None), 32)
    tensors_at = reader.at
    skip_tensors(reader, n_tensors)
    tensors = data[tensors_at:reader.at]
    start = -(-reader.at // alignment) * alignment
    kept = [raw for key, _, raw in entries if key not in numbers]
    new = [struct.pack("<Q", len(key)) + key + struct.pack("<II", U32, value) for key, value in numbers.items()]
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, len(kept) + len(new))
    head += b"".join(kept + new) + tensors
    return head + b"\0" * (-len(head) % alignment) + data[start:]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path = sys.argv[1]
    numbers = {}
    for setting in sys.argv[2:]:
        key, _, value = setting.partition("=")
        if not key or not value.isdigit() or int(value) >= 1 << 32:
            sys.exit(f"{setting}: expected KEY=N with a whole number below 2^32")
        numbers[key.encode()] = int(value)
    with open(path, "rb") as file:
        data = file.read()
    try:
        changed = with_numbers(data, numbers)
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    with open(path + ".new", "wb") as file:
        file.write(changed)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
