# Sourced by findings about tshark after lib.sh: tshark of a fixed version, and a module of Python that writes captures.
unpack tshark=4.0.17-0+deb12u3 wireshark-common=4.0.17-0+deb12u3 libwireshark16=4.0.17-0+deb12u3 libwiretap13=4.0.17-0+deb12u3 \
  libwsutil14=4.0.17-0+deb12u3 libwireshark-data=4.0.17-0+deb12u3
complete "$work/unpacked/usr/bin/tshark"
export PYTHONPATH=$work PYTHONDONTWRITEBYTECODE=1 HOME=$work WIRESHARK_DATA_DIR=$work/unpacked/usr/share/wireshark

tshark_() { "$work/unpacked/usr/bin/tshark" "$@" 2>"$work/errors"; }

# dissect FILE ARGS... of $work.
dissect() {
  local file=$1
  shift
  tshark_ -r "$work/$file" "$@" || { cat "$work/errors" >&2; exit 1; }
}

cat >"$work/frames.py" <<'P'
import struct, zlib

def checksum(b):
    s = sum(struct.unpack(">%dH" % (len(b) // 2), b))
    while s > 0xffff:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff

# A RoCE v2 packet over IPv4 with a right invariant CRC: eight bytes of ones, then what no router changes, and ones for what one may.
def roce(opcode, payload, psn=1):
    pad = -len(payload) % 4
    bth = struct.pack(">BBHIBBBB", opcode, 0x40 | pad << 4, 0xffff, 0x12, 0x80, 0, 0, psn)
    data = payload + bytes(pad)
    size = 8 + len(bth) + len(data) + 4
    udp = struct.pack(">HHHH", 49152, 4791, size, 0)
    def ip(tos, ttl, sum_):
        return struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + size, 0, 0x4000, ttl, 17, sum_, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    masked = b"\xff" * 8 + ip(0xff, 0xff, 0xffff) + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + data
    icrc = struct.pack("<I", zlib.crc32(masked))
    return bytes.fromhex("020000000002020000000001") + b"\x08\x00" + ip(0, 64, checksum(ip(0, 64, 0))) + udp + bth + data + icrc

def capture(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, x in enumerate(frames):
            f.write(struct.pack("<IIII", i, 0, len(x), len(x)) + x)
P
