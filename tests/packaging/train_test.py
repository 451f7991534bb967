# SPDX-License-Identifier: MIT
"""Tests tools/train: GGUF files, riddles, sequences, attention and one training step. Run by ctest.

Exits 77 (skipped) with a line that says so where torch, numpy or sentencepiece are missing."""
import argparse
import contextlib
import io
import multiprocessing
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "train"))
sys.dont_write_bytecode = True
try:
    import numpy as np
    import sentencepiece  # noqa: F401
    import torch
except ImportError as error:
    print(f"SKIPPED: {error}; on Debian: apt-get install python3-torch python3-sentencepiece")
    sys.exit(77)

import muon  # noqa: E402
import riddles  # noqa: E402
import train  # noqa: E402
from attention import attend  # noqa: E402
from gguf import read_gguf, write_gguf  # noqa: E402
from model import Llama  # noqa: E402
from samples import ANSWER, FIRST, Samples  # noqa: E402
from tokenizer import Tokenizer  # noqa: E402

MODEL = str(ROOT / "models" / "needle.gguf")
METADATA, TENSORS = read_gguf(MODEL)
SAMPLES = Samples(Tokenizer(METADATA), train.GRAMMAR, seed=3, n_paragraphs=300)
torch.set_num_threads(1)


def team_work(args, rank, results):
    team = train.Team(args, rank)
    gradients = [torch.full((3,), 1.0 + rank), torch.tensor([10.0 * rank])]
    team.average(gradients)
    weights = torch.full((2,), float(rank))
    team.same([weights])
    results.put(([t.tolist() for t in gradients], team.agree(rank, 7 + rank), weights.tolist()))
    torch.distributed.destroy_process_group()


class Gguf(unittest.TestCase):
    def test_a_written_file_reads_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/copy.gguf"
            write_gguf(path, METADATA, TENSORS)
            metadata, tensors = read_gguf(path)
        self.assertEqual(list(metadata), list(METADATA))
        for key, value in METADATA.items():
            np.testing.assert_array_equal(metadata[key], value, key)
        for name, array in TENSORS.items():
            np.testing.assert_array_equal(tensors[name], array, name)

    def test_a_cut_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "cut.gguf"
            path.write_bytes(Path(MODEL).read_bytes()[:-1000])
            with self.assertRaisesRegex(ValueError, "file ends"):
                read_gguf(str(path))


class Tokens(unittest.TestCase):
    def test_text_comes_back(self):
        text = "\nThe secret number of Paris is 48213.\n\nQuestion: na\u00efve?\n"
        self.assertEqual(SAMPLES.tokenizer.sp.decode(SAMPLES.tokenizer.next(text)), text)

    def test_pieces_make_the_tokens_of_the_whole(self):
        parts = ["The baker went home.\n", "\nThe secret number of Rome is 12345.\n", "The fox ran.\n",
                 "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is",
                 " 12345.\n"]
        tok = SAMPLES.tokenizer
        ids = tok.begin(parts[0]) + [i for part in parts[1:] for i in tok.next(part)]
        self.assertEqual(ids, tok.begin("".join(parts)))


class Sequences(unittest.TestCase):
    def text(self, ids):
        return SAMPLES.tokenizer.sp.decode(ids[1:])

    def test_every_number_that_is_asked_for_stands_before_the_question(self):
        asked = 0
        for _ in range(30):
            text = self.text(SAMPLES.training(700)[0])
            for found in re.finditer(r"Answer: The secret numbers? of ([\w, ]+?) (?:is|are) ([\d, and]+)\.\n", text):
                names = re.split(", | and ", found[1])
                numbers = re.split(", | and ", found[2])
                facts = re.findall(r"\nThe secret number of (\w+) is (\d+)\.\n", text[:found.start()])
                expected = ([n for name in names for n in dict(facts)[name].split()] if len(names) > 1
                            else [number for name, number in facts if name == names[0]])
                self.assertEqual(numbers, expected, text)
                asked += 1
        self.assertGreater(asked, 30)

    def test_the_loss_is_on_the_answers(self):
        ids, weights = SAMPLES.training(600)
        answers = self.text([0] + [i for i, w in zip(ids, weights) if w >= ANSWER])
        self.assertTrue(answers.endswith("\n"), answers)
        self.assertNotIn("Question", answers)

    def test_length_is_as_asked(self):
        for n_tokens in (256, 1024):
            lengths = sorted(len(SAMPLES.training(n_tokens)[0]) for _ in range(15))
            self.assertLessEqual(lengths[-1], 1.1 * n_tokens)
            self.assertGreaterEqual(lengths[7], 0.9 * n_tokens)  # few end without a question

    def test_a_drill_asks_for_each_line_once(self):
        for _ in range(20):
            ids, weights = SAMPLES.drill_list(6)
            lines = self.text([0] + ids).splitlines()
            half = len(lines) // 2
            self.assertEqual(sorted(lines[:half]), sorted(lines[half:]))
            answers = [i for i, w in zip(ids, weights) if w >= ANSWER]
            self.assertEqual(answers.count(SAMPLES.tokenizer.newline), half)
            self.assertEqual(len(set(line.split(" is ")[0].split(" = ")[0].split(": ")[0].split(" -> ")[0]
                                     for line in lines[:half])), half, lines)
            self.assertEqual(len(SAMPLES.drill(300)[0]), 300)

    def test_the_first_token_of_each_value_weighs_most(self):
        tok = SAMPLES.tokenizer
        pieces = [tok.sp.id_to_piece(i) for i in tok.next(" 12, 345 and 6.\n")]
        weights = SAMPLES.answer_weights(tok.next(" 12, 345 and 6.\n"))
        self.assertEqual([p for p, w in zip(pieces, weights) if w == FIRST and p.isdigit()], ["1", "3", "6"])
        self.assertEqual([p for p, w in zip(pieces, weights) if w == ANSWER and p.isdigit()], ["2", "4", "5"])

    def test_sentences_of_rulers_needles_stand_inside_paragraphs(self):
        samples = Samples(SAMPLES.tokenizer, train.GRAMMAR, None, 5, {"magic": 1.0}, 300)
        texts = [self.text(samples.training(400)[0]) for _ in range(20)]
        self.assertTrue(any(re.search(r"\. One of the special magic \w+s for [\w-]+ is: [\w-]+\.", t) for t in texts))
        self.assertTrue(any(re.search(r"\nOne of the special magic \w+s for [\w-]+ is: [\w-]+\.\n", t) for t in texts))

    def test_second_next_tokens_count_in_answers(self):
        ids, rows, targets, weights, ahead_targets, ahead_weights = SAMPLES.batch(300, 12)
        n = ids.shape[1]
        for b in range(12):
            for i in range(rows.shape[1]):
                row = rows[b, i]
                if row + 1 < n:
                    self.assertEqual(targets[b, i], ids[b, row + 1])
                if ahead_weights[b, i] == 0:
                    continue
                self.assertGreaterEqual(ahead_weights[b, i], ANSWER)
                if row + 2 < n:
                    self.assertEqual(ahead_targets[b, i], ids[b, row + 2])
        self.assertGreater((ahead_weights == FIRST).sum(), 6)  # first tokens of values

    def test_the_usual_needle_is_never_trained_on(self):
        for _ in range(2000):
            facts, _ = riddles.text_riddle(SAMPLES.random, 1)
            self.assertNotIn(riddles.CLASSIC, facts[0])

    def test_prompts_hold_their_answer(self):
        for kind, n_facts in (("single", 1), ("multi-key", 4), ("multi-value", 3), ("multi-query", 4),
                              ("text", 1), ("variables", 3)):
            prompt, answer = SAMPLES.test(kind, 500, 0.5, n_facts, random.Random(1))
            self.assertLessEqual(len(prompt), 500, kind)
            text, answer = self.text(prompt), SAMPLES.tokenizer.sp.decode(answer).strip(" .\n")
            for part in re.split(", | and ", answer) if kind.startswith("multi") else [answer.split()[-1]]:
                self.assertIn(part, text, kind)


class Model(unittest.TestCase):
    def test_blocked_attention_and_its_gradient(self):
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 300, n, 8, requires_grad=True) for n in (4, 2, 2))
        for rows in (None, torch.sort(torch.randint(0, 300, (2, 70)), 1)[0]):
            used = q if rows is None else q[:, :70]
            places = torch.arange(300).expand(2, -1) if rows is None else rows
            keys, values = (t.repeat_interleave(2, 2).transpose(1, 2) for t in (k, v))
            scores = used.transpose(1, 2) @ keys.transpose(2, 3) / 8 ** 0.5
            hidden = torch.arange(300)[None, None] > places[..., None]
            plain = (scores.masked_fill(hidden[:, None], -1e30).softmax(-1) @ values).transpose(1, 2)
            blocked = attend(used, k, v, rows)
            torch.testing.assert_close(blocked, plain, rtol=1e-4, atol=1e-5)
            d_out = torch.randn_like(plain)
            for a, b in zip(torch.autograd.grad(blocked, (q, k, v), d_out),
                            torch.autograd.grad(plain, (q, k, v), d_out)):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    def test_inserted_layers_change_nothing_and_files_come_back(self):
        model, ids = Llama(METADATA, TENSORS), torch.tensor([SAMPLES.training(100)[0]])
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            before, n_layer = model(ids), len(model.blk)
            model.insert_layers([2, 4])
            self.assertEqual(len(model.blk), n_layer + 2)
            torch.testing.assert_close(model(ids), before)
            model.save_gguf(f"{folder}/more.gguf", 4096)
            self.assertNotIn("ahead.weight", read_gguf(f"{folder}/more.gguf")[1])
            again = Llama.from_gguf(f"{folder}/more.gguf")
            self.assertEqual(again.metadata["llama.context_length"], 4096)
            torch.testing.assert_close(again(ids), before, rtol=1e-2, atol=1e-2)

    def test_the_shipped_model_answers(self):
        model = Llama(METADATA, TENSORS)
        self.assertEqual(train.score(model, SAMPLES, "single", 400, 1, 3, "cpu", "f32"), 1)

    def test_the_average_of_models(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"{folder}/{i}.gguf" for i in range(3)]
            for i, path in enumerate(paths):
                write_gguf(path, METADATA, {n: (t.astype(np.float32) + i).astype(np.float32)
                                            for n, t in TENSORS.items()})
            train.main(["average", f"{folder}/mean.gguf", *paths])
            _, mean = read_gguf(f"{folder}/mean.gguf")
            for name, t in TENSORS.items():
                np.testing.assert_allclose(mean[name], t.astype(np.float32) + 1, rtol=1e-5, atol=1e-5)
            write_gguf(paths[2], METADATA, {"token_embd.weight": TENSORS["token_embd.weight"]})
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(train.main(["average", f"{folder}/mean.gguf", *paths]), 1)
            self.assertIn("2.gguf", said.getvalue())

    def test_looking_ahead_teaches_the_model_or_only_its_matrix(self):
        model, batch = Llama(METADATA, TENSORS), SAMPLES.batch(200, 2)
        plain, nll = train.loss_of(model, batch, "cpu")
        with_ahead, same = train.loss_of(model, batch, "cpu", 0.3)
        self.assertGreater(with_ahead.item(), plain.item() + 0.1)  # it has not learned that yet
        self.assertEqual(nll, same)
        gradients = []
        for ahead, alone in ((0.0, False), (0.3, True), (0.3, False)):
            model.zero_grad()
            train.loss_of(model, batch, "cpu", ahead, alone)[0].backward()
            gradients.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
        none, matrix, all_of_it = gradients
        self.assertNotIn("ahead", none)
        self.assertGreater(matrix["ahead"].abs().max().item(), 0)
        for name in ("token_embd", "blk.2.attn_q"):
            torch.testing.assert_close(matrix[name], none[name])
            self.assertGreater((all_of_it[name] - none[name]).abs().max().item(), 0)

    def test_muon_steps_are_nearly_orthogonal(self):
        torch.manual_seed(1)
        for shape in ((24, 40), (40, 24)):
            singular = torch.linalg.svdvals(muon.orthogonal(torch.randn(shape)).float())
            self.assertTrue(0.5 < singular.min() and singular.max() < 1.3, singular)

    def test_processes_average_their_gradients_and_follow_the_first(self):
        with tempfile.TemporaryDirectory() as folder:
            args = argparse.Namespace(out=folder, processes=2)
            context = multiprocessing.get_context("fork")
            results = context.Queue()
            other = context.Process(target=team_work, args=(args, 1, results))
            other.start()
            team_work(args, 0, results)
            found = [results.get(timeout=60) for _ in range(2)]
            other.join()
        self.assertEqual(found, [([[1.5, 1.5, 1.5], [5.0]], [0.0, 7.0], [0.0, 0.0])] * 2)

    def test_two_processes_train(self):
        with tempfile.TemporaryDirectory() as folder:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                train.main(["train", "--start", MODEL, "--out", folder, "--tokens-per-step", "512", "--steps", "3",
                            "--threads", "1", "--device", "cpu", "--paragraphs", "100", "--processes", "2",
                            "--log-every", "1"])
            self.assertEqual(re.findall(r"^step (\d+)", output.getvalue(), re.M), ["1", "2", "3"])
            trained = read_gguf(f"{folder}/last.gguf")[1]
        self.assertTrue(all(np.isfinite(array.astype(np.float32)).all() for array in trained.values()))
        self.assertTrue(np.any(trained["blk.0.attn_q.weight"] != TENSORS["blk.0.attn_q.weight"]))

    def test_training_stops_and_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["train", "--start", MODEL, "--out", folder, "--tokens-per-step", "256",
                         "--log-every", "1", "--threads", "1", "--device", "cpu", "--paragraphs", "100"]
            steps = []
            for limit in ("2", "4"):
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    train.main(arguments + ["--steps", limit])
                steps += [int(n) for n in re.findall(r"^step (\d+)", output.getvalue(), re.M)]
            self.assertEqual(steps, [1, 2, 3, 4])
            self.assertTrue(Path(folder, "last.gguf").exists())
            saved = torch.load(f"{folder}/last.pt")
            del saved["model"]["ahead"]
            torch.save(saved, f"{folder}/last.pt")
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(train.main(arguments), 1)
            self.assertIn("older", said.getvalue())


if __name__ == "__main__":
    unittest.main()
