# SPDX-License-Identifier: MIT
"""The bill of materials of this build: every dependency that CMake looks for, with a licence, in the form
of SPDX 2.3. Arguments: the source folder, the build's list of dependencies, the version."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
FOUND = Path(sys.argv.pop(1))
VERSION = sys.argv.pop(1)
SCRIPT = ROOT / "tools" / "make_sbom.py"
LICENSES = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "GPL-2.0-only",
            "GPL-2.0-or-later", "GPL-3.0-or-later", "LGPL-2.1-or-later", "GCC-exception-3.1",
            "Unicode-DFS-2015", "Python-2.0", "curl", "LicenseRef-CUDA"}


def make(found, *arguments):
    """(document, text, error) of a list of dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        listed, output = Path(folder) / "found.txt", Path(folder) / "sbom.json"
        listed.write_text(found)
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--version", VERSION, "--found", listed,
                               "-o", output, *arguments], capture_output=True, text=True,
                              check=False, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        if done.returncode != 0:
            return None, None, done.stderr
        text = output.read_text()
        return json.loads(text), text, done.stderr


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.text, error = make(FOUND.read_text(), "--pages",
                                             ROOT / "web" / "package-lock.json")
        assert cls.document, error

    def test_the_document_has_what_spdx_requires(self):
        document = self.document
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["dataLicense"], "CC0-1.0")
        self.assertEqual(document["SPDXID"], "SPDXRef-DOCUMENT")
        self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
        self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        self.assertTrue(document["creationInfo"]["creators"])
        ids = [p["SPDXID"] for p in document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for p in document["packages"]:
            self.assertRegex(p["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for field in ("name", "downloadLocation", "licenseConcluded", "licenseDeclared",
                          "copyrightText"):
                self.assertTrue(p[field], p)
            self.assertIs(p["filesAnalyzed"], False)
        known = set(ids) | {"SPDXRef-DOCUMENT"}
        for r in document["relationships"]:
            self.assertLessEqual({r["spdxElementId"], r["relatedSpdxElement"]}, known)
        related = {r["spdxElementId"] for r in document["relationships"]}
        self.assertEqual(related, known - {"SPDXRef-snapkv"})

    def test_licences_are_names_of_spdx(self):
        for p in self.document["packages"]:
            words = set(re.split(r" (?:AND|OR|WITH) ", p["licenseDeclared"]))
            self.assertLessEqual(words, LICENSES, p["name"])

    def test_every_dependency_that_cmake_finds_is_in_it(self):
        looked_for = re.findall(r"^ *snapkv_find(?:_files)?\((?:library|program|bench|tests) ([\w+]+)",
                                (ROOT / "cmake/SnapkvDependencies.cmake").read_text(), re.M)
        self.assertGreater(len(looked_for), 15)
        everything = "".join(f"library {name} 1.0\n" for name in looked_for)
        document, _, error = make(everything)
        self.assertTrue(document, error)
        listed = {line.split()[1] for line in FOUND.read_text().splitlines()}
        ids = {p["SPDXID"] for p in self.document["packages"]}
        for name in listed:
            self.assertIn("SPDXRef-" + re.sub("[_+]", "-", name), ids)
        self.assertLessEqual({"dnnl", "hwy", "fmt", "xxHash", "Threads"}, listed)
        direct = re.findall(r"^ *find_package\((?!\$)(\w+)",
                            (ROOT / "cmake/SnapkvDependencies.cmake").read_text(), re.M)
        self.assertEqual(direct, [], "snapkv_find() finds and lists packages")

    def test_versions_are_those_found(self):
        versions = {p["SPDXID"]: p.get("versionInfo") for p in self.document["packages"]}
        self.assertEqual(versions["SPDXRef-snapkv"], VERSION)
        self.assertRegex(versions["SPDXRef-dnnl"], r"^\d+\.\d+")
        self.assertRegex(versions["SPDXRef-xxHash"], r"^0\.\d+\.\d+$")
        locators = {r["referenceLocator"] for p in self.document["packages"]
                    for r in p.get("externalRefs", [])}
        self.assertIn(f"pkg:github/fmtlib/fmt@{versions['SPDXRef-fmt']}", locators)

    def test_pages_bring_their_packages_and_no_tools(self):
        names = {p["name"] for p in self.document["packages"]}
        self.assertIn("echarts", names)
        self.assertNotIn("vite", names)
        without, _, _ = make(FOUND.read_text())
        self.assertNotIn("echarts", {p["name"] for p in without["packages"]})

    def test_the_same_build_gives_the_same_file(self):
        again = make(FOUND.read_text(), "--pages", ROOT / "web" / "package-lock.json")[1]
        self.assertEqual(again, self.text)

    def test_a_dependency_without_a_licence_is_an_error(self):
        document, _, error = make("library leftpad 1.0\n")
        self.assertIsNone(document)
        self.assertIn("line 1 of the dependencies: leftpad is not in KNOWN", error)

    def test_a_licence_without_a_name_has_its_text(self):
        document, _, _ = make("library CUDAToolkit 12.8\n")
        texts = document["hasExtractedLicensingInfos"]
        self.assertEqual([t["licenseId"] for t in texts], ["LicenseRef-CUDA"])
        self.assertTrue(texts[0]["extractedText"])


if __name__ == "__main__":
    unittest.main()
