#!/bin/bash
# tools/wheel_libraries.sh FOLDER [JOBS]: builds, for `make wheel`, the libraries that Debian builds with more
# than the program uses: oneDNN with matrix products alone (Debian's: every primitive, for OpenCL too) and
# libxml2 without ICU. They come from Debian's source packages, by apt-get with this machine's own
# sources, and are installed into FOLDER/usr; a library that is there is left alone. Needs Debian or
# Ubuntu, and dpkg-source. oneDNN is that of Debian 13: of Debian 12's there are no sources everywhere.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
jobs=${2:-$(nproc)}
root=$(cd "$(dirname "$0")/.." && pwd)
onednn_release=trixie
work=$folder/work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"

# The machine's sources, as those of source packages; with a word, of that release of Debian.
sources() {
  local release=${1:-}
  cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -n -e 's/^Types:.*/Types: deb-src/' -e '/^#/!p' |
    { [ -z "$release" ] && cat || awk -v release="$release" '
        /^URIs:/ && !/security/ && !done { uris = $2; done = 1 }
        /^Signed-By:/ && signed == "" { signed = $0 }
        END { print "Types: deb-src\nURIs: " uris "\nSuites: " release "\nComponents: main\n" signed }'; }
}

# fetch_source PACKAGE [RELEASE]: unpacks the source package into $work/PACKAGE.
fetch_source() {
  sources "${2:-}" >"$work/$1.sources"
  local apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/$1.sources" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  rm -rf "${work:?}/$1" "$work/download"
  mkdir "$work/download"
  (cd "$work/download" && "${apt[@]}" source --download-only "$1" && dpkg-source --no-check -x ./*.dsc "$work/$1") \
    >"$work/$1.log" 2>&1 || { cat "$work/$1.log" >&2; exit 1; }
}

# build NAME option...: CMake's three steps, with $work/NAME as the source.
build() {
  local name=$1
  shift
  echo "building $name for the wheel" >&2
  { cmake -S "$work/$name" -B "$work/$name-build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_INSTALL_PREFIX="$folder/usr" -DCMAKE_INSTALL_LIBDIR=lib "$@" &&
    cmake --build "$work/$name-build" --parallel "$jobs" &&
    cmake --install "$work/$name-build"; } >"$work/$name.log" 2>&1 || { tail -40 "$work/$name.log" >&2; exit 1; }
  install -D -m 644 "$work/$name/debian/copyright" "$folder/usr/licenses/$name.txt"
}

if [ ! -e "$folder/usr/licenses/libxml2.txt" ]; then
  fetch_source libxml2
  off=""
  for part in C14N CATALOG DEBUG DOCB FTP HTTP ICU LEGACY LZMA MODULES PROGRAMS PYTHON REGEXPS SCHEMAS SCHEMATRON \
    TESTS VALID WRITER XINCLUDE XPATH XPTR ZLIB; do
    off="$off -DLIBXML2_WITH_$part=OFF"
  done
  # shellcheck disable=SC2086  # a list of words
  build libxml2 -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON $off
fi
if [ ! -e "$folder/usr/licenses/onednn.txt" ]; then
  fetch_source onednn "$onednn_release"
  build onednn -DONEDNN_LIBRARY_TYPE=SHARED -DONEDNN_CPU_RUNTIME=OMP -DONEDNN_GPU_RUNTIME=NONE \
    -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_GRAPH=OFF \
    -DONEDNN_ENABLE_WORKLOAD=INFERENCE -DONEDNN_ENABLE_PRIMITIVE=MATMUL \
    -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_ARCH_OPT_FLAGS= \
    -DCMAKE_CXX_FLAGS="-ffunction-sections -fdata-sections" \
    -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--gc-sections,--as-needed,-z,defs,-s" \
    -DCMAKE_PROJECT_INCLUDE="$root/cmake/onednn_matmul.cmake"
fi
