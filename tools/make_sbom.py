#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the bill of materials (SPDX 2.3, JSON) of a build.

    tools/make_sbom.py --version 0.1.0 --found build/release/package/dependencies.txt \\
      [--pages web/package-lock.json] -o sbom.spdx.json

--found: the list that cmake/SnapkvDependencies.cmake writes, a line for each dependency: what needs it
(library, program, bench, tests), its name there and its version if it is known. --pages: the npm packages
of the HTML pages, where the build has them. SOURCE_DATE_EPOCH is the time of creation, if it is set.
"""
import argparse
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path

# name in SnapkvDependencies.cmake: (name, licence as SPDX writes it, package URL without version)
KNOWN = {
    "OpenMP": ("OpenMP runtime of the compiler", "GPL-3.0-or-later WITH GCC-exception-3.1", ""),
    "dnnl": ("oneDNN", "Apache-2.0", "pkg:github/oneapi-src/onednn"),
    "hwy": ("Highway", "Apache-2.0 OR BSD-3-Clause", "pkg:github/google/highway"),
    "fmt": ("fmt", "MIT", "pkg:github/fmtlib/fmt"),
    "nlohmann_json": ("nlohmann-json", "MIT", "pkg:github/nlohmann/json"),
    "Threads": ("C library of the system", "LGPL-2.1-or-later", ""),
    "Pcre2": ("PCRE2", "BSD-3-Clause", "pkg:github/pcre2project/pcre2"),
    "Utf8proc": ("utf8proc", "MIT AND Unicode-DFS-2015", "pkg:github/juliastrings/utf8proc"),
    "xxHash": ("xxHash", "BSD-2-Clause", "pkg:github/cyan4973/xxhash"),
    "CUDAToolkit": ("CUDA", "LicenseRef-CUDA", ""),
    "CLI11": ("CLI11", "BSD-3-Clause", "pkg:github/cliutils/cli11"),
    "spdlog": ("spdlog", "MIT", "pkg:github/gabime/spdlog"),
    "Libedit": ("libedit", "BSD-3-Clause", ""),
    "LibXml2": ("libxml2", "MIT", "pkg:github/gnome/libxml2"),
    "Libzip": ("libzip", "BSD-3-Clause", "pkg:github/nih-at/libzip"),
    "toml++": ("toml++", "MIT", "pkg:github/marzer/tomlplusplus"),
    "libstemmer": ("Snowball libstemmer", "BSD-3-Clause", "pkg:github/snowballstem/snowball"),
    "Httplib": ("cpp-httplib", "MIT", "pkg:github/yhirose/cpp-httplib"),
    "CURL": ("libcurl", "curl", "pkg:github/curl/curl"),
    "OpenSSL": ("OpenSSL", "Apache-2.0", "pkg:github/openssl/openssl"),
    "PrometheusCore": ("prometheus-cpp", "MIT", "pkg:github/jupp0r/prometheus-cpp"),
    "benchmark": ("Google Benchmark", "Apache-2.0", "pkg:github/google/benchmark"),
    "GTest": ("GoogleTest", "BSD-3-Clause", "pkg:github/google/googletest"),
    "absl": ("Abseil", "Apache-2.0", "pkg:github/abseil/abseil-cpp"),
    "SentencePiece": ("SentencePiece", "Apache-2.0", "pkg:github/google/sentencepiece"),
}
# licences that SPDX has no name for
OTHER_LICENSES = {
    "LicenseRef-CUDA": "End User License Agreement of NVIDIA's CUDA Toolkit: docs.nvidia.com/cuda/eula",
}
# what needs a dependency: how SPDX calls it, from the dependency to snapkv
RELATIONSHIPS = {"library": "RUNTIME_DEPENDENCY_OF", "program": "RUNTIME_DEPENDENCY_OF",
                 "bench": "DEV_DEPENDENCY_OF", "tests": "TEST_DEPENDENCY_OF",
                 "optional": "OPTIONAL_DEPENDENCY_OF"}
ROOT_ID = "SPDXRef-snapkv"


def package(spdx_id, name, version, license_id, url):
    """A package of the document. `url`: its package URL, without version; "" if it has none."""
    result = {"SPDXID": spdx_id, "name": name, "downloadLocation": "NOASSERTION",
              "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
              "licenseDeclared": license_id, "copyrightText": "NOASSERTION"}
    if version:
        result["versionInfo"] = version
    if url:
        locator = f"{url}@{version}" if version else url
        result["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER",
                                   "referenceType": "purl", "referenceLocator": locator}]
    return result


def spdx_id_of(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def found_packages(text):
    """(package, what needs it) for each line of the list of dependencies."""
    for number, line in enumerate(text.splitlines(), 1):
        scope, name, *version = line.split()
        if name not in KNOWN:
            sys.exit(f"line {number} of the dependencies: {name} is not in KNOWN of {Path(__file__).name}, "
                     "which has each dependency's licence")
        title, license_id, url = KNOWN[name]
        yield package(spdx_id_of(name), title, "".join(version), license_id, url), scope


def page_packages(lock):
    """The packages of a package-lock.json that end up in the pages."""
    for path, entry in lock["packages"].items():
        if not path or entry.get("dev"):
            continue
        name = path.rpartition("node_modules/")[2]
        yield package(spdx_id_of(f"npm-{name}"), name, entry["version"], entry["license"], f"pkg:npm/{name}"), "program"


def document(version, dependencies):
    """The SPDX document of `dependencies`: (package, what needs it)."""
    dependencies = list(dependencies)
    root = package(ROOT_ID, "snapkv", version, "MIT", "")
    root["primaryPackagePurpose"] = "APPLICATION"
    packages = [root] + [p for p, _ in dependencies]
    used = {p["licenseDeclared"] for p in packages}
    now = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    digest = hashlib.sha256(json.dumps([packages, now]).encode()).hexdigest()[:32]
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"snapkv-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/snapkv-{version}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
                         "creators": ["Tool: make_sbom.py"]},
        "packages": packages,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": ROOT_ID}] +
                         [{"spdxElementId": p["SPDXID"], "relationshipType": RELATIONSHIPS[scope],
                           "relatedSpdxElement": ROOT_ID} for p, scope in dependencies],
    }
    others = [{"licenseId": name, "extractedText": text}
              for name, text in OTHER_LICENSES.items() if name in used]
    if others:
        result["hasExtractedLicensingInfos"] = others
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--found", type=Path, required=True)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    dependencies = list(found_packages(given.found.read_text(encoding="utf-8")))
    if any(scope == "program" for _, scope in dependencies):  # pdftotext, a process of its own
        dependencies.append((package("SPDXRef-poppler", "poppler-utils", "", "GPL-2.0-or-later", ""),
                             "optional"))
    if given.pages:
        dependencies += page_packages(json.loads(given.pages.read_text(encoding="utf-8")))
    text = json.dumps(document(given.version, dependencies), indent=2)
    given.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
