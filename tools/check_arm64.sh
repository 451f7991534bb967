#!/bin/sh
# Compiles every file under src/ for ARM64 on another processor, checking syntax and types only.
# Needs g++-aarch64-linux-gnu and the libraries' headers (install_packages.sh); the host's headers
# will do, since a library's headers are the same for every processor. Not part of ctest.
set -eu
cd "$(dirname "$0")/.."
compiler=${CXX_ARM64:-aarch64-linux-gnu-g++}
command -v "$compiler" >/dev/null || {
  echo "$compiler not found: apt-get install g++-aarch64-linux-gnu" >&2
  exit 1
}

# only the headers that the project needs, because the host's C library is for another processor
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
for name in hwy fmt nlohmann oneapi dnnl.h dnnl.hpp dnnl_config.h dnnl_types.h dnnl_version.h \
            dnnl_debug.h pcre2.h utf8proc.h xxhash.h zstd.h zstd_errors.h sentencepiece_processor.h; do
  for folder in /usr/include /usr/include/*-linux-gnu; do
    if [ -e "$folder/$name" ]; then ln -sf "$folder/$name" "$headers/$name"; fi
  done
done

failed=0
for file in $(find src -name '*.cpp' -not -path 'src/backend/cuda/*' | sort); do
  "$compiler" -std=c++20 -O2 -fopenmp -fsyntax-only -Wall -Wextra -Wno-psabi -Wno-restrict \
    -Iinclude -Isrc -isystem "$headers" "$file" || { echo "FAILED $file" >&2; failed=1; }
done
[ "$failed" -eq 0 ] && echo "ARM64: every file under src/ compiles (but src/backend/cuda, which needs the CUDA toolkit)"
exit "$failed"
