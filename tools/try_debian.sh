#!/bin/sh
# tools/try_debian.sh [12|13|sid] [demo|test] [ROOT]: what a user of that Debian meets. Makes a minimal
# system in the folder ROOT with debootstrap (or uses that of an earlier run), clones the last commit of
# this repository into it, and runs `make demo` there, then `make test` if asked for. As root. ROOT is a
# temporary folder unless it is given. The output also goes to build/try-debian-RELEASE.log; its end is
# ctest's summary.
#   MIRROR=URL          Debian's mirror, instead of this system's
#   CCACHE_DIR=FOLDER   compile with ccache and this folder, for repeated runs
#   SNAPKV_TEST_DATA    as for make test
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian_root.sh"
release=${1:-13} goal=${2:-demo}
suite=$(suite_of "$release")
case "$goal" in demo | test) ;; *) echo "usage: $0 [12|13|sid] [demo|test] [ROOT]" >&2; exit 2 ;; esac
enter_namespace "$0" "$@"

use_root "${3:-}"
log=$here/../build/try-debian-$release.log
mkdir -p "$here/../build"

make_root "$suite" "$root"
mount_system "$root"
rm -rf "$root/snapkv"
git clone -q "$here/.." "$root/snapkv"
launcher="" data=""
if [ -n "${CCACHE_DIR:-}" ]; then
  mkdir -p "$CCACHE_DIR" "$root/ccache"
  mount --bind "$CCACHE_DIR" "$root/ccache"
  launcher="CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=/ccache
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
fi
if [ -n "${SNAPKV_TEST_DATA:-}" ]; then
  mkdir -p "$root/data"
  mount --bind "$SNAPKV_TEST_DATA" "$root/data"
  data=SNAPKV_TEST_DATA=/data
fi

# || return: a function that is asked for its status goes on after an error
try() {
  inside "$root" apt-get update -qq || return
  # what the first lines of the README take for granted
  inside "$root" apt-get install -y -qq --no-install-recommends make git ca-certificates \
    ${launcher:+ccache} >/dev/null || return
  inside "$root" sh -c '. /etc/os-release; echo "$PRETTY_NAME"; cat /etc/debian_version'
  # shellcheck disable=SC2086  # words
  inside "$root" env $launcher $data make -C /snapkv demo || return
  inside "$root" sh -c 'c++ --version | head -n 1; cmake --version | head -n 1
    dpkg-query -W -f "\${Package} \${Version}\n" libdnnl-dev libcpp-httplib-dev libfmt-dev'
  # shellcheck disable=SC2086
  [ "$goal" = demo ] || inside "$root" env $launcher $data make -C /snapkv test
}
{ if try 2>&1; then
  echo "Debian $release: make $goal has worked"
else
  echo "Debian $release: make $goal has failed"
fi; } | tee "$log"
tail -n 1 "$log" | grep -q "has worked"
