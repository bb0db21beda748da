#!/usr/bin/env bash
# libibverbs 44.0: ibv_rate_to_mult(3) has no answer for eight of the rates of enum ibv_rate, and mult_to_ibv_rate(3) makes
# IBV_RATE_MAX, which is no limit at all, of the multiple that such a rate is nominally. A program that computes with multiples
# (a path record, a static rate) loses its limit at 25, 100 and 200 Gbit/s; ibv_rate_to_mbps knows all.
. "$(dirname "$0")/lib.sh"
unpack libibverbs1=44.0-2 libnl-3-200=3.7.0-0.2+b1 libnl-route-3-200=3.7.0-0.2+b1
library=$(ls "$LD_LIBRARY_PATH"/libibverbs.so.1)
complete "$library"
cat >"$work/rates.py" <<'P'
import ctypes, sys
v = ctypes.CDLL(sys.argv[1])
# enum ibv_rate of infiniband/verbs.h: nominal Gbit/s and number.
rates = {2.5: 2, 5: 5, 10: 3, 20: 6, 30: 4, 40: 7, 60: 8, 80: 9, 120: 10, 14: 11, 56: 12, 112: 13, 168: 14, 25: 15, 100: 16,
         200: 17, 300: 18, 28: 19, 50: 20, 400: 21, 600: 22, 800: 23, 1200: 24}
none = sorted(g for g, n in rates.items() if v.ibv_rate_to_mult(n) == -1)
print(*none)
print(*[v.ibv_rate_to_mbps(rates[g]) for g in none])
print(*[v.mult_to_ibv_rate(int(g / 2.5)) for g in (25, 100, 200)])
P
mapfile -t now < <(python3 "$work/rates.py" "$library")
echo "libibverbs1 44.0-2"
verdict "rates, in Gbit/s, for which ibv_rate_to_mult gives -1" \
  "none: it converts the enumeration to a multiple of 2.5 Gbit/s, and no error is named (ibv_rate_to_mult(3))" "14 25 56 100 112 168 200 300" "${now[0]}"
verdict "ibv_rate_to_mbps of the same rates" "the rate in Mbit/s (ibv_rate_to_mbps(3))" "14062 25781 56250 103125 112500 168750 206250 309375" "${now[1]}"
verdict "mult_to_ibv_rate of 10, 40 and 80, which are 25, 100 and 200 Gbit/s" \
  "the rate of that multiple (ibv_rate_to_mult(3)); 0 is IBV_RATE_MAX in infiniband/verbs.h" "0 0 0" "${now[2]}"
finish
