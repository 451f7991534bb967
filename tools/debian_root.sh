# Minimal Debian systems to try things in; sourced by try_*.sh, which run as root
# in a mount namespace of their own, so that nothing stays mounted when they end.

# enter_namespace SCRIPT ARGUMENT...: runs the script again in such a namespace, once.
enter_namespace() {
  if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "$1 needs root and debootstrap" >&2
    exit 1
  fi
  [ -n "${SNAPKV_IN_NAMESPACE:-}" ] || SNAPKV_IN_NAMESPACE=yes exec unshare --mount "$@"
}

# The name of a release: 12, 13 or sid.
suite_of() {
  case "$1" in
    12) echo bookworm ;;
    13) echo trixie ;;
    sid) echo sid ;;
    *) echo "no release of Debian that is known here: $1 (12, 13, sid)" >&2; return 1 ;;
  esac
}

# use_root [ROOT]: sets `root` to ROOT, or to a temporary folder that goes when the script ends.
use_root() {
  root=${1:-}
  if [ -z "$root" ]; then
    root=$(mktemp -d)
    trap 'leave_root "$root"' EXIT
  fi
}
leave_root() {
  for folder in proc dev ccache data; do
    if mountpoint -q "$1/$folder"; then umount -l "$1/$folder"; fi
  done
  rm -rf --one-file-system "$1"
}

# make_root SUITE FOLDER [debootstrap's argument...]: a minimal system, unless FOLDER has one of an earlier
# run. The mirror is MIRROR, or the first of this system, which must be Debian's.
make_root() {
  suite=$1 root=$2
  shift 2
  mirror=${MIRROR:-$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)}
  [ -x "$root/usr/bin/apt-get" ] ||
    debootstrap --variant=minbase "$@" "$suite" "$root" "$mirror" >/dev/null
  chmod 755 "$root"  # a temporary folder is closed to apt-get, which reads as another user
  cp /etc/resolv.conf "$root/etc/"
  # certificates of a registry that only this system may know
  if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
    mkdir -p "$root/etc/ssl"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/outer-certificates.crt"
  fi
  # a mirror may be a copy of some weeks ago, and sid's lists say that they expire after one
  echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90old-mirror"
}

# mount_system ROOT: what programs expect of a running system. The mounts end with the namespace.
mount_system() {
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
}

# inside ROOT COMMAND...: runs it there, with the settings of package registries that this system has.
inside() {
  root=$1
  shift
  certificates=/etc/ssl/outer-certificates.crt
  [ -f "$root$certificates" ] || certificates=""
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} \
    ${NPM_CONFIG_REGISTRY:+NPM_CONFIG_REGISTRY="$NPM_CONFIG_REGISTRY"} \
    ${certificates:+NODE_EXTRA_CA_CERTS="$certificates" PIP_CERT="$certificates"} \
    chroot "$root" "$@"
}
