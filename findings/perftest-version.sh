#!/usr/bin/env bash
# perftest 4.5+0.17: the version that its programs print is none of the package's or of the project's releases, and asking for it counts
# as a failure, so that "ib_write_bw --version && ..." goes on nowhere. The number is what the two ends tell each other.
. "$(dirname "$0")/lib.sh"
unpack perftest=4.5+0.17-1 libibverbs1=44.0-2 libibumad3=44.0-2 librdmacm1=44.0-2 libnl-3-200=3.7.0-0.2+b1 libnl-route-3-200=3.7.0-0.2+b1
program=$work/unpacked/usr/bin/ib_write_bw
complete "$program"
status=0
printed=$("$program" --version 2>&1) || status=$?
page=$(gzip -dc "$work/unpacked/usr/share/man/man1/ib_write_bw.1.gz" | grep -A1 -e '--version' | tail -n 1 | tr -d '\r')
echo "perftest 4.5+0.17-1"
verdict "ib_write_bw --version" "the version, which the package calls 4.5+0.17 (its manual page: $page)" "Version: 6.06" "$printed"
verdict "its exit status" "nothing; 0 is what a program gives that did what it was asked for" "1" "$status"
finish
