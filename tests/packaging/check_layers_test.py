# SPDX-License-Identifier: MIT
"""Tests tools/check_layers.py on small trees: every rule must be able to fail. Run by ctest."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402

SPDX = check_layers.SPDX + "\n"
HEADER = SPDX + "// Thing: a test's.\n#pragma once\n"


class Layers(unittest.TestCase):
    def findings(self, files):
        """Findings in a tree of files (path -> text), beside headers that others include."""
        tree = {f: HEADER for f in (
            "include/snapkv/engine.h", "src/base/error.h", "src/format/gguf.h",
            "src/format/block_types.h", "src/backend/ops.h", "src/backend/ref/ref_backend.h",
            "src/backend/cpu/cpu_backend.h", "src/cache/selection.h", "src/cache/kv_cache.h",
            "src/policy/policy.h", "src/model/config.h", "src/engine/session.h",
            "src/engine/files/cache_file.h", "src/engine/prefill/kv_prefix.h",
            "src/engine/plan/memory_plan.h", "eval/task.h")}
        tree.update(files)
        with tempfile.TemporaryDirectory() as folder:
            for path, text in tree.items():
                file = Path(folder) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return check_layers.check_tree(Path(folder))

    def includes(self, path, name):
        """Findings when `path` includes `name` (with its quotes) on line 2."""
        return self.findings({path: SPDX + f"#include {name}\n"})

    def assert_bad(self, path, name, *words):
        found = self.includes(path, name)
        self.assertEqual(len(found), 1, f"{path} includes {name}: {found}")
        self.assertTrue(found[0].startswith(f"{path}:2: includes "), found)
        for word in words:
            self.assertIn(word, found[0])

    def assert_good(self, path, name):
        self.assertEqual(self.includes(path, name), [], f"{path} includes {name}")

    def test_lower_folders_do_not_know_higher_ones(self):
        for path, name in [
                ("src/base/x.cpp", '"format/gguf.h"'), ("src/format/x.cpp", '"backend/ops.h"'),
                ("src/text/x.cpp", '"model/config.h"'), ("src/backend/x.cpp", '"cache/kv_cache.h"'),
                ("src/backend/x.cpp", '"format/gguf.h"'), ("src/cache/x.cpp", '"policy/policy.h"'),
                ("src/policy/x.cpp", '"cache/kv_cache.h"'),
                ("src/policy/x.cpp", '"model/config.h"'),
                ("src/model/x.cpp", '"engine/session.h"'),
                ("src/model/x.cpp", '"policy/policy.h"'),
                ("src/engine/core/x.cpp", '"engine/files/cache_file.h"'),
                ("src/engine/prefill/x.cpp", '"engine/plan/memory_plan.h"'),
                ("src/engine/decode/x.cpp", '"engine/prefill/kv_prefix.h"'),
                ("app/cli/x.cpp", '"engine/session.h"'), ("eval/x.cpp", '"backend/ops.h"'),
                ("bench/x.cpp", '"engine/session.h"'), ("bench/x.cpp", '"eval/task.h"'),
                ("include/snapkv/x.cpp", '"base/error.h"')]:
            self.assert_bad(path, name, "may include itself and include/snapkv")

    def test_one_file_asks_the_processor(self):
        line = SPDX + 'bool x() { return __builtin_cpu_supports("avx2"); }\n'
        found = self.findings({"src/backend/cpu/x.cpp": line})
        self.assertEqual(len(found), 1, found)
        self.assertIn("asks the processor", found[0])
        self.assertEqual(self.findings({"src/backend/cpu/target/cpu_target.cpp": line}), [])

    def test_the_table_allows(self):
        for path, name in [
                ("src/base/x.cpp", '"snapkv/engine.h"'), ("src/text/x.cpp", '"format/gguf.h"'),
                ("src/backend/cpu/x.cpp", '"format/block_types.h"'),
                ("src/backend/cpu/x.cpp", '"backend/ops.h"'),
                ("src/policy/x.cpp", '"cache/selection.h"'),
                ("src/model/x.cpp", '"cache/kv_cache.h"'),
                ("src/engine/x.cpp", '"policy/policy.h"'), ("app/cli/x.cpp", '"base/error.h"'),
                ("app/cli/x.cpp", "<snapkv/engine.h>"),
                ("app/cli/x.cpp", '"eval/task.h"'), ("bench/x.cpp", '"backend/ops.h"')]:
            self.assert_good(path, name)

    def test_backends_do_not_know_each_other(self):
        self.assert_bad("src/backend/ref/x.cpp", '"backend/cpu/cpu_backend.h"')
        self.assert_bad("src/backend/cpu/x.cpp", '"backend/ref/ref_backend.h"')
        self.assert_bad("src/backend/cuda/x.cu", '"backend/cpu/cpu_backend.h"')
        self.assert_bad("src/model/x.cpp", '"backend/cpu/cpu_backend.h"')
        self.assert_bad("src/backend/ops.cpp", '"backend/cpu/cpu_backend.h"')
        self.assert_bad("src/backend/registry.cpp", '"backend/cpu/cpu_backend.h"')
        self.assert_good("src/backend/cpu/part/x.cpp", '"backend/cpu/cpu_backend.h"')

    def test_only_backends_name_devices(self):
        for line in ("// with CUDA", "bool has_avx2;", "// what oneDNN does"):
            found = self.findings({"src/engine/x.cpp": SPDX + line + "\n"})
            self.assertEqual(len(found), 1, found)
            self.assertIn("only a backend's own folder may", found[0])
            self.assertEqual(self.findings({"src/backend/cpu/x.cpp": SPDX + line + "\n"}), [])
            self.assertEqual(self.findings({"app/cli/x.cpp": SPDX + line + "\n"}), [])

    def test_angle_brackets_hide_nothing(self):
        self.assert_bad("src/base/x.cpp", "<format/gguf.h>")

    def test_libraries_stay_in_their_folders(self):
        self.assert_bad("src/model/x.cpp", "<dnnl.hpp>", "oneDNN", "src/backend/cpu")
        self.assert_bad("src/backend/x.cpp", "<oneapi/dnnl/dnnl.hpp>", "oneDNN")
        self.assert_bad("src/policy/x.cpp", '"hwy/highway.h"', "Highway")
        self.assert_bad("src/backend/cpu/x.cpp", "<cuda_runtime.h>", "CUDA")
        self.assert_bad("src/engine/x.cpp", "<nlohmann/json.hpp>", "JSON")
        self.assert_bad("bench/x.cpp", "<httplib.h>", "HTTP")
        self.assert_bad("src/engine/x.cpp", "<sentencepiece_processor.h>", "SentencePiece")
        self.assert_bad("include/snapkv/x.cpp", "<fmt/core.h>", "fmt")
        self.assert_bad("src/bindings/x.cpp", "<napi.h>", "Node-API", "node/src")
        self.assert_bad("node/src/x.cpp", '"base/error.h"', "may include itself and include/snapkv")
        self.assert_bad("app/cli/x.cpp", "<gtest/gtest.h>", "only in tests")
        self.assert_bad("src/engine/x.cpp", "<boost/any.hpp>", "does not know")
        for path, name in [
                ("src/backend/cpu/x.cpp", "<dnnl.hpp>"),
                ("src/backend/cpu/x.cpp", '"hwy/highway.h"'),
                ("src/backend/cuda/x.cu", "<cuda_runtime.h>"),
                ("app/cli/x.cpp", "<nlohmann/json.hpp>"),
                ("src/text/x.cpp", "<pcre2.h>"), ("node/src/x.cpp", "<napi.h>"),
                ("src/base/x.cpp", "<fmt/core.h>"),
                ("src/format/x.cpp", "<sys/mman.h>"), ("src/model/x.cpp", "<vector>"),
                ("src/engine/x.cpp", "<unistd.h>")]:
            self.assert_good(path, name)

    def test_missing_files_and_unknown_folders(self):
        self.assert_bad("src/engine/x.cpp", '"engine/gone.h"', "no such file")
        self.assertIn("no row", self.findings({"src/new/x.cpp": SPDX})[0])

    def test_openings(self):
        bad = {
            "src/base/a.cpp": "#include <vector>\n",
            "tests/base/b_test.cpp": "// a test\n",
            "src/base/c.h": SPDX + "// C: a test's.\n#include <vector>\n",
            "src/base/d.h": SPDX + "#pragma once\n",
            "src/backend/cpu/e-inl.h": SPDX + "// E: a test's.\n#include <vector>\n",
        }
        for path, text in bad.items():
            found = self.findings({path: text})
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(path + ":"), found)
        toggled = SPDX + "// F: a test's.\n#if defined(F) == defined(HWY_TARGET_TOGGLE)\n#endif\n"
        self.assertEqual(self.findings({"src/backend/cpu/f-inl.h": toggled}), [])


if __name__ == "__main__":
    unittest.main()
