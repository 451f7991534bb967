# SPDX-License-Identifier: MIT
"""snapkv.lm_eval in the real lm-evaluation-harness: likelihoods are those of the logits, tasks of every
kind run, compression counts.

usage: lm_eval_test.py MODEL   (SNAPKV_LIBRARY names the library, PYTHONPATH the package)
Needs lm_eval; exits with 77 without it.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import lm_eval
    import numpy
    from lm_eval.api.instance import Instance
    from lm_eval.tasks import TaskManager

    from snapkv.lm_eval import SnapKVLM
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import snapkv

MODEL = sys.argv.pop(1)
FACTS = Path(__file__).resolve().parents[2] / "examples" / "facts.txt"
TEXT = FACTS.read_text() + ("\nQuestion: What is the secret number of Rome?\n"
                            "Answer: The secret number of Rome is")

TASKS = {
    "tiny_choice": """
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_choice: [" 48213", " 11111", " 90909"]
doc_to_target: 0
metric_list: [{metric: acc}]
""",
    "tiny_text": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}]
""",
    "tiny_answer": """
output_type: generate_until
doc_to_text: "{{text}}"
doc_to_target: "48213"
generation_kwargs: {until: ["."], max_gen_toks: 10}
filter_list: [{name: strip, filter: [{function: remove_whitespace}, {function: take_first}]}]
metric_list: [{metric: exact_match}]
""",
}


def request(kind, *arguments):
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def plain_likelihood(model, context, continuation):
    """The sum of log-probabilities, each from a prompt of its own."""
    total, greedy = 0.0, True
    for i, token in enumerate(continuation):
        session = model.session(kv_policy="full")
        session.prefill(context + continuation[:i])
        logits = session.logits.astype(numpy.float64)
        total += logits[token] - logits.max() - numpy.log(numpy.exp(logits - logits.max()).sum())
        greedy = greedy and logits.argmax() == token
    return total, greedy


class LmEval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = snapkv.Model(MODEL, n_threads=1, compute="f32")
        cls.full = SnapKVLM(cls.model, kv_policy="full", batch_size=2)

    def test_likelihoods_are_those_of_the_logits(self):
        pairs = [(TEXT[:300], " At noon the farmer"), (TEXT[:300], " A"), (TEXT[:300], " 48213"),
                 ("", "The grass is"), (TEXT[:40], " blue.")]
        found = self.full.loglikelihood([request("loglikelihood", *pair) for pair in pairs],
                                        disable_tqdm=True)
        for (context, continuation), (total, greedy) in zip(pairs, found):
            if context:
                ids = self.full._encode_pair(context, continuation)
            else:
                ids = ([self.full.prefix_token_id],
                       self.full.tok_encode(continuation, add_special_tokens=False))
            expected, its_greedy = plain_likelihood(self.model, *ids)
            self.assertAlmostEqual(total, expected, delta=1e-3)
            self.assertEqual(greedy, its_greedy)

    def test_rolling_is_the_sum_over_the_text(self):
        text = "The grass is green and the sky is blue."
        ids = self.full.tok_encode(text, add_special_tokens=False)
        expected, _ = plain_likelihood(self.model, [self.full.prefix_token_id], ids)
        found, = self.full.loglikelihood_rolling([request("loglikelihood_rolling", text)],
                                                 disable_tqdm=True)
        self.assertAlmostEqual(found, expected, delta=1e-3)
        short = SnapKVLM(self.model, kv_policy="full", max_length=6)
        windows, = short.loglikelihood_rolling([request("loglikelihood_rolling", text)],
                                               disable_tqdm=True)
        self.assertLess(windows, found)  # less context for most tokens

    def test_answers_end_where_they_should(self):
        answers = self.full.generate_until(
            [request("generate_until", TEXT, {"until": [end], "max_gen_toks": n})
             for end, n in ((".", 20), ("21", 20), ("never", 3))], disable_tqdm=True)
        self.assertEqual(answers[0].strip(), "48213")
        self.assertEqual(answers[1].strip(), "48")
        self.assertLess(len(answers[2].strip()), 5)

    def test_a_long_context_loses_its_beginning_loudly(self):
        short = SnapKVLM(self.model, max_length=50)
        with self.assertLogs("snapkv.lm_eval", "WARNING"):
            short.loglikelihood([request("loglikelihood", TEXT, " 48213")], disable_tqdm=True)
        with self.assertRaisesRegex(snapkv.UsageError, "max_length"):
            short.loglikelihood([request("loglikelihood", "a", TEXT)], disable_tqdm=True)

    def test_tasks_of_every_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "data.jsonl")
            data.write_text(json.dumps({"text": TEXT}) + "\n")
            for name, body in TASKS.items():
                Path(folder, f"{name}.yaml").write_text(
                    f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: "
                    f"{{test: {data}}}, cache_dir: {folder}}}\ntest_split: test\n{body}")
            results = {}
            for policy, budget in (("full", 1), ("snapkv-max", 64), ("streaming-llm", 48)):
                lm = SnapKVLM(self.model, kv_policy=policy,
                              kv_budget=None if policy == "full" else budget)
                out = lm_eval.simple_evaluate(
                    model=lm, tasks=list(TASKS), bootstrap_iters=0,
                    task_manager=TaskManager(include_path=folder, include_defaults=False))
                results[policy] = out["results"]
        for policy in ("full", "snapkv-max"):
            self.assertEqual(results[policy]["tiny_choice"]["acc,none"], 1)
            self.assertEqual(results[policy]["tiny_answer"]["exact_match,strip"], 1)
        self.assertEqual(results["streaming-llm"]["tiny_answer"]["exact_match,strip"], 0)
        self.assertGreater(results["full"]["tiny_text"]["word_perplexity,none"], 1)

    def test_the_command_knows_the_model(self):
        from lm_eval.api.registry import get_model
        self.assertIs(get_model("snapkv"), SnapKVLM)
        lm = SnapKVLM.create_from_arg_string(f"pretrained={MODEL},kv_budget=64,n_threads=1",
                                             {"batch_size": 1, "max_batch_size": None,
                                              "device": None})
        self.assertEqual(lm.max_length, 8192)


if __name__ == "__main__":
    unittest.main()
