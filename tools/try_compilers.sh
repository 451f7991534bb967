#!/bin/sh
# tools/try_compilers.sh 12|13|sid ROOT COMPILER...: whether the compilers of that Debian accept the code,
# warnings as errors, as in try_compilers.sh 13 /root/13 g++-13 clang++-19. Makes a minimal system in the
# folder ROOT with debootstrap (or uses that of an earlier run), installs the compilers and clones the last
# commit of this repository there, and compiles files without making objects. As root.
#   PARTS=N   each compiler gets every N-th file, another part for each; 4 unless it is set, 1 for all
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian_root.sh"
[ $# -ge 3 ] || { echo "usage: $0 12|13|sid ROOT COMPILER..." >&2; exit 2; }
suite=$(suite_of "$1")
enter_namespace "$0" "$@"
use_root "$2"
shift 2
parts=${PARTS:-4}

make_root "$suite" "$root"
mount_system "$root"
rm -rf "$root/snapkv"
git clone -q "$here/.." "$root/snapkv"
inside "$root" apt-get update -qq
inside "$root" apt-get install -y -qq --no-install-recommends make git ca-certificates >/dev/null
inside "$root" sh -c 'cd /snapkv && tools/install_packages.sh tests' >/dev/null
number=0 failed=""
for compiler in "$@"; do
  number=$((number + 1))
  case "$compiler" in
    g++-*) packages=$compiler ;;
    clang++-*) packages="clang-${compiler#clang++-} libomp-${compiler#clang++-}-dev" ;;
    *) echo "neither g++-N nor clang++-N: $compiler" >&2; exit 2 ;;
  esac
  # shellcheck disable=SC2086  # words
  inside "$root" apt-get install -y -qq --no-install-recommends $packages >/dev/null
  inside "$root" env CXX="$compiler" sh -c "cd /snapkv && cmake --preset dev -B build/$compiler \
    -DSNAPKV_WERROR=ON -DSNAPKV_PAGES=OFF -DSNAPKV_NODE=OFF >/dev/null &&
    tools/check_units.py build/$compiler --part $(((number - 1) % parts + 1))/$parts" &&
    echo "$compiler accepts the code" || failed="$failed $compiler"
done
[ -z "$failed" ] || { echo "not accepted by$failed"; exit 1; }
