# SPDX-License-Identifier: MIT
"""snapkv.hf.SnapKVCache beside kvpress's SnapKVPress on SmolLM2 and Gemma 3: the same rows in every
layer and head, the same logits after them within bf16's rounding, the same answer.

usage: hf_real_models_test.py [FOLDER]   (of `make models`; exits with 77 without it)
Needs torch, transformers, gguf, accelerate and kvpress; exits with 77 without them.
"""

import json
import sys
import unittest
from pathlib import Path

try:
    import gguf  # noqa: F401  pylint: disable=unused-import
    import torch
    from kvpress import SnapKVPress
    from transformers import AutoModelForCausalLM, logging

    import snapkv.hf
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

FOLDER = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else None
REFERENCES = Path(__file__).resolve().parents[1] / "real_models"
N_ANSWER = 8
# Rows whose scores differ by rounding alone may be exchanged at the cut: torch and the engine add in
# different orders.
MOST_EXCHANGED = 3
BF16_ROUNDING = 2.0 ** -8  # relative


class Press(SnapKVPress):
    """SnapKVPress that leaves layers with a sliding window alone, as kvpress does for Gemma 3 with
    pictures."""

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        if getattr(module, "is_sliding", False):
            return keys, values
        return super().compress(module, hidden_states, keys, values, attentions, kwargs)


def read_and_answer(model, ids, cache, press=None):
    """(logits [N_ANSWER, n_vocab], cache after the prompt, cloned) of a greedy answer."""
    prompt = torch.tensor([ids])
    if press is not None:
        with press(model):
            out = model(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
    else:
        out = model(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
    cache = out.past_key_values
    rows = [layer.keys.clone() for layer in cache.layers]
    logits = []
    for i in range(N_ANSWER):
        token = out.logits[0, -1].argmax()
        out = model(token.view(1, 1), past_key_values=cache, use_cache=True,
                    position_ids=torch.tensor([[len(ids) + i]]))
        logits.append(out.logits[0, -1])
    return torch.stack(logits), rows


def exchanged(ours, theirs):
    """How many rows of two caches [1, n_head_kv, n, head_dim] are not in the other one."""
    count = 0
    for a, b in zip(ours[0], theirs[0]):
        mine = {row.numpy().tobytes() for row in a}
        count += len(mine - {row.numpy().tobytes() for row in b})
    return count


class RealModels(unittest.TestCase):
    def check(self, name):
        reference = json.loads((REFERENCES / f"{name}.json").read_text())
        path = FOLDER / reference["file"]
        if not path.exists():
            self.skipTest(f"no {path}")
        kept = reference["kept"]
        ids, budget = kept["ids"], kept["budget"]
        model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name,
                                                     dtype=torch.float32).eval()
        press = Press(compression_ratio=1 - (budget + 0.5) / len(ids),
                      window_size=kept["window_size"], kernel_size=kept["kernel_size"])
        ours = snapkv.hf.SnapKVCache(model, "snapkv", budget=budget, pooling="avg",
                                     window_size=kept["window_size"],
                                     kernel_size=kept["kernel_size"])
        with torch.no_grad():
            logits, rows = read_and_answer(model, ids, ours)
            expected, their_rows = read_and_answer(model, ids, None, press)
        self.assertEqual([r.shape for r in rows], [r.shape for r in their_rows])
        n_compressed = sum(r.shape[2] == budget for r in rows)
        self.assertEqual(n_compressed, len(kept["layers"]))
        self.assertLessEqual(sum(map(exchanged, rows, their_rows)), MOST_EXCHANGED)
        self.assertTrue(torch.equal(logits.argmax(-1), expected.argmax(-1)))
        error = (logits - expected).abs().max() / expected.abs().max()
        self.assertLess(float(error), BF16_ROUNDING)
        print(f"{name}: {n_compressed} layers, {sum(map(exchanged, rows, their_rows))} rows "
              f"exchanged, logits differ by {float(error):.1e} of the largest")

    def test_smollm2(self):
        self.check("smollm2")

    def test_gemma3(self):
        self.check("gemma3")


if __name__ == "__main__":
    if FOLDER is None or not FOLDER.is_dir():
        print("skipped: no folder of real models (make models)")
        sys.exit(77)
    logging.disable_progress_bar()
    unittest.main()
