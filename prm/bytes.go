package prm

import "encoding/binary"

func be16(b []byte, off int) uint16 { return binary.BigEndian.Uint16(b[off:]) }
func be32(b []byte, off int) uint32 { return binary.BigEndian.Uint32(b[off:]) }
func be64(b []byte, off int) uint64 { return binary.BigEndian.Uint64(b[off:]) }

func putBE16(b []byte, off int, v uint16) { binary.BigEndian.PutUint16(b[off:], v) }
func putBE32(b []byte, off int, v uint32) { binary.BigEndian.PutUint32(b[off:], v) }
func putBE64(b []byte, off int, v uint64) { binary.BigEndian.PutUint64(b[off:], v) }

// bits is bits hi..lo of the 32-bit word at off.
func bits(b []byte, off, hi, lo int) uint32 {
	return be32(b, off) >> lo & (1<<(hi-lo+1) - 1)
}

// put sets bits hi..lo of the word at off to the low bits of v.
func put(b []byte, off, hi, lo int, v uint32) {
	mask := uint32(1<<(hi-lo+1) - 1)
	putBE32(b, off, be32(b, off)&^(mask<<lo)|v&mask<<lo)
}

func bit(b []byte, off, n int) bool { return be32(b, off)>>n&1 != 0 }

func putBit(b []byte, off, n int, v bool) {
	w := be32(b, off) &^ (1 << n)
	if v {
		w |= 1 << n
	}
	putBE32(b, off, w)
}
