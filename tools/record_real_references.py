#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what transformers and kvpress compute with the real models of `make models`, in f32, as
the references of tests/real_models/real_models_test.cpp.

  tools/record_real_references.py [MODEL.gguf ...]

For every model: the 16 tokens after each of 10 prompts and the five highest logits at the prompt's
end; the rows that kvpress' SnapKVPress keeps of a prompt of 600 tokens, where a layer attends to
all of it; and, where the model has a chat template, three conversations as text and ids.

transformers reads the GGUF files itself. Its tokenizer is made of the file's vocabulary and merges,
but splits texts as GPT-2 does: SmolLM2's digits are put right here. It has none for Gemma, whose
ids are those of `snapkv tokenize`. Needs torch, transformers, gguf, accelerate and kvpress;
recorded with the versions that the files name. One thread; a model takes a few minutes.
"""
import argparse
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import torch
from kvpress import SnapKVPress
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "real_models"
SAMPLE = (ROOT / "models" / "sample_prompt.txt").read_text()
NAMES = {"SmolLM2-135M-Instruct.Q4_1.gguf": "smollm2", "gemma-3-270m-q4_k_m.gguf": "gemma3"}

N_ANSWER = 16  # tokens after each prompt
N_TOP = 5  # logits
# An answer's tokens are compared one by one. If the two best logits are closer than this, twice the
# tolerance of a logit in the test, rounding may decide.
LEAST_MARGIN = 4e-3
PROMPTS = [
    "The capital of France is Paris, the capital of Italy is Rome, the capital of Spain is Madrid, "
    "and the capital of Portugal is",
    "Once upon a time there was a small lighthouse at the end of a long road. Every evening the "
    "keeper climbed the stairs, lit the lamp and looked out over the water. One night, when the "
    "wind had dropped and the sea was as flat as a table, he saw",
    "def greatest_common_divisor(a, b):\n    \"\"\"Returns the largest number that divides both."
    "\"\"\"\n    while b != 0:\n",
    "Zutaten: 500 g Mehl, 300 ml Wasser, 10 g Salz, 7 g Hefe.\nZubereitung: Das Mehl mit dem Salz "
    "mischen, die Hefe im Wasser auflösen und",
    "<|im_start|>user\nName three things that a gardener needs in spring, and say what each of "
    "them is for.<|im_end|>\n<|im_start|>assistant\n",
    "Water boils at 100 degrees Celsius at sea level. On a mountain the pressure of the air is "
    "lower, and so water boils at a temperature that is",
    "Q: A train leaves at 14:35 and arrives at 16:05. How long does the journey take?\nA: One hour "
    "and 30 minutes.\nQ: A film begins at 20:15 and ends at 22:00. How long is it?\nA:",
    "| name | born | known for |\n|---|---|---|\n| Ada Lovelace | 1815 | the first program |\n"
    "| Alan Turing | 1912 |",
    SAMPLE[:700],
    SAMPLE[2000:3300],
]
CONVERSATIONS = [
    [{"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "system", "content": "You answer in one short sentence."},
     {"role": "user", "content": "How many legs do 12 spiders have?"},
     {"role": "assistant", "content": "Ninety-six."},
     {"role": "user", "content": "And 345 of them, in 2 rows?"}],
    [{"role": "user", "content": "  Übersetze:\n\n\"naïve café\" → 日本語 🙂\t(please)  "},
     {"role": "assistant", "content": ""},
     {"role": "user", "content": "Once more:\n```c++\nint main() { return 0; }\n```\n"}],
]
N_KEPT_PROMPT = 600  # tokens
BUDGET, WINDOW, KERNEL = 128, 32, 7  # the budget includes the window
NEAR = 1e-3  # scores within this relative distance of the cut are recorded


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def engine_ids(snapkv, path, text):
    command = [snapkv, "tokenize", "-m", str(path), "-f", "-", "--ids"]
    return json.loads(subprocess.run(command, input=text.encode(), check=True,
                                     capture_output=True).stdout)


def smollm2_tokenizer(path):
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    return tokenizer


@torch.no_grad()
def answer(model, prompt, ids):
    """The model's highest logits after a prompt, and the tokens that follow."""
    step = model(torch.tensor([ids]), use_cache=True)
    top = step.logits[0, -1].topk(N_TOP)
    tokens, least = [], float("inf")
    for _ in range(N_ANSWER):
        best = step.logits[0, -1].topk(2)
        tokens.append(best.indices[0].item())
        least = min(least, (best.values[0] - best.values[1]).item())
        step = model(torch.tensor([tokens[-1:]]), past_key_values=step.past_key_values,
                     use_cache=True)
    if least < LEAST_MARGIN:
        sys.exit(f"prompt {prompt[:40]!r}: expected the two best tokens to differ by at least "
                 f"{LEAST_MARGIN} everywhere, found {least:.2g}: choose another prompt")
    return {"text": prompt, "ids": ids, "top_ids": top.indices.tolist(),
            "top_logits": [round(x, 5) for x in top.values.tolist()], "answer": tokens,
            "least_margin": round(least, 5)}


class RecordingPress(SnapKVPress):
    """SnapKVPress that also records the scores of every layer it compresses. Layers with a sliding window are
    skipped, as kvpress skips Gemma 3's."""

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        if getattr(module, "is_sliding", False):
            return keys, values
        return super().compress(module, hidden_states, keys, values, attentions, kwargs)

    def score(self, module, *args):
        scores = super().score(module, *args)
        self.__dict__.setdefault("scores", {})[module.layer_idx] = scores[0]
        return scores


def kept_head(scores):
    """The rows of one head that kvpress keeps, by its own rule: topk of the scores."""
    rows = sorted(scores.topk(BUDGET).indices.tolist())
    prefix = scores[:-WINDOW]
    cut = min(prefix[j].item() for j in rows if j < len(prefix))
    near = [[j, float(f"{x:.8g}")] for j, x in enumerate(prefix.tolist())
            if abs(x - cut) <= NEAR * cut]
    return {"rows": rows[:-WINDOW], "cut": float(f"{cut:.8g}"), "near": near}


@torch.no_grad()
def kept(model, ids):
    # kvpress keeps int(L * (1 - ratio)) rows
    press = RecordingPress(compression_ratio=1 - (BUDGET + 0.5) / len(ids), window_size=WINDOW,
                           kernel_size=KERNEL)
    with press(model):
        cache = model(torch.tensor([ids]), use_cache=True).past_key_values
    layers = []
    for il, scores in sorted(press.scores.items()):
        assert cache.layers[il].keys.shape[2] == BUDGET
        layers.append({"il": il, "heads": [kept_head(head) for head in scores]})
    return {"ids": ids, "budget": BUDGET, "window_size": WINDOW, "kernel_size": KERNEL,
            "layers": layers}


def chat(tokenizer, messages):
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return {"messages": messages, "text": text,
            "ids": tokenizer(text, add_special_tokens=False).input_ids}


def write(record, path):
    """Writes a record with one line for each prompt, layer and conversation."""
    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def lines(values):
        return "[\n" + ",\n".join(compact(value) for value in values) + "\n]"

    parts = []
    for key, value in record.items():
        if key == "kept":
            rest = compact({k: v for k, v in value.items() if k != "layers"})
            parts.append(f'"kept":{rest[:-1]},"layers":{lines(value["layers"])}}}')
        else:
            text = lines(value) if isinstance(value, list) else compact(value)
            parts.append(f"{compact(key)}:{text}")
    path.write_text("{" + ",\n".join(parts) + "}\n")


def record(path, snapkv):
    tokenizer = smollm2_tokenizer(path) if NAMES[path.name] == "smollm2" else None

    def ids_of(text):
        if tokenizer is None:
            return engine_ids(snapkv, path, text)
        return tokenizer(text, add_special_tokens=False).input_ids

    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name,
                                                 dtype=torch.float32).eval()
    versions = {name: importlib.metadata.version(name)
                for name in ("torch", "transformers", "gguf", "kvpress")}
    return {
        "command": f"tools/record_real_references.py models/real/{path.name}",
        "versions": versions, "file": path.name, "sha256": sha256_of(path),
        "prompts": [answer(model, prompt, ids_of(prompt)) for prompt in PROMPTS],
        "chats": [chat(tokenizer, messages) for messages in CONVERSATIONS] if tokenizer else [],
        "kept": kept(model, ids_of(SAMPLE)[:N_KEPT_PROMPT]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="*", type=Path,
                        default=[ROOT / "models" / "real" / name for name in NAMES])
    parser.add_argument("--snapkv", default=str(ROOT / "build" / "release" / "bin" / "snapkv"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    for path in args.models:
        if path.name not in NAMES:
            parser.error(f"{path}: expected one of {', '.join(NAMES)}")
        write(record(path, args.snapkv), OUT / f"{NAMES[path.name]}.json")


if __name__ == "__main__":
    main()
