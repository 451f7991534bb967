#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the GPU's ratios divide by, with PyTorch: bytes per second of a copy (read and written) and
of a read (a sum), and operations per second of an 8192 x 8192 x 8192 bf16 product. Best of several;
one line of JSON."""
import json

import torch


def seconds(run, repetitions):
    for _ in range(3):
        run()
    best = float("inf")
    for _ in range(repetitions):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3)
    return best


def main():
    a = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    copy = 2 * a.numel() / seconds(lambda: b.copy_(a), 10)
    halves = a.view(torch.float16).zero_()
    read = a.numel() / seconds(halves.sum, 10)
    x = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    product = 2 * 8192**3 / seconds(lambda: x @ x, 10)
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "copy_gbps": copy / 1e9,
                      "read_gbps": read / 1e9, "bf16_tflops": product / 1e12}))


if __name__ == "__main__":
    main()
