# SPDX-License-Identifier: MIT
"""snapkv.hf.SnapKVCache in generate(): the answer is that of compress(), heads of unequal length are
padded so that nothing changes but their number, beams and copies work, misuse is refused.

Needs torch and transformers; exits with 77 without them.
"""

import copy
import gc
import sys
import unittest

try:
    import torch

    from hf_models import BUDGET, N, ids, make
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import snapkv
import snapkv.hf


def plain_attention(query, key, value, rows, n_seen, scale):
    """Attention of one query over the kept rows of each head and all later ones, head by head."""
    out = []
    for h in range(query.shape[0]):
        k = h * key.shape[0] // query.shape[0]
        index = torch.cat([rows[k], torch.arange(n_seen, key.shape[1])])
        weights = (query[h] @ key[k, index].T * scale).softmax(-1)
        out.append(weights @ value[k, index])
    return torch.stack(out)


class Cache(unittest.TestCase):
    def generate(self, model, cache, n=8, **more):
        with torch.no_grad():
            return model.generate(ids(), past_key_values=cache, max_new_tokens=n, do_sample=False,
                                  **more)

    def test_generate_is_that_of_compress(self):
        for kind in ("Llama", "Qwen3", "Gemma3Text"):
            with self.subTest(kind):
                model = make(kind)
                with torch.no_grad(), snapkv.hf.compress(model, budget=BUDGET):
                    expected = model.generate(ids(), max_new_tokens=8, do_sample=False)
                cache = snapkv.hf.SnapKVCache(model, budget=BUDGET)
                self.assertTrue(torch.equal(self.generate(model, cache), expected))
                self.assertEqual(cache.n_kept, [BUDGET + 7] * len(cache.n_kept))
                self.assertEqual(cache.get_seq_length(), N + 7)

    def test_a_later_turn_is_read_after_the_rows_that_are_left(self):
        model = make("Llama")
        cache = snapkv.hf.SnapKVCache(model, budget=BUDGET)
        with torch.no_grad():
            model(ids(), past_key_values=cache)
            together = copy.deepcopy(cache)
            turn = ids(5, 2)
            logits = model(turn, past_key_values=together).logits[0, -1]
            for i in range(5):
                alone = model(turn[:, i:i + 1], past_key_values=cache).logits[0, -1]
        torch.testing.assert_close(logits, alone)
        self.assertEqual(together.n_kept, [BUDGET + 5] * 3)

    def test_padding_changes_nothing_where_heads_are_equal(self):
        model = make("Llama")
        with torch.no_grad():
            logits = []
            for unequal in ("refuse", "pad"):
                cache = snapkv.hf.SnapKVCache(model, budget=BUDGET, unequal=unequal)
                model(ids(), past_key_values=cache)
                logits.append(model(ids(5, 2), past_key_values=cache).logits)
        torch.testing.assert_close(*logits)

    def test_unequal_heads_attend_to_their_own_rows(self):
        model = make("Llama")
        cache = snapkv.hf.SnapKVCache(model, policy="ada-snapkv", budget=BUDGET, unequal="pad")
        seen = []
        attend = torch.nn.functional.scaled_dot_product_attention

        def spy(query, key, value, **given):
            seen.append((query, key, value, given, attend(query, key, value, **given)))
            return seen[-1][-1]

        with torch.no_grad():
            full = model(ids(), use_cache=True).past_key_values
            model(ids(), past_key_values=cache)
            padding = cache.layers[0].padding
            self.assertTrue(padding.any())
            self.assertEqual(int((~padding).sum()), 2 * BUDGET)  # the layer's budget
            torch.nn.functional.scaled_dot_product_attention = spy
            try:
                model(ids(1, 2), past_key_values=cache)
            finally:
                torch.nn.functional.scaled_dot_product_attention = attend
        query, _, _, given, out = seen[0]
        keys, values = full.layers[0].keys[0], full.layers[0].values[0]
        rows = []
        for h in range(2):
            own = cache.layers[0].keys[0, h, :padding.shape[2]][~padding[0, h]]
            rows.append((keys[h, None] == own[:, None]).all(-1).int().argmax(1))
            self.assertTrue(torch.equal(keys[h, rows[h]], own))
        last = cache.layers[0]
        keys = torch.cat([keys, last.keys[0, :, -1:]], 1)
        values = torch.cat([values, last.values[0, :, -1:]], 1)
        expected = plain_attention(query[0, :, 0], keys, values, rows, N, given["scale"])
        torch.testing.assert_close(out[0, :, 0], expected)

    def test_layers_of_unequal_length_go_on(self):
        model = make("Llama")
        cache = snapkv.hf.SnapKVCache(model, policy="pyramidkv", budget=BUDGET, unequal="pad")
        with torch.no_grad():
            model(ids(), past_key_values=cache)
            self.assertGreater(cache.n_kept[0], cache.n_kept[-1])
            other = copy.deepcopy(cache)
            turn = ids(4, 2)
            logits = model(turn, past_key_values=cache).logits[0, -1]
            for i in range(4):
                alone = model(turn[:, i:i + 1], past_key_values=other).logits[0, -1]
        torch.testing.assert_close(logits, alone)

    def test_beams_take_their_rows_along(self):
        model = make("Llama")
        for policy, unequal in (("snapkv", "refuse"), ("ada-snapkv", "pad")):
            cache = snapkv.hf.SnapKVCache(model, policy, unequal, budget=BUDGET)
            out = self.generate(model, cache, num_beams=3)
            self.assertEqual(out.shape, (1, N + 8))

    def test_what_cannot_work_is_refused(self):
        model, other = make("Llama"), make("Qwen3")
        with self.assertRaisesRegex(snapkv.UsageError, "another model"):
            self.generate(other, snapkv.hf.SnapKVCache(model, budget=BUDGET))
        with self.assertRaisesRegex(snapkv.UsageError, "different numbers of rows"):
            self.generate(model, snapkv.hf.SnapKVCache(model, "ada-snapkv", budget=BUDGET))
        cache = snapkv.hf.SnapKVCache(model, budget=BUDGET)
        self.generate(model, cache, 1)
        with self.assertRaisesRegex(snapkv.UsageError, "cropped"):
            cache.crop(3)

    def test_a_model_is_as_before_after_the_cache(self):
        model = make("Llama")
        cache = snapkv.hf.SnapKVCache(model, budget=BUDGET)
        self.assertEqual(len(model._forward_pre_hooks), 1)
        with torch.no_grad():
            rows = model(ids(), use_cache=True).past_key_values
        self.assertEqual(rows.layers[0].keys.shape[2], N)  # other caches are left alone
        del cache
        gc.collect()
        self.assertEqual(len(model._forward_pre_hooks), 0)
        self.assertEqual(len(model._forward_hooks), 0)


if __name__ == "__main__":
    unittest.main()
