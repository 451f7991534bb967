#!/bin/sh
# tools/try_packages.sh PACKAGES [ROOT]: installs the Debian packages of the folder PACKAGES (make package)
# into a fresh, minimal Debian 12, which debootstrap makes in the folder ROOT, and runs the demo there. As
# root; ROOT may be one of an earlier run. The mirror is MIRROR, or that of this system.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/debian_root.sh"
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 PACKAGES [ROOT]" >&2
  exit 2
fi
enter_namespace "$0" "$@"
packages=$1
use_root "${2:-}"

make_root "$(suite_of 12)" "$root"
rm -rf "$root/packages"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"
mount_system "$root"  # the program finds what was installed with it by its own path

inside "$root" apt-get update -qq
inside "$root" sh -c 'apt-get install -y -qq --no-install-recommends /packages/snapkv_*.deb /packages/libsnapkv-c*.deb' \
  >"$root/packages/log" 2>&1 || { cat "$root/packages/log" >&2; exit 1; }
inside "$root" snapkv --version
for file in /usr/share/man/man1/snapkv.1.gz /usr/share/bash-completion/completions/snapkv \
  /usr/share/zsh/vendor-completions/_snapkv /usr/share/fish/vendor_completions.d/snapkv.fish \
  /usr/share/doc/snapkv/sbom.spdx.json; do
  # minimal images leave manual pages and documents out when they install
  inside "$root" dpkg -L snapkv | grep -qx "$file" || { echo "snapkv has no $file" >&2; exit 1; }
done
inside "$root" snapkv demo
