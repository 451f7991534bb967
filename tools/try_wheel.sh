#!/bin/sh
# tools/try_wheel.sh WHEELS [12|13|sid] [ROOT]: installs the wheel of the folder WHEELS (make wheel) into a
# fresh, minimal system of that Debian, which debootstrap makes in the folder ROOT, with Python and nothing else of
# what the wheel needs, and runs tools/check_wheel.py there. As root; ROOT may be one of an earlier run, and
# is a temporary folder unless it is given. The mirror is MIRROR, or that of this system.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian_root.sh"
if [ $# -lt 1 ] || [ $# -gt 3 ]; then
  echo "usage: $0 WHEELS [12|13|sid] [ROOT]" >&2
  exit 2
fi
suite=$(suite_of "${2:-13}")
enter_namespace "$0" "$@"
wheels=$1
use_root "${3:-}"

make_root "$suite" "$root"
mount_system "$root"
rm -rf "$root/snapkv"
mkdir -p "$root/snapkv/wheels"
cp "$wheels"/*.whl "$root/snapkv/wheels"
# what the check reads; no file of a build
(cd "$here/.." && cp --parents tools/check_wheel.py tools/pack_wheel.py python/README.md python/snapkv/*.py \
  models/needle.gguf examples/facts.txt "$root/snapkv")

inside "$root" apt-get update -qq
inside "$root" apt-get install -y -qq --no-install-recommends python3-venv ca-certificates >"$root/snapkv/log" 2>&1 ||
  { cat "$root/snapkv/log" >&2; exit 1; }
inside "$root" sh -c '. /etc/os-release; echo "$PRETTY_NAME"; cat /etc/debian_version; python3 --version'
inside "$root" python3 -B /snapkv/tools/check_wheel.py /snapkv/wheels
echo "Debian ${2:-13}: the wheel works"
