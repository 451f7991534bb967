#!/bin/bash
# tools/wheel_libraries.sh FOLDER [JOBS]: builds, for `make wheel`, the libraries that Debian builds with more
# than the program uses, and installs them into FOLDER/usr: oneDNN with matrix products alone (Debian's: every
# primitive, for OpenCL too), libxml2 without ICU, libzip without encryption, and libcurl for HTTP alone. A library
# that is there is left alone.
#
# They come from Debian's source packages, by apt-get from this machine's own mirror, with its signatures
# checked; oneDNN is that of Debian 13 (3.7), whichever Debian this is.
# Needs Debian, and what tools/install_packages.sh wheel installs.
set -euo pipefail
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 FOLDER [JOBS]" >&2
  exit 2
fi
folder=$(mkdir -p "$1" && cd "$1" && pwd)
jobs=${2:-$(nproc)}
root=$(cd "$(dirname "$0")/.." && pwd)
onednn_release=trixie
work=$folder/work

id=$(. /etc/os-release && echo "${ID:-}")
if [ "$id" != debian ]; then
  echo "$0: expected Debian, whose source packages it builds; this is '$id'" >&2
  exit 1
fi
own_release=$(. /etc/os-release && echo "$VERSION_CODENAME")

# Lines of sources.list for the source packages of this machine's release, or of another one.
sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(SIGNED_BY)' 'Created-By: Packages' |
    awk -v own="$own_release" -v release="$1" '
      $3 != "main" || index($2, own) != 1 { next }
      release != own && $2 != own { next }
      { signed = $4 ~ /^\// ? "[signed-by=" $4 "] " : ""
        print "deb-src " signed $1 " " (release == own ? $2 : release) " main" }' | sort -u
}

# fetch_source PACKAGE RELEASE: unpacks the source package into $work/PACKAGE.
fetch_source() {
  mkdir -p "$work/lists-$2/partial" "$work/cache/archives/partial"
  sources "$2" >"$work/$2.list"
  if [ ! -s "$work/$2.list" ]; then
    echo "$0: apt-get knows no mirror of Debian's $own_release to fetch the sources of $1 from" >&2
    exit 1
  fi
  # the lists of another release expire, and a mirror may be a copy of some weeks ago
  local apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/$2.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$work/lists-$2" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root
    -o Acquire::Check-Valid-Until=false)
  rm -rf "${work:?}/$1" "$work/download"
  mkdir "$work/download"
  (cd "$work/download" && "${apt[@]}" update && "${apt[@]}" source --download-only "$1" &&
    dpkg-source --no-check -x ./*.dsc "$work/$1") >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log" >&2; exit 1; }  # apt-get has checked it
}

# build NAME option...: CMake's three steps, with $work/NAME as the source.
build() {
  local name=$1
  shift
  echo "building $name for the wheel" >&2
  { cmake -S "$work/$name" -B "$work/$name-build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_INSTALL_PREFIX="$folder/usr" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@" &&
    cmake --build "$work/$name-build" --parallel "$jobs" &&
    cmake --install "$work/$name-build"; } >"$work/$name.log" 2>&1 || { tail -40 "$work/$name.log" >&2; exit 1; }
  install -D -m 644 "$work/$name/debian/copyright" "$folder/usr/licenses/$name.txt"
  rm -rf "${work:?}/$name" "$work/$name-build"
}

is_there() { [ -e "$folder/usr/licenses/$1.txt" ]; }

# off PREFIX NAME...: CMake's options of these names, turned off.
off() {
  local prefix=$1 name
  shift
  for name in "$@"; do echo "-D$prefix$name=OFF"; done
}

if ! is_there libxml2; then
  fetch_source libxml2 "$own_release"
  mapfile -t options < <(off LIBXML2_WITH_ C14N CATALOG DEBUG DOCB FTP HTTP ICU LEGACY LZMA MODULES PROGRAMS PYTHON \
    REGEXPS SCHEMAS SCHEMATRON TESTS VALID WRITER XINCLUDE XPATH XPTR ZLIB)
  build libxml2 -DBUILD_SHARED_LIBS=OFF "${options[@]}"
fi
if ! is_there libzip; then
  fetch_source libzip "$own_release"
  mapfile -t options < <(
    off ENABLE_ COMMONCRYPTO GNUTLS MBEDTLS OPENSSL WINDOWS_CRYPTO BZIP2 LZMA
    off BUILD_ TOOLS REGRESS EXAMPLES DOC)
  # shared: a static one does not say that it needs zlib
  build libzip -DBUILD_SHARED_LIBS=ON "${options[@]}"
fi
if ! is_there curl; then
  fetch_source curl "$own_release"
  # without a place of certificates: the program looks for that of the system it runs on
  mapfile -t options < <(off "" BUILD_CURL_EXE BUILD_TESTING ENABLE_MANUAL USE_LIBIDN2 CURL_USE_LIBPSL CURL_USE_LIBSSH2)
  build curl -DBUILD_SHARED_LIBS=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none \
    "${options[@]}"
fi
if ! is_there onednn; then
  fetch_source onednn "$onednn_release"
  build onednn -DONEDNN_LIBRARY_TYPE=SHARED -DONEDNN_CPU_RUNTIME=OMP -DONEDNN_GPU_RUNTIME=NONE \
    -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_GRAPH=OFF \
    -DONEDNN_ENABLE_WORKLOAD=INFERENCE -DONEDNN_ENABLE_PRIMITIVE=MATMUL \
    -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF -DONEDNN_ARCH_OPT_FLAGS= \
    -DCMAKE_CXX_FLAGS="-ffunction-sections -fdata-sections" \
    -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--gc-sections,--as-needed,-z,defs,-s" \
    -DCMAKE_PROJECT_INCLUDE="$root/cmake/onednn_matmul.cmake"
fi
rm -rf "$work"
