#!/usr/bin/env bash
# `./dev test debian13` runs this. It makes a Debian 13 system in a temporary folder and does in it
# what README.md tells a new user, who has sudo: clone, ./dev run up to a server that answers, ./dev
# test. The clone is that of the last commit.
#
# The system has namespaces of its own for mounts and processes. When this script ends, however it
# ends, the kernel ends every process in there and undoes the mounts, and the folder is removed.
#
# INTERLOCK_DEBIAN_MIRROR: where packages come from; default: where this machine has its own from.
# INTERLOCK_CCACHE_DIR: a folder that keeps what was compiled for the next run; default: none.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

readonly RELEASE=trixie

as_root=()
if (($(id -u) != 0)); then as_root=(sudo); fi
work=
inside=

die() {
  printf 'debian13: %s\n' "$*" >&2
  exit 1
}

mirror() {
  if [[ -n ${INTERLOCK_DEBIAN_MIRROR:-} ]]; then
    echo "$INTERLOCK_DEBIAN_MIRROR"
  else
    # shellcheck disable=SC2016  # the field is apt's
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
      'Label: Debian' | sed -n 1p
  fi
}

clean_up() {
  trap '' INT TERM HUP
  if [[ -n $inside ]]; then
    "${as_root[@]}" kill -KILL "$inside" 2>/dev/null || true
    wait "$inside" 2>/dev/null || true
  fi
  # Its processes are told to end, but may still be at it.
  local tries=0
  until [[ -z $work ]] || "${as_root[@]}" rm -rf --one-file-system "$work" || ((++tries == 5)); do
    sleep 1
  done
}

# The rest runs as root in the new namespaces; $1 is the folder, $2 the mirror, $3 the cache or "".
# shellcheck disable=SC2016  # all of it is expanded there
readonly MAKE_SYSTEM='
  set -euo pipefail
  root=$1/root
  printf "      debootstrap\n"
  debootstrap --variant=minbase --include=ca-certificates,git,sudo "$0" "$root" "$2" \
    >"$1/debootstrap.log" 2>&1 || { tail -n 30 "$1/debootstrap.log" >&2; exit 1; }
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts "$root/dev/pts"
  echo "127.0.0.1 localhost $(uname -n)" >"$root/etc/hosts"
  chroot "$root" useradd --create-home --shell /bin/bash user
  echo "user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/user"
  mv "$1/tree" "$root/home/user/interlock"
  cache=/home/user/.cache/ccache
  mkdir -p "$root$cache"
  if [[ -n $3 ]]; then mount --bind "$3" "$root$cache"; fi
  chown -R --no-dereference 1000:1000 "$root/home/user"
  # Without exec: a process that becomes another user does not die with its parent any more.
  code=0
  chroot "$root" env -i HOME=/home/user USER=user LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin CCACHE_DIR="$cache" \
    setpriv --reuid user --regid user --init-groups bash -c "$4" || code=$?
  exit "$code"'

# As the user: the two commands of README.md, the first one on a port that is likely to be free.
# shellcheck disable=SC2016
readonly TRY='
  set -euo pipefail
  cd ~/interlock
  printf "      %s, %s, %s\n" "$(. /etc/os-release && echo "$PRETTY_NAME")" "$(nproc) cores" \
    "commit $(git rev-parse --short HEAD)"
  port=17338
  printf "      ./dev run\n"
  ./dev run -- --port "$port" &
  server=$!
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || { echo "the server ended" >&2; exit 1; }
    sleep 1
  done
  curl --silent --fail "http://127.0.0.1:$port/health"
  kill -TERM "$server"
  wait "$server"
  printf "\n      ./dev test\n"
  ./dev test'

main() {
  local from cache=${INTERLOCK_CCACHE_DIR:-} code=0
  from=$(mirror)
  [[ -n $from ]] || die "where do Debian packages come from? Set INTERLOCK_DEBIAN_MIRROR"
  if [[ -n $cache ]]; then cache=$(readlink -e "$cache") || die "there is no folder $cache"; fi
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  work=$(mktemp -d "${TMPDIR:-/tmp}/debian13.XXXXXXXX")
  git clone --quiet --no-hardlinks . "$work/tree"
  "${as_root[@]}" setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child \
    bash -c "$MAKE_SYSTEM" "$RELEASE" "$work" "$from" "$cache" "$TRY" </dev/null &
  inside=$!
  wait "$inside" || code=$?
  inside=
  ((code == 0)) || die "failed with exit code $code"
  echo 'debian13: both commands work'
}

main
