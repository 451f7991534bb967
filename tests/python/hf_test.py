# SPDX-License-Identifier: MIT
"""snapkv.hf on random models of transformers: rows equal the paper's formula and kvpress's
SnapKVPress, a budget for everything changes nothing, later turns and generate() go on.

Needs torch and transformers, and compares with kvpress where it is installed; exits with 77 without
them.
"""

import sys
import unittest

try:
    import torch

    from hf_models import BUDGET, KERNEL, N, WINDOW, ids, make
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import snapkv
import snapkv.hf


def paper_rows(query, key):
    """SnapKV, arXiv 2404.14469, as its update_kv() has it: queries [heads, window, d] and keys
    [kv heads, n, d]; the mean over the query heads of a KV head."""
    groups = query.shape[0] // key.shape[0]
    scores = query @ key.repeat_interleave(groups, 0).transpose(1, 2) / query.shape[2] ** 0.5
    mask = torch.full((WINDOW, WINDOW), float("-inf")).triu(1)
    scores[:, :, -WINDOW:] += mask
    votes = scores.softmax(-1, dtype=torch.float32)[:, :, :-WINDOW].sum(1)
    votes = votes.view(key.shape[0], groups, -1).mean(1)
    pooled = torch.nn.functional.max_pool1d(votes, KERNEL, 1, KERNEL // 2)
    order = pooled.sort(dim=-1, descending=True, stable=True).indices  # ties to the lower position
    top = order[:, :BUDGET - WINDOW].sort(-1).values
    n = key.shape[1]
    return torch.cat([top, torch.arange(n - WINDOW, n).expand(key.shape[0], -1)], 1)


class HuggingFace(unittest.TestCase):
    def test_rows_are_the_papers(self):
        compressor = snapkv.hf.Compressor("snapkv", budget=BUDGET, window_size=WINDOW,
                                          kernel_size=KERNEL)
        torch.manual_seed(3)
        query, key = torch.randn(4, WINDOW, 16), torch.randn(2, N, 16)
        rows = compressor.select(query, key, key, 0.25, 0, 1)
        self.assertTrue(torch.equal(torch.stack(rows), paper_rows(query, key)))

    def test_every_family_keeps_its_budget_and_goes_on(self):
        for kind in ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma2", "Gemma3Text", "Phi3"):
            with self.subTest(kind):
                model = make(kind)
                with torch.no_grad(), snapkv.hf.compress(model, budget=BUDGET):
                    out = model(ids(), use_cache=True)
                    cache = out.past_key_values
                    for layer in cache.layers:
                        if not layer.is_sliding:
                            self.assertEqual(layer.keys.shape[2], BUDGET)
                            self.assertEqual(layer.get_seq_length(), N)
                    later = model(ids(5, 2), past_key_values=cache, use_cache=True)
                    self.assertTrue(torch.isfinite(later.logits).all())
                    text = model.generate(ids(), max_new_tokens=5, do_sample=False)
                self.assertEqual(text.shape[1], N + 5)

    def test_a_budget_for_everything_changes_nothing(self):
        model = make("Llama")
        with torch.no_grad():
            plain = model.generate(ids(), max_new_tokens=8, do_sample=False)
            with snapkv.hf.compress(model, policy="snapkv", budget=4096):
                kept = model.generate(ids(), max_new_tokens=8, do_sample=False)
        self.assertTrue(torch.equal(plain, kept))

    def test_rows_are_kvpress_rows(self):
        try:
            from kvpress import SnapKVPress
        except ImportError as missing:
            self.skipTest(str(missing))
        for kind in ("Llama", "Qwen3"):
            with self.subTest(kind):
                model = make(kind)
                press = SnapKVPress(compression_ratio=1 - BUDGET / N, window_size=WINDOW,
                                    kernel_size=KERNEL)
                # kvpress pools with the mean
                ours = snapkv.hf.compress(model, policy="snapkv", budget=BUDGET,
                                          window_size=WINDOW, kernel_size=KERNEL, pooling="avg")
                with torch.no_grad():
                    with press(model):
                        theirs = model(ids(), use_cache=True).past_key_values
                    with ours:
                        mine = model(ids(), use_cache=True).past_key_values
                for a, b in zip(mine.layers, theirs.layers):
                    # kvpress orders rows by their score
                    self.assertTrue(torch.equal(a.keys.sum(-1).sort(-1).values,
                                                b.keys.sum(-1).sort(-1).values))

    def test_what_cannot_work_is_refused(self):
        model = make("Llama")
        with self.assertRaisesRegex(snapkv.UsageError, "no parameter"):
            with snapkv.hf.compress(model, rows=3):
                pass
        with self.assertRaisesRegex(snapkv.UsageError, "different numbers of rows"):
            with torch.no_grad(), snapkv.hf.compress(model, policy="ada-snapkv", budget=BUDGET):
                model(ids(), use_cache=True)
        with self.assertRaisesRegex(snapkv.UsageError, "budgets of their own"):
            with snapkv.hf.compress(model, policy="pyramidkv", budget=BUDGET):
                pass
        with self.assertRaisesRegex(snapkv.UsageError, "\"refuse\" or \"pad\""):
            with snapkv.hf.compress(model, unequal="cut"):
                pass
        with self.assertRaisesRegex(snapkv.UsageError, "padded"):
            with torch.no_grad(), snapkv.hf.compress(model, budget=BUDGET):
                model(ids(), attention_mask=torch.zeros(1, N, dtype=torch.long), use_cache=True)
        with self.assertRaisesRegex(snapkv.UsageError, "eager"):
            model.config._attn_implementation = "eager"
            with snapkv.hf.compress(model):
                pass


if __name__ == "__main__":
    unittest.main()
