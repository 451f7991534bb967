#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers.py [ROOT]: which folder may include which (docs/architecture.md), and how files open.

Prints one line per finding, `file:line: what (the rule)`, and exits 1 if there is any. Run by ctest
and by `make lint`; its own test is tests/packaging/check_layers_test.py.
"""
import re
import sys
from pathlib import Path

PUBLIC = "include/snapkv"
# the codes of weights' codebooks, which a device needs as arrays of its own
CODEBOOKS = [f"src/format/codebooks/iq{name}.inc" for name in ("1_s", "2_s", "2_xs", "2_xxs", "3_s", "3_xxs")]
# folder -> what it may include besides itself and the public headers: folders or single files.
# Subfolders may be included only if they are named.
MAY_INCLUDE = {
    PUBLIC: [],
    "src/base": [],
    "src/format": ["src/base"],
    "src/huggingface": ["src/base", "src/format"],
    "src/text/jinja": ["src/base"],
    "src/text/grammar": ["src/base"],
    "src/text": ["src/base", "src/format", "src/text/jinja"],
    "src/backend": ["src/base", "src/format/block_types.h"],
    "src/backend/ref": ["src/base", "src/backend", "src/format/block_types.h"],
    "src/backend/cpu": ["src/base", "src/backend", "src/format/block_types.h"],
    "src/backend/cuda": ["src/base", "src/backend", "src/format/block_types.h", *CODEBOOKS],
    "src/backend/measure": ["src/base", "src/backend"],
    "src/backend/partial": ["src/base", "src/backend", "src/backend/ref"],
    "src/cache": ["src/base", "src/backend"],
    "src/policy": ["src/base", "src/backend", "src/cache/selection.h"],
    "src/model": ["src/base", "src/format", "src/backend", "src/cache"],
    "src/engine/core": ["src/base", "src/format", "src/backend", "src/cache", "src/policy", "src/model"],
    "src/engine/files": ["src/base", "src/format", "src/huggingface", "src/backend", "src/cache", "src/model", "src/engine/core"],
    "src/engine/prefill": ["src/base", "src/format", "src/backend", "src/cache", "src/policy", "src/model", "src/engine/core",
                           "src/engine/files"],
    "src/engine/decode": ["src/base", "src/backend", "src/cache", "src/policy", "src/model", "src/engine/core"],
    "src/engine/plan": ["src/base", "src/backend", "src/backend/measure", "src/cache", "src/policy", "src/model", "src/engine/core",
                        "src/engine/prefill", "src/engine/decode"],
    "src/engine": ["src/base", "src/format", "src/huggingface", "src/text", "src/backend", "src/cache", "src/policy", "src/model",
                   "src/engine/core", "src/engine/files", "src/engine/prefill", "src/engine/decode", "src/engine/plan"],
    "src/chat": ["src/base"],
    "src/bindings": ["src/base", "src/policy", "src/engine/core/option_range.h"],
    "node/src": [],
    "app": ["src/base", "src/chat", "eval", "bench/machine_limits.h"],
    "app/library": ["app", "src/base", "src/bindings/c_api_support.h"],
    "eval": ["src/base"],
    "bench": ["src/base", "src/backend", "src/backend/cpu/onednn.h", "src/format/block_types.h", "src/format/codebooks.h",
              "src/format/ggml_types.h"],
}
# library -> (pattern of its headers, folders that may include them)
LIBRARIES = {
    "oneDNN": (r"(oneapi/)?dnnl", ["src/backend/cpu", "bench"]),
    "Highway": (r"hwy/", ["src/backend/cpu"]),
    "SIMD intrinsics": (r"\w*intrin\.h|arm_(neon|sve)\.h", ["src/backend/cpu"]),
    "CUDA": (r"cuda|cublas|cudnn|cub/|cooperative_groups|nv|mma\.h", ["src/backend/cuda"]),
    "OpenMP": (r"omp\.h", ["src/backend/cpu", "bench"]),
    "SentencePiece": (r"sentencepiece", []),
    "PCRE2": (r"pcre2", ["src/text"]),
    "utf8proc": (r"utf8proc", ["src/text", "src/text/jinja", "app"]),
    "fmt": (r"fmt/", [f for f in MAY_INCLUDE if f != PUBLIC]),
    "spdlog": (r"spdlog/", ["app", "eval", "bench"]),
    "CLI11": (r"CLI/", ["app", "eval", "bench"]),
    "toml++": (r"toml\+\+/", ["app"]),
    "libstemmer": (r"libstemmer\.h", ["eval", "app"]),
    "libedit": (r"histedit\.h", ["app"]),
    "xxHash": (r"xxhash\.h", ["src/base"]),
    "JSON": (r"nlohmann/", ["src/text", "src/text/grammar", "src/text/jinja", "src/huggingface", "src/chat", "src/bindings",
                            "app", "eval"]),
    "HTTP": (r"httplib\.h", ["app", "eval"]),
    "libcurl": (r"curl/", ["app"]),
    "libxml2": (r"libxml/", ["app"]),
    "libzip": (r"zip\.h", ["app"]),
    "Prometheus": (r"prometheus/", ["app"]),
    "OpenSSL": (r"openssl/", ["app"]),
    "Node-API": (r"napi\.h", ["node/src"]),
    "Google Benchmark": (r"benchmark/", ["bench"]),
    "GoogleTest": (r"g(test|mock)/", []),
}
# Patterns that only one file may contain, and why.
RESERVED = {
    re.compile(r"__builtin_cpu_supports|<cpuid\.h>"):
        ("src/backend/cpu/target/cpu_target.cpp",
         "asks the processor: --cpu-target would not be obeyed"),
    re.compile(r"\b(strto(d|f|ld)|sto(d|f|ld)|atof)\s*\("):
        ("src/base/parse_number.cpp", "reads numbers as the locale writes them: use read_double()"),
}
# Only a backend's own folder knows its devices and libraries; all others ask the registry.
DEVICE_WORDS = re.compile(r"cuda|avx|onednn|dnnl", re.IGNORECASE)
KNOW_DEVICES = (
    "src/backend/cpu/", "src/backend/cuda/",
    "src/bindings/c_api.cpp",  # the C API has a number for a device
)
SYSTEM = re.compile(r"(sys|net|netinet|arpa|linux|mach)/\w+\.h|\w+(\.h)?")  # <vector>, <sys/mman.h>
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
ENDINGS = {".h", ".cpp", ".cu", ".cuh"}
SPDX = "// SPDX-License-Identifier: MIT"


def folder_of(path):
    """The row of the table that `path` (relative, as text) belongs to, or None."""
    rows = [f for f in MAY_INCLUDE if path.startswith(f + "/")]
    return max(rows, key=len, default=None)


def resolve(root, path, name):
    """The project file that #include "name" in `path` refers to, relative to root, or None."""
    for base in ("src", "include", "app", "", str(Path(path).parent)):
        candidate = Path(base) / name
        if (root / candidate).is_file():
            return candidate.as_posix()
    return None


def check_include(root, path, bracket, name):
    """The problem with an include, or None."""
    folder = folder_of(path)
    target = resolve(root, path, name)
    if target is None:
        for library, (pattern, folders) in LIBRARIES.items():
            if re.match(pattern, name):
                if folder in folders:
                    return None
                allowed = ", ".join(folders) or "tests"
                return f"includes {name} ({library} headers: only in {allowed})"
        if bracket == '"':
            return f"includes {name} (no such file under src/, include/, app/ or the root)"
        if SYSTEM.fullmatch(name):
            return None
        return f"includes {name} (a library that LIBRARIES in tools/check_layers.py does not know)"
    allowed = [folder, PUBLIC] + MAY_INCLUDE[folder]
    if folder_of(target) in allowed or target in allowed:
        return None
    rule = ", ".join(dict.fromkeys([PUBLIC] + MAY_INCLUDE[folder]))
    return f"includes {target} ({folder} may include itself and {rule})"


def check_opening(path, lines):
    """Problems in the first lines of a file: (line number, text)."""
    if not lines or lines[0] != SPDX:
        yield 1, f"the first line must be {SPDX}"
    if not path.endswith((".h", ".cuh")):
        return
    if len(lines) < 2 or not lines[1].startswith("// "):
        yield 2, "a header's second line says what it is: // Name: ..."
    if "-inl." in path and any("HWY_TARGET_TOGGLE" in line for line in lines):
        return  # Highway includes these once per instruction set
    code = next((i for i, line in enumerate(lines, 1) if line and not line.startswith("//")), 1)
    if not lines or lines[code - 1] != "#pragma once":
        yield code, "#pragma once must come right after the opening comment"


def check_file(root, path):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    yield from check_opening(path, lines)
    if path.startswith("tests/"):
        return  # tests may include everything
    if folder_of(path) is None:
        yield 1, "this folder has no row in MAY_INCLUDE of tools/check_layers.py"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and (what := check_include(root, path, *match.groups())):
            yield number, what
        for pattern, (file, what) in RESERVED.items():
            if path != file and pattern.search(line):
                yield number, f"{what} (only {file} may)"
        if match is None and path.startswith("src/") and not path.startswith(KNOW_DEVICES) and (
                word := DEVICE_WORDS.search(line)):
            yield number, f"names {word.group()}: only a backend's own folder may"


def check_tree(root):
    """All findings below root, as they are printed."""
    findings = []
    for top in ("include", "src", "node", "app", "eval", "bench", "tests"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in ENDINGS and file.is_file():
                path = file.relative_to(root).as_posix()
                findings += [f"{path}:{n}: {what}" for n, what in check_file(root, path)]
    return findings


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / "src").is_dir():
        sys.exit(f"{root}: no src/ folder here")
    findings = check_tree(root)
    print("\n".join(findings) if findings else "includes and file openings: as they should be")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
