#!/bin/sh
# tools/install_packages.sh [tests] [node] [clang] [models] [docs] [checks] [wheel]: installs the missing ones of the
# packages that the build needs, on Debian and Ubuntu. `tests` adds Node.js with npm, for the HTML pages,
# and Chromium, in which their tests open them; `node` adds Node.js with npm alone, for `make node`;
# `clang` adds Clang and its OpenMP runtime, for `make tsan` and `make fuzz`; `models` adds pip, for
# `make models`; `docs` adds Doxygen and Python's venv, for `make docs`; `checks` adds these and the
# programs that some tests ask, for `make test-python`; `wheel` adds
# dpkg-source and Python's venv, for `make wheel`. On other systems it names the libraries and leaves
# the rest to CMake.
set -eu
tests="" node="" clang="" models="" docs="" checks="" wheel=""
for word in "$@"; do
  case "$word" in
    tests) tests=yes node=yes ;;
    node) node=yes ;;
    clang) clang=yes ;;
    models) models=yes ;;
    docs) docs=yes ;;
    checks) docs=yes checks=yes ;;
    wheel) wheel=yes ;;
    *) echo "usage: $0 [tests] [node] [clang] [models] [docs] [checks] [wheel]" >&2; exit 2 ;;
  esac
done

# Debian 12's libdnnl-dev asks for OpenCL when CMake looks for it, without depending on a package that
# provides it
packages="g++ cmake ninja-build
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev libfmt-dev libspdlog-dev libcli11-dev libtomlplusplus-dev libedit-dev nlohmann-json3-dev
  libcpp-httplib-dev libssl-dev libcurl4-openssl-dev prometheus-cpp-dev libxml2-dev libzip-dev libstemmer-dev poppler-utils
  libpcre2-dev libutf8proc-dev libxxhash-dev libsentencepiece-dev libgtest-dev libbenchmark-dev python3"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  cat >&2 <<'END'
This is not Debian or Ubuntu: please install these yourself if the configure step misses one:
  a C++20 compiler with OpenMP (GCC 12, Clang 14 or later), CMake 3.25, Ninja, Python 3
  oneDNN 2.6 or 3 (OpenMP build; with OpenCL where its CMake files ask for it), Highway 1.0, fmt 9,
  spdlog 1.9, CLI11 2.1, toml++ 3.3, libedit 3.1, cpp-httplib 0.11 (compiled, with OpenSSL),
  libcurl 7.80, prometheus-cpp 1.0, libxml2 2.9, libzip 1.7, libstemmer 2.2, pdftotext of poppler, nlohmann-json 3.9,
  PCRE2 10.40, utf8proc 2.6, xxHash 0.8,
  SentencePiece 0.1.97, GoogleTest 1.12, Google Benchmark 1.7
  for the HTML pages and their tests: Node.js 18 with npm, Chromium
  for make tsan and make fuzz: Clang 14, LLVM's OpenMP runtime with its library Archer
  for make models: pip
  for make docs: Doxygen 1.9, Python's venv with pip
END
  exit 0
fi

[ -z "$clang" ] || packages="$packages clang libomp-dev"
# pip from another source will do
[ -z "$models" ] || python3 -m pip --version >/dev/null 2>&1 ||
  packages="$packages python3-pip ca-certificates"
[ -z "$docs" ] || packages="$packages doxygen python3-venv"
[ -z "$checks" ] || packages="$packages lintian openssl systemd"
[ -z "$wheel" ] || packages="$packages dpkg-dev binutils python3-venv"
if [ -n "$node" ]; then
  # npm from another source (nodejs.org, nodesource) will do
  command -v npm >/dev/null || packages="$packages nodejs npm ca-certificates"
fi
if [ -n "$tests" ]; then
  browser=""
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then browser=$name; fi
  done
  if [ -n "$browser" ]; then
    :
  elif grep -qs '^ID=ubuntu' "${OS_RELEASE:-/etc/os-release}"; then
    echo "Ubuntu has no package chromium: the tests that open pages in a browser are skipped" >&2
  else
    packages="$packages chromium"
  fi
fi

as_root=""
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  # shellcheck disable=SC2086  # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    $missing >"$log" 2>&1
}
# Installs those of the packages in $1 that are missing.
install_missing() {
  missing=""
  for package in $1; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=""
    [ "$status" = installed ] || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  echo "installing:$missing" >&2
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "neither root nor sudo: please install$missing" >&2
      exit 1
    fi
    as_root="sudo"
  fi
  # the package lists may be missing or old: fetch them if the first attempt fails
  if ! install; then
    $as_root apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    install || { cat "$log" >&2; exit 1; }
  fi
}
install_missing "$packages"
# SentencePiece from 0.2.1 on includes Abseil's headers, and its package does not depend on them
if grep -qs '<absl/' /usr/include/sentencepiece_processor.h; then install_missing libabsl-dev; fi
