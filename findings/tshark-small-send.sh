#!/usr/bin/env bash
# Wireshark 4.0.17: a RoCE v2 SEND whose payload is small, such as that of a latency test, is handed to the dissector of RPC over RDMA,
# which reads beyond its end: the packet is called malformed. From 16 bytes of the same content on it is data.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tshark.sh"
cat >"$work/make.py" <<'P'
import sys
from frames import capture, roce
capture(sys.argv[1], [roce(4, b"a" * n, psn) for psn, n in enumerate((1, 8, 12, 16, 64))])
P
python3 "$work/make.py" "$work/send.pcap"
now=$(dissect send.pcap -T fields -e frame.protocols | sed 's/.*infiniband:*//' | tr '\n' ' ')
bad=$(dissect send.pcap -Y _ws.malformed -T fields -e frame.number | tr '\n' ' ')
off=$(dissect send.pcap --disable-protocol rpcordma -Y _ws.malformed -T fields -e frame.number | tr '\n' ' ')
verdict "what RC SENDs of 1, 8, 12, 16 and 64 bytes 'a' carry" \
  "data: a heuristic dissector takes only what it recognises (doc/README.heuristic of Wireshark)" "rpcordma rpcordma rpcordma data data" "${now% }"
verdict "frames of these with _ws.malformed" "none" "1 2 3" "${bad% }"
verdict "the same with --disable-protocol rpcordma" "none" "" "${off% }"
finish
