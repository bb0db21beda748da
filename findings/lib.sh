# Sourced by findings: packages of fixed versions in a folder that goes when the script ends.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Ends the script as one that cannot be tried here.
cannot() {
  echo "$(basename "$0"): not tried: $*" >&2
  exit 77
}

# Unpacks NAME=VERSION... of Debian below $work/unpacked, and has programs find their libraries there first.
unpack() {
  local package
  for tool in apt-get dpkg-deb python3; do command -v $tool >/dev/null || cannot "$tool is missing"; done
  for package; do
    (cd "$work" && apt-get download -q -o APT::Sandbox::User= "$package" >log 2>&1) ||
      cannot "apt does not offer $package (Debian 12 does; snapshot.debian.org keeps it)"
  done
  for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done
  export LD_LIBRARY_PATH=$work/unpacked/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
}

# The program or library must find what it is linked with, here or among the packages.
complete() {
  local missing
  missing=$(ldd "$1" | sed -n 's/ => not found//p' | tr -d '\t' | tr '\n' ' ')
  [ -z "$missing" ] || cannot "$(basename "$1") needs ${missing% }, which is not installed here"
}

# verdict WHAT EXPECTED SEEN NOW: what documentation says, what was recorded, and what is so now.
verdict() {
  printf '%s\n  documented: %s\n  recorded:   %s\n  seen now:   %s\n' "$1" "$2" "$3" "$4"
  [ "$3" = "$4" ] || failed=1
}

finish() {
  if [ "${failed:-0}" = 0 ]; then echo "as recorded"; else echo "the behaviour has changed"; exit 1; fi
}
