#!/usr/bin/env bash
# Wireshark 4.0.17: the invariant CRC of a RoCE v2 packet is shown and never checked, and there is no preference for it as there is for the
# checksums of IP and UDP. A capture in which each packet has a wrong one, which every receiver would drop, looks as a good one does.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tshark.sh"
cat >"$work/make.py" <<'P'
import sys
from frames import capture, roce
good = roce(4, b"a" * 64)
capture(sys.argv[1], [good, good[:-1] + bytes([good[-1] ^ 1])])
P
python3 "$work/make.py" "$work/icrc.pcap"
crcs=$(dissect icrc.pcap -T fields -e infiniband.invariant.crc | sort -u | wc -l)
experts=$(dissect icrc.pcap -T fields -e _ws.expert.message | tr -d '\n')
# With the checksum of IP, the same change of one bit is noticed when its check is switched on.
printed=$(dissect icrc.pcap -V | sed 's/^Frame .*//; s/Arrival.*//' | grep -ciE 'crc.*(incorrect|bad|wrong|unverified|status)' || true)
fields=$(tshark_ -G fields | awk -F '\t' '$3 ~ /^infiniband\..*crc.*status/' | wc -l)
ip=$(tshark_ -G fields | awk -F '\t' '$3 == "ip.checksum.status" || $3 == "udp.checksum.status" || $3 == "eth.fcs.status"' | wc -l)
verdict "invariant CRCs of two packets that differ in a bit of it only" "two: one is right, one wrong (InfiniBand specification, ICRC; annex A17 for RoCE v2)" "2" "$crcs"
verdict "what the dissection says of the wrong one" "that it is wrong" "" "$experts"
verdict "lines about it" "its status, as other checksums have one" "0" "$printed"
verdict "fields with the status of an InfiniBand CRC" "one for each CRC, as ip.checksum.status (Display Filter Reference)" "0" "$fields"
verdict "such fields of IP, UDP and Ethernet" "3" "3" "$ip"
finish
