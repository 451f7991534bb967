# SPDX-License-Identifier: MIT
"""The Python package beside the built library: answers, documents, streams, errors, Ctrl-C.

usage: package_test.py MODEL   (SNAPKV_LIBRARY names the library, PYTHONPATH the package)
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import snapkv

MODEL = sys.argv.pop(1)
FILLER = "The grass is green and the sky is blue. " * 60
TEXT = FILLER + "The special number of Paris is 48213. " + FILLER
QUESTION = "\nThe special number of Paris is"


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = snapkv.Model(MODEL, n_threads=2, temperature=0, max_tokens=8)

    def test_info_and_tokens(self):
        self.assertEqual(self.model.info["architecture"], "llama")
        ids = self.model.tokenize("Paris is blue", add_special=False)
        self.assertEqual(self.model.detokenize(ids).strip(), "Paris is blue")

    def test_a_document_answers_by_every_way(self):
        document = self.model.prefill(TEXT)
        self.assertEqual(len(document), len(self.model.tokenize(TEXT)))
        answer = document.ask(QUESTION, kv_budget=128)
        self.assertIn("48213", answer)
        self.assertEqual("".join(document.ask(QUESTION, stream=True, kv_budget=128)), answer)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "book.kv")
            document.save(path)
            self.assertIn("48213", self.model.load_document(path).ask(QUESTION, kv_budget=128))

    def test_a_session_keeps_its_budget_and_continues(self):
        session = self.model.session(kv_budget=128)
        ids = self.model.tokenize(TEXT + QUESTION)
        session.prefill(ids)
        self.assertEqual(session.n_past, len(ids))
        self.assertEqual(len(session.positions(0, 0)), 128)
        self.assertGreater(session.stats["compression"], 1)
        answer = session.generate(stream=True, max_tokens=4, top_logprobs=0)
        text = "".join(answer)
        self.assertEqual(len(answer.ids), 4)
        self.assertEqual(answer.stop_reason, "length")
        self.assertTrue(all(p <= 0 for p in answer.logprobs))
        self.assertTrue(text)

    def test_logits_are_a_view(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        session = self.model.session(kv_policy="full")
        session.prefill(self.model.tokenize("The special number"))
        self.assertEqual(session.logits.shape, (self.model.info["n_vocab"],))
        best = int(numpy.argmax(session.logits))
        answer = session.generate(stream=True, max_tokens=1)
        "".join(answer)
        self.assertEqual(answer.ids[:1], [best])
        session.decode(best)
        self.assertEqual(session.logits.dtype, numpy.float32)

    def test_answers_follow_a_schema(self):
        session = self.model.session()
        session.prefill(self.model.tokenize("Yes or no?"))
        self.assertEqual(session.generate(grammar={"enum": ["yes"]}), '"yes"')

    def test_sessions_decode_together(self):
        ids = self.model.tokenize("The special number of Paris")
        first, second = self.model.session(), self.model.session()
        first.prefill(ids)
        second.prefill(ids)
        snapkv.decode([first, second], [5, 5])
        self.assertEqual(first.n_past, len(ids) + 1)
        self.assertEqual(second.n_past, len(ids) + 1)

    def test_what_is_closed_is_an_error_to_use(self):
        with snapkv.Model(MODEL, n_threads=1) as model:
            session = model.session()
            ids = model.tokenize("A short text.")
        with self.assertRaisesRegex(snapkv.UsageError, "the model is closed"):
            model.tokenize("x")
        session.prefill(ids)  # it keeps what it needs of the model
        self.assertEqual(session.n_past, len(ids))
        session.close()
        session.close()
        with self.assertRaisesRegex(snapkv.UsageError, "the session is closed"):
            session.prefill(ids)

    def test_errors_name_what_is_wrong(self):
        with self.assertRaisesRegex(snapkv.UsageError, "top_p is 2; it must be a number"):
            self.model.session(top_p=2)
        with self.assertRaisesRegex(snapkv.UsageError,
                                    "there is no option \"budget\".*did you mean kv_budget\\?$"):
            self.model.session(budget=3)
        with self.assertRaisesRegex(snapkv.UsageError, "list of at least one message"):
            self.model.chat_text([])
        with self.assertRaisesRegex(snapkv.Error, "no/such/model"):
            snapkv.Model("no/such/model.gguf")
        with self.assertRaisesRegex(snapkv.ContextError, r"has \d+ tokens, and the context is"):
            self.model.session(n_ctx=10).prefill(list(range(5, 30)))
        names = {option["name"] for option in snapkv.options()}
        self.assertLessEqual({"kv_budget", "temperature", "stop", "n_threads"}, names)

    def test_ids_are_not_cut_off(self):
        session = self.model.session()
        for many in ([2**32 + 5], [-2**40]):
            for call in (self.model.detokenize, session.prefill):
                with self.assertRaisesRegex(snapkv.UsageError, f"32 bits, not {many[0]}"):
                    call(many)
            with self.assertRaisesRegex(snapkv.UsageError, "32 bits"):
                self.model.is_end_of_generation(many[0])
        self.assertEqual(self.model.detokenize(b"\x05"), self.model.detokenize([5]))
        session.prefill([5])
        with self.assertRaisesRegex(snapkv.UsageError, "1 sessions and 2 tokens"):
            snapkv.decode([session], [5, 5])
        self.assertEqual(session.n_past, 1)

    def test_types_are_named(self):
        for wrong in (None, 5):
            with self.assertRaisesRegex(TypeError, type(wrong).__name__):
                self.model.tokenize(wrong)
            with self.assertRaisesRegex(TypeError, type(wrong).__name__):
                snapkv.Model(wrong)
        self.assertEqual(snapkv.Model(os.fsencode(MODEL)).info, self.model.info)

    def test_progress_and_ctrl_c_end_a_prefill(self):
        ids = self.model.tokenize(TEXT)
        session = self.model.session()
        with self.assertRaises(snapkv.Cancelled):
            session.prefill(ids, progress=lambda phase, fraction: False)
        self.assertEqual(session.n_past, 0)
        with self.assertRaises(KeyboardInterrupt):
            session.prefill(ids, progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
        self.assertEqual(session.n_past, 0)

    def test_a_missing_library_is_named(self):
        done = subprocess.run([sys.executable, "-c", "import snapkv"], check=False, text=True,
                              env={**os.environ, "SNAPKV_LIBRARY": "/no/such/library.so"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertRegex(done.stderr, "ImportError: /no/such/library.so.*README names")

    def test_other_threads_run_meanwhile(self):
        ran = threading.Event()
        thread = threading.Thread(target=ran.set)
        session = self.model.session()
        session.prefill(self.model.tokenize(TEXT),
                        progress=lambda *_: thread.start() if not thread.ident else None)
        thread.join()
        self.assertTrue(ran.is_set())


if __name__ == "__main__":
    unittest.main()
