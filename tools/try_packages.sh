#!/bin/sh
# tools/try_packages.sh PACKAGES [ROOT]: installs the Debian packages of the folder PACKAGES (make package)
# into a fresh, minimal Debian 12, which debootstrap makes in the folder ROOT, and runs the demo there. As
# root; ROOT may be one of an earlier run. The mirror is MIRROR, or that of this system.
set -eu
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "usage: $0 PACKAGES [ROOT]" >&2
  exit 2
fi
packages=$1
root=${2:-}
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "$0 needs root and debootstrap" >&2
  exit 1
fi
temporary=""
if [ -z "$root" ]; then
  root=$(mktemp -d)
  temporary=$root
fi
leave() {
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
  [ -z "$temporary" ] || rm -rf --one-file-system "$temporary"
}
trap leave EXIT
mirror=${MIRROR:-$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
  /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)}

[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase bookworm "$root" "$mirror" >/dev/null
rm -rf "$root/packages"
mkdir "$root/packages"
cp "$packages"/*.deb "$root/packages"

# the program finds what was installed with it by its own path
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$root" "$@"
}
inside apt-get update -qq
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/snapkv_*.deb /packages/libsnapkv-c*.deb' \
  >"$root/packages/log" 2>&1 || { cat "$root/packages/log" >&2; exit 1; }
inside snapkv --version
for file in /usr/share/man/man1/snapkv.1.gz /usr/share/bash-completion/completions/snapkv \
  /usr/share/zsh/vendor-completions/_snapkv /usr/share/fish/vendor_completions.d/snapkv.fish \
  /usr/share/doc/snapkv/sbom.spdx.json; do
  # minimal images leave manual pages and documents out when they install
  inside dpkg -L snapkv | grep -qx "$file" || { echo "snapkv has no $file" >&2; exit 1; }
done
inside snapkv demo
