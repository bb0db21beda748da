#!/bin/sh
# Runs a test command of a CI job below `rdmasim exec` of a release. action.yml and gitlab.yml beside it set its variables:
#   RDMASIM_COMMAND  what to run, as `sh -e` takes it
#   RDMASIM_VERSION  the release, such as 0.2.0
#   RDMASIM_FROM     the URL or folder that has its archive and SHA256SUMS; empty: the project's releases
#   RDMASIM_SHA256   the checksum of the archive, in place of that in SHA256SUMS
#   RDMASIM_DEVICES, RDMASIM_PROFILE, RDMASIM_LOSS, RDMASIM_FAULT   as the flags of rdmasim exec; empty: its defaults
#   RDMASIM_PCAP     true: record the frames; false
#   RDMASIM_FLAGS    other flags of rdmasim exec, with blanks between them
# It leaves log.txt, counters.txt and capture.pcapng in rdmasim-out. The exit status is the command's, or 2 if it was not started.
set -eu

fail() {
  echo "rdmasim: $1" >&2
  exit 2
}

out=rdmasim-out
releases=https://github.com/rdmasim/rdmasim/releases
mkdir -p "$out"
rm -f "$out/log.txt" "$out/counters.txt" "$out/capture.pcapng" # of a step before
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -n "${RDMASIM_COMMAND:-}" ] || fail "there is no command to run: give one (input command, on GitLab RDMASIM_COMMAND)"
version=${RDMASIM_VERSION:-}
version=${version#v}
case $version in
  '' | *[!0-9A-Za-z.+-]*) fail "version '$version' is none: a release is needed, such as 0.2.0 ($releases)" ;;
esac
case $(uname -s)-$(uname -m) in
  Linux-x86_64) ;;
  Linux-aarch64) fail "rdmasim exec needs x86-64, and this machine is $(uname -m): choose another runner (on GitHub ubuntu-latest). The archive for arm64 has conform and the simulator, which need no exec" ;;
  *) fail "rdmasim exec needs Linux on x86-64, and this machine is $(uname -s) on $(uname -m): choose another runner (on GitHub ubuntu-latest)" ;;
esac
case ${RDMASIM_PCAP:-true} in
  true | false) ;;
  *) fail "pcap is '$RDMASIM_PCAP': true or false is needed" ;;
esac

# Install the release.
name=rdmasim-$version-linux-amd64
from=${RDMASIM_FROM:-$releases/download/v$version}
from=${from%/}
get() { # FILE
  case $from in
    https://* | http://* | file://*)
      command -v curl >/dev/null || fail "curl is needed to load $from/$1: install it (Debian: curl ca-certificates)"
      curl -fsSL --retry 3 -o "$work/$1" "$from/$1"
      ;;
    *) cp "$from/$1" "$work/" ;;
  esac || fail "$from/$1 cannot be read. $releases has the versions that are released; for another, build the archives (make dist) and name their folder, out/dist (input from, on GitLab RDMASIM_FROM)"
}
get "$name.tar.gz"
if [ -n "${RDMASIM_SHA256:-}" ]; then
  want=$RDMASIM_SHA256 whose="sha256"
else
  get SHA256SUMS
  want=$(sed -n "s/^\([0-9a-f]*\) [ *]$name\.tar\.gz\$/\1/p" "$work/SHA256SUMS") whose="$from/SHA256SUMS"
  [ -n "$want" ] || fail "$whose has no line for $name.tar.gz: it is not of version $version"
fi
is=$(sha256sum "$work/$name.tar.gz" | cut -c 1-64)
[ "$is" = "$want" ] || fail "$from/$name.tar.gz has the SHA-256 $is, where $whose says $want: it is damaged, or not what was released. Nothing of it was run. Run the job again; if it stays so, do not use that archive"
tar -xzf "$work/$name.tar.gz" -C "$work" || fail "$from/$name.tar.gz is no archive of a release"
[ -x "$work/$name/rdmasim" ] || fail "$from/$name.tar.gz has no $name/rdmasim: it is no archive of version $version"
PATH=$work/$name:$PATH # of the command too, which may want conform

# Run the command.
set -- --counters-file "$out/counters.txt"
[ -z "${RDMASIM_DEVICES:-}" ] || set -- "$@" --devices "$RDMASIM_DEVICES"
[ -z "${RDMASIM_PROFILE:-}" ] || set -- "$@" --profile "$RDMASIM_PROFILE"
[ -z "${RDMASIM_LOSS:-}" ] || set -- "$@" --loss "$RDMASIM_LOSS"
[ -z "${RDMASIM_FAULT:-}" ] || set -- "$@" --fault "$RDMASIM_FAULT"
[ "${RDMASIM_PCAP:-true}" = false ] || set -- "$@" --pcap "$out/capture.pcapng"
set -f
# shellcheck disable=SC2086 # words are wanted
set -- "$@" ${RDMASIM_FLAGS:-}
set +f
{
  status=0
  rdmasim exec "$@" -- sh -ec "$RDMASIM_COMMAND" || status=$?
  echo "$status" >"$work/status"
} 2>&1 | tee "$out/log.txt"
exit "$(cat "$work/status")"
