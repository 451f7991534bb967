# SPDX-License-Identifier: MIT
"""Muon (K. Jordan, 2024): an optimizer with momentum that makes each matrix orthogonal before its step."""
import torch

# x -> a x + b x^3 + c x^5 brings singular values in (0, 1] close to 1 in five rounds
A, B, C, ROUNDS = 3.4445, -4.7750, 2.0315, 5


def orthogonal(matrix):
    """Approximates U V^T for matrix = U S V^T by iterating a polynomial of the singular values, in bf16."""
    x = matrix.bfloat16()
    x = x / (x.norm() + 1e-7)
    if matrix.shape[0] > matrix.shape[1]:
        x = x.T
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


class Muon(torch.optim.Optimizer):
    """For matrices only. Its steps are as large as AdamW's usually are (arXiv 2502.16982, eq. 4), so that the
    same rate and weight decay suit both."""

    def __init__(self, params, lr=1e-3, momentum=0.95, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                mean = self.state[p].setdefault("momentum", torch.zeros_like(p))
                mean.mul_(group["momentum"]).add_(p.grad)
                update = orthogonal(p.grad + group["momentum"] * mean).to(p.dtype)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(update, alpha=-group["lr"] * 0.2 * max(p.shape) ** 0.5)
